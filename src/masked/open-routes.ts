// The public pages behind the links in mail: a mailbox's consent, and leaving a mailing list through the alias. GET shows a
// button and changes nothing, because mail scanners open links; the button posts (and so does a mail program, RFC 8058). No
// scripts, nothing loaded, no address shown.
import { Type } from "@sinclair/typebox";
import type { Api } from "../platform/http.ts";
import type { BouncePorts } from "./bounces.ts";
import type { CarryWorld } from "./carry.ts";
import { readConfirmationToken } from "./confirmation.ts";
import { confirmDestination } from "./destinations.ts";
import { leaveList, readLeave } from "./unsubscribing.ts";

const TokenParams = Type.Object({ token: Type.String({ maxLength: 2_000 }) });
const FORMS = ["application/x-www-form-urlencoded", "multipart/form-data"];
const FORM_BYTES_MAX = 8 * 1024;
const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy":
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
};

/** Mounts the pages that need no key. */
export function mountMaskedPages(api: Api, world: CarryWorld, ports: BouncePorts): void {
  // A browser's form and a mail program's one click send these types; what they hold is not looked at.
  for (const type of FORMS) {
    api.addContentTypeParser(type, { bodyLimit: FORM_BYTES_MAX, parseAs: "buffer" }, (_request, body, done) =>
      done(null, body),
    );
  }
  mountConfirmation(api, world);
  mountLeaving(api, world, ports);
}

function mountConfirmation(api: Api, world: Pick<CarryWorld, "db" | "clock" | "seal">): void {
  api.get("/masked/confirm/:token", { schema: { hide: true, params: TokenParams } }, async (request, reply) => {
    const named = readConfirmationToken(world, request.params.token);
    return reply
      .headers(HEADERS)
      .code(named ? 200 : 404)
      .send(named ? ASK : OVER);
  });
  api.post("/masked/confirm/:token", { schema: { hide: true, params: TokenParams } }, async (request, reply) => {
    const named = readConfirmationToken(world, request.params.token);
    const confirmed = named !== null && (await confirmDestination(world, named));
    return reply
      .headers(HEADERS)
      .code(confirmed ? 200 : 404)
      .send(confirmed ? DONE : OVER);
  });
}

function mountLeaving(api: Api, world: CarryWorld, ports: BouncePorts): void {
  api.get("/masked/unsubscribe/:token", { schema: { hide: true, params: TokenParams } }, async (request, reply) => {
    const leave = readLeave(world, request.params.token);
    return reply
      .headers(HEADERS)
      .code(leave ? 200 : 404)
      .send(leave ? ASK_LEAVE : OVER);
  });
  api.post("/masked/unsubscribe/:token", { schema: { hide: true, params: TokenParams } }, async (request, reply) => {
    const leave = readLeave(world, request.params.token);
    const done = leave ? await leaveList(world, ports, leave) : "gone";
    const [code, page] = { sent: [200, LEFT], gone: [404, OVER], off: [403, OFF], later: [429, LATER] }[done] as [
      number,
      string,
    ];
    return reply.headers(HEADERS).code(code).send(page);
  });
}

function page(title: string, content: string): string {
  const style = "body{font:1rem/1.5 system-ui,sans-serif;max-width:32rem;margin:4rem auto;padding:0 1rem}";
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title><style>${style}</style></head><body><h1>${title}</h1>${content}</body></html>\n`;
}

const ASK = page(
  "Forward mail to your mailbox?",
  '<p>If you confirm, mail to masked addresses is forwarded to the mailbox that got this link. If you do not know about this, close the page.</p><form method="post"><button type="submit">Confirm</button></form>',
);
const DONE = page("Confirmed", "<p>Mail may now be forwarded to your mailbox.</p>");
const ASK_LEAVE = page(
  "Unsubscribe from this list?",
  '<p>The list takes unsubscribe requests by mail. We send one from your masked address; your mailbox is not shown.</p><form method="post"><button type="submit">Unsubscribe</button></form>',
);
const LEFT = page("Sent", "<p>The request to unsubscribe was sent from your masked address.</p>");
const LATER = page(
  "Not now",
  "<p>Your masked address has sent too much mail within the last hour. Try again later.</p>",
);
const OFF = page(
  "Switched off",
  "<p>Nothing is sent from your masked address at the moment, because you switched that off.</p>",
);
const OVER = page("This link does not work", "<p>It is too old, or what it was for was removed.</p>");
