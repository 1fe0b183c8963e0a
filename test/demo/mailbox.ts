// The recipients' mailbox of `npm run demo -- --keep`: a page with the mail that arrived, newest first, each as its source,
// and the same as JSON for a command line. On loopback, text only: nothing of a mail is ever run or loaded.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import PostalMime from "postal-mime";
import { escapeHtml } from "../../src/http/public-page.ts";
import type { Received } from "../support/smtp-sink.ts";

export type Mailbox = { url: string; stop(): Promise<void> };

type Shown = { number: number; at: string; from: string; to: string[]; subject: string; text: string };

const REFRESH_S = 2;
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
const STYLE =
  "body{font:16px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}td{padding:.2em 1em .2em 0}";

/** Serves what is in `messages` now and later. */
export async function serveMailbox(messages: readonly Received[]): Promise<Mailbox> {
  const server = createServer((request, response) => {
    answer(messages, request.url ?? "/", response).catch((error) => {
      response.writeHead(500, { "content-type": "text/plain" }).end(String(error));
    });
  });
  await new Promise<void>((done, fail) => server.once("error", fail).listen(0, "127.0.0.1", done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    stop: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

async function answer(messages: readonly Received[], url: string, response: ServerResponse): Promise<void> {
  const source = messages[Number(/^\/(\d+)$/.exec(url)?.[1] ?? 0) - 1];
  const send = (type: string, body: string | Buffer, status = 200) =>
    response
      .writeHead(status, {
        "content-type": type,
        "content-security-policy": POLICY,
        "x-content-type-options": "nosniff",
      })
      .end(body);
  if (source) return void send("text/plain; charset=utf-8", source.bytes);
  if (url === "/messages") return void send("application/json", JSON.stringify({ messages: await shown(messages) }));
  if (url !== "/") return void send("text/plain", "there is nothing here\n", 404);
  send("text/html; charset=utf-8", page(await shown(messages)));
}

/** Newest first; a number stays a message's own. */
async function shown(messages: readonly Received[]): Promise<Shown[]> {
  const all = messages.map(async ({ bytes, from, to, at }, index): Promise<Shown> => {
    const { subject = "", text = "" } = await PostalMime.parse(bytes);
    return { number: index + 1, at: new Date(at).toISOString(), from, to, subject, text };
  });
  return (await Promise.all(all)).reverse();
}

function page(messages: Shown[]): string {
  const rows = messages.map(({ number, at, to, subject }) => {
    const cells = [at.slice(11, 19), to.join(", "), subject || "(no subject)"].map(
      (text) => `<td>${escapeHtml(text)}</td>`,
    );
    return `<tr>${cells.join("")}<td><a href="/${number}">source</a></td></tr>`;
  });
  const body = rows.length > 0 ? `<table>${rows.join("")}</table>` : "<p>Nothing arrived yet.</p>";
  return (
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="${REFRESH_S}">` +
    `<title>Arrived mail</title><style>${STYLE}</style></head><body><h1>Mail that arrived</h1>${body}</body></html>\n`
  );
}
