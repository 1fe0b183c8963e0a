// The content of a received mail: HTML in its frame, text, headers and files as text.
import * as Tabs from "@radix-ui/react-tabs";
import type { Schemas } from "../api/client.ts";
import { DownloadButton } from "../forms/download-button.tsx";
import { saySize } from "../lib/times.ts";
import { Headers } from "./content.tsx";
import { HtmlFrame } from "./html-frame.tsx";

type File = Pick<Schemas["InboundAttachment"], "id" | "filename" | "content_type" | "size">;
type Content = Pick<Schemas["InboundEmail"], "id" | "html" | "text" | "headers"> & { attachments: File[] };
/** Where the source and the files are fetched from: answers are blobs. */
type From = { source(): Promise<unknown>; file(id: string): Promise<unknown> };

export function InboundContent({ mail, from }: { mail: Content; from: From }) {
  const { id, html, text, headers, attachments } = mail;
  const first = html !== null ? "html" : text !== null ? "text" : "headers";
  return (
    <section className="panel pad" aria-labelledby="content">
      <h2 id="content">Content</h2>
      <Tabs.Root defaultValue={first}>
        <Tabs.List className="tabs" aria-label="Views of the content">
          {html !== null && <Tabs.Trigger value="html">HTML</Tabs.Trigger>}
          {text !== null && <Tabs.Trigger value="text">Text</Tabs.Trigger>}
          <Tabs.Trigger value="headers">Headers</Tabs.Trigger>
          {attachments.length > 0 && (
            <Tabs.Trigger value="files">
              {attachments.length === 1 ? "1 attachment" : `${attachments.length} attachments`}
            </Tabs.Trigger>
          )}
        </Tabs.List>
        {html !== null && (
          <Tabs.Content value="html">
            <HtmlFrame html={html} title="The mail as HTML" />
          </Tabs.Content>
        )}
        {text !== null && (
          <Tabs.Content value="text">
            <pre className="plain">{text}</pre>
          </Tabs.Content>
        )}
        <Tabs.Content value="headers">
          <Headers headers={headers} />
        </Tabs.Content>
        <Tabs.Content value="files">
          <Files attachments={attachments} fetch={from.file} />
        </Tabs.Content>
      </Tabs.Root>
      <div className="acts">
        <DownloadButton fetch={from.source} name={`${id}.eml`} label="Download the source" />
      </div>
    </section>
  );
}

function Files({ attachments, fetch }: { attachments: File[]; fetch: From["file"] }) {
  return (
    <table className="table">
      <thead>
        <tr>
          <th>File</th>
          <th className="hide-s">Type</th>
          <th className="r w-[90px]">Size</th>
          <th className="w-[118px]">
            <span className="sr-only">Acts</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {attachments.map(({ id, filename, content_type, size }) => (
          <tr key={id}>
            <td title={filename ?? undefined}>{filename ?? <span className="dim">no name</span>}</td>
            <td className="dim hide-s">{content_type}</td>
            <td className="r">{saySize(size)}</td>
            <td className="r">
              <DownloadButton
                fetch={() => fetch(id)}
                name={filename ?? "file"}
                label="Download"
                what={filename ?? "the file"}
              />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
