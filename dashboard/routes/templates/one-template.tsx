// One template: its sources with what they read, and beside them what a recipient would get, as it is written.
import * as Tabs from "@radix-ui/react-tabs";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useBlocker } from "@tanstack/react-router";
import { useState } from "react";
import { Declined, type Schemas } from "../../api/client.ts";
import { template, templatePreview } from "../../api/template-queries.ts";
import { CodeArea } from "../../editor/code-area.tsx";
import { Difference } from "../../editor/difference.tsx";
import {
  bodiesOf,
  type Draft,
  draftOf,
  isOther,
  SaveTemplate,
  useSaving,
} from "../../forms/templates/save-template.tsx";
import { TemplateActs } from "../../forms/templates/template-acts.tsx";
import { fieldProblem } from "../../lib/act.ts";
import { PARTS } from "../../lib/list-filters.ts";
import { useSettled } from "../../lib/settled.ts";
import { type Typed, toVariables } from "../../lib/template-values.ts";
import { Field } from "../../ui/field.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Loaded } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { When } from "../../ui/when.tsx";
import { Preview } from "./preview.tsx";
import { VariablesPanel } from "./variables.tsx";

const route = getRouteApi("/templates/$id");
type Template = Schemas["Template"];

const crumb = (
  <Link to="/templates" search={{}} className="crumb">
    Templates
  </Link>
);

export function OneTemplate() {
  const { id } = route.useParams();
  const query = useQuery(template(id));
  if (query.data) return <Written key={query.data.template.id} template={query.data.template} />;
  return (
    <>
      <PageHead title="Template" crumb={crumb} />
      <div className="panel">
        <Loaded of={query}>{() => null}</Loaded>
      </div>
    </>
  );
}

function Written({ template: found }: { template: Template }) {
  const [draft, write] = useState(() => draftOf(found));
  const [typed, type] = useState<Typed>({});
  const saved = draftOf(found);
  const isChanged = isOther(saved, draft);
  useBlocker({
    shouldBlockFn: ({ current, next }) => current.pathname !== next.pathname && !confirm("Leave without saving?"),
    disabled: !isChanged,
  });
  const settled = useSettled({ ...bodiesOf(draft), variables: toVariables(typed) });
  const preview = useQuery(templatePreview(found.id, settled));
  const rendered = preview.error === null ? (preview.data ?? null) : null;
  const save = useSaving(found, draft);
  return (
    <>
      <PageHead
        title={found.name}
        crumb={crumb}
        beside={<Tag tone={found.active ? "good" : "idle"}>{found.active ? "On" : "Off"}</Tag>}
        acts={
          <>
            <TemplateActs template={found} preview={rendered} />
            <SaveTemplate {...save} isChanged={isChanged} />
          </>
        }
      />
      <p className="dim mb-4 flex flex-wrap gap-x-2 text-[12.5px] wrap-anywhere">
        <code>{found.slug}</code> ·{" "}
        <Link to="/templates/$id/versions" params={{ id: found.id }} search={{}} className="underline num">
          version {found.version}
        </Link>{" "}
        ·{" "}
        <span>
          changed <When at={found.updated_at} as="both" />
        </span>
        {isChanged && <span className="text-warn">· not saved</span>}
      </p>
      <div className="halves">
        <div className="stack">
          <Sources draft={draft} saved={saved} write={write} error={preview.error ?? save.saving.error} />
          <VariablesPanel template={found} preview={preview.data} typed={typed} type={type} />
        </div>
        <Preview preview={preview} />
      </div>
    </>
  );
}

type SourcesGiven = { draft: Draft; saved: Draft; write: (draft: Draft) => void; error: unknown };

function Sources({ draft, saved, write, error }: SourcesGiven) {
  const { part = "html" } = route.useSearch();
  const navigate = route.useNavigate();
  const choose = (next: string) =>
    void navigate({
      search: (before) => ({ ...before, part: PARTS.find((one) => one === next) }),
      replace: true,
    });
  const set = (name: keyof Draft) => (text: string) => write({ ...draft, [name]: text });
  return (
    <section className="panel pad" aria-label="Sources">
      <Field label="Subject" problem={fieldProblem(error, "subject")}>
        {(bound) => (
          <input
            {...bound}
            value={draft.subject}
            autoComplete="off"
            onChange={(event) => set("subject")(event.target.value)}
          />
        )}
      </Field>
      <Tabs.Root value={part} onValueChange={choose} className="mt-3">
        <Tabs.List className="tabs mb-3!" aria-label="Parts of the template">
          <Tabs.Trigger value="html">HTML</Tabs.Trigger>
          <Tabs.Trigger value="text">Text</Tabs.Trigger>
          <Tabs.Trigger value="difference">Difference</Tabs.Trigger>
        </Tabs.List>
        <Tabs.Content value="html">
          <CodeArea
            label="HTML"
            isHtml
            text={draft.html_body}
            change={set("html_body")}
            mistake={lineOf(error, "html_body")}
          />
          <Mistake error={error} field="html_body" />
        </Tabs.Content>
        <Tabs.Content value="text">
          <CodeArea
            label="Text"
            text={draft.text_body}
            change={set("text_body")}
            mistake={lineOf(error, "text_body")}
          />
          <Mistake error={error} field="text_body" />
          {draft.text_body === "" && <p className="dim mt-2 text-[12.5px]">Empty: made from the HTML on sending.</p>}
        </Tabs.Content>
        <Tabs.Content value="difference" className="stack">
          <p className="dim text-[12.5px]">What is written here, against the saved version.</p>
          {(["subject", "html_body", "text_body"] as const).map((name) => (
            <div key={name}>
              <h2 className="mb-1 font-normal! text-ink-2">
                {{ subject: "Subject", html_body: "HTML", text_body: "Text" }[name]}
              </h2>
              <Difference before={saved[name]} after={draft[name]} label={`Difference of ${name}`} />
            </div>
          ))}
        </Tabs.Content>
      </Tabs.Root>
    </section>
  );
}

function Mistake({ error, field }: { error: unknown; field: keyof Draft }) {
  const text = fieldProblem(error, field);
  return text === undefined ? null : (
    <p role="alert" className="problem mt-2">
      {text}
    </p>
  );
}

/** The line that the API names for a mistake in this source. */
function lineOf(error: unknown, field: keyof Draft): number | null {
  if (!(error instanceof Declined) || error.body.field !== field) return null;
  return typeof error.body.line === "number" ? error.body.line : null;
}
