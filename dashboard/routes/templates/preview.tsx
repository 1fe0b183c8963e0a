// What a recipient would get: as HTML in its sandboxed frame, at the width of a phone, and as text.
import * as Tabs from "@radix-ui/react-tabs";
import { getRouteApi } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Schemas } from "../../api/client.ts";
import { sayError } from "../../api/say-error.ts";
import { VIEWS } from "../../lib/list-filters.ts";
import { HtmlFrame } from "../../mail/html-frame.tsx";
import { Loading } from "../../ui/states.tsx";

const route = getRouteApi("/templates/$id");
type Answer = Schemas["TemplatePreview"];
type Given = { preview: { data: Answer | undefined; error: unknown; isFetching: boolean } };

export function Preview({ preview: { data, error, isFetching } }: Given) {
  const { view = "html" } = route.useSearch();
  const navigate = route.useNavigate();
  const choose = (next: string) =>
    void navigate({ search: (before) => ({ ...before, view: VIEWS.find((one) => one === next) }), replace: true });
  return (
    <section className="panel pad preview" aria-label="Preview" aria-busy={isFetching}>
      <p className="mb-1 truncate font-semibold" title={data?.subject}>
        {data === undefined ? "\u00a0" : data.subject || <span className="dim font-normal">no subject</span>}
      </p>
      <Tabs.Root value={view} onValueChange={choose}>
        <Tabs.List className="tabs mb-3!" aria-label="Ways to look at it">
          <Tabs.Trigger value="html">Preview</Tabs.Trigger>
          <Tabs.Trigger value="phone">Phone</Tabs.Trigger>
          <Tabs.Trigger value="text">As text</Tabs.Trigger>
        </Tabs.List>
        {error !== null && (
          <p className="problem mb-3">
            {sayError(error).text}
            {data !== undefined && " Below is what could be shown last."}
          </p>
        )}
        <Views data={data} meanwhile={error === null ? <Loading rows={4} /> : null} />
      </Tabs.Root>
    </section>
  );
}

/** Each panel is there from the beginning, as its tab names it; `meanwhile` stands in it until there is something to show. */
function Views({ data, meanwhile }: { data: Answer | undefined; meanwhile: ReactNode }) {
  const html = (title: string, className: string) => {
    if (data === undefined) return meanwhile;
    if (data.html_body === null) return <p className="dim">There is no HTML part.</p>;
    return <HtmlFrame html={data.html_body} title={title} className={className} />;
  };
  return (
    <>
      <Tabs.Content value="html">{html("The template as HTML", "tall")}</Tabs.Content>
      <Tabs.Content value="phone">{html("The template at the width of a phone", "phone")}</Tabs.Content>
      <Tabs.Content value="text">
        {data === undefined ? (
          meanwhile
        ) : (
          <pre className="plain">{data.text_body ?? "Made from the HTML on sending."}</pre>
        )}
      </Tabs.Content>
      <Warnings warnings={data?.warnings ?? []} />
    </>
  );
}

const FIELDS: Record<string, string> = { subject: "Subject", html_body: "HTML", text_body: "Text" };

function Warnings({ warnings }: { warnings: Schemas["TemplateWarning"][] }) {
  if (warnings.length === 0) return null;
  return (
    <ul className="mt-3 grid gap-1 border-t border-line pt-3 text-[13px]" aria-label="Warnings">
      {warnings.map(({ code, field, message }) => (
        <li key={`${code} ${field}`} className="text-warn">
          {FIELDS[field] ?? field}: {message}
        </li>
      ))}
    </ul>
  );
}
