// The content of a sent e-mail. HTML stands in a sandboxed frame on an origin of its own: no scripts, no forms, no links
// followed, and nothing is fetched from anywhere. Text and headers are text.
import * as Tabs from "@radix-ui/react-tabs";
import { useQuery } from "@tanstack/react-query";
import { type Schemas, take, v1 } from "../api/client.ts";
import { emailContent } from "../api/queries.ts";
import { DownloadButton } from "../forms/download-button.tsx";
import { saySize } from "../lib/times.ts";
import { Loaded } from "../ui/states.tsx";
import { HtmlFrame } from "./html-frame.tsx";

type Content = Schemas["EmailContent"];

export function MailContent({ id }: { id: string }) {
  const query = useQuery(emailContent(id));
  return (
    <section className="panel pad" aria-labelledby="content">
      <h2 id="content">Content</h2>
      <Loaded of={query} rows={4}>
        {(answer) =>
          typeof answer === "string" ? <pre className="plain">{answer}</pre> : <Views content={answer.content} />
        }
      </Loaded>
      {query.data !== undefined && (
        <div className="acts">
          <DownloadButton fetch={() => source(id)} name={`${id}.eml`} label="Download the source" />
        </div>
      )}
    </section>
  );
}

/** The message as it was built, byte for byte. */
function source(id: string): Promise<unknown> {
  const asked = { params: { path: { id } }, headers: { accept: "message/rfc822" }, parseAs: "blob" } as const;
  return take(v1.GET("/v1/emails/{id}/content", asked));
}

function Views({ content }: { content: Content }) {
  const { html_body, text_body, headers, attachments } = content;
  return (
    <Tabs.Root defaultValue={html_body === null ? "text" : "html"}>
      <Tabs.List className="tabs" aria-label="Views of the content">
        {html_body !== null && <Tabs.Trigger value="html">HTML</Tabs.Trigger>}
        {text_body !== null && <Tabs.Trigger value="text">Text</Tabs.Trigger>}
        <Tabs.Trigger value="headers">Headers</Tabs.Trigger>
        {attachments.length > 0 && (
          <Tabs.Trigger value="attachments">
            {attachments.length === 1 ? "1 attachment" : `${attachments.length} attachments`}
          </Tabs.Trigger>
        )}
      </Tabs.List>
      {html_body !== null && (
        <Tabs.Content value="html">
          <HtmlFrame html={html_body} title="The e-mail as HTML" />
        </Tabs.Content>
      )}
      {text_body !== null && (
        <Tabs.Content value="text">
          <pre className="plain">{text_body}</pre>
        </Tabs.Content>
      )}
      <Tabs.Content value="headers">
        <Headers headers={headers} />
      </Tabs.Content>
      <Tabs.Content value="attachments">
        <Attachments attachments={attachments} />
      </Tabs.Content>
    </Tabs.Root>
  );
}

export function Headers({ headers }: { headers: Content["headers"] }) {
  return (
    <dl className="grid grid-cols-1 gap-x-4 gap-y-1 sm:grid-cols-[180px_minmax(0,1fr)]">
      {headers.map(({ name, value }, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a field may stand twice; their order never changes
        <div key={place} className="contents">
          <dt className="dim">{name}</dt>
          <dd className="plain">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Attachments({ attachments }: { attachments: Content["attachments"] }) {
  return (
    <table className="table">
      <thead>
        <tr>
          <th>File</th>
          <th>Type</th>
          <th className="r w-[110px]">Size</th>
        </tr>
      </thead>
      <tbody>
        {attachments.map(({ filename, content_type, size }, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: names may repeat; their order never changes
          <tr key={place}>
            <td title={filename ?? undefined}>{filename ?? <span className="dim">no name</span>}</td>
            <td className="dim">{content_type}</td>
            <td className="r">{saySize(size)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
