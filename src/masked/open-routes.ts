// The public page behind a confirmation link. GET shows a button and changes nothing, because mail scanners open links;
// the button posts. No scripts, nothing loaded, no address shown.
import { Type } from "@sinclair/typebox";
import type { Api } from "../platform/http.ts";
import type { World } from "../platform/world.ts";
import { readConfirmationToken } from "./confirmation.ts";
import { confirmDestination } from "./destinations.ts";

const TokenParams = Type.Object({ token: Type.String({ maxLength: 200 }) });
const FORM = "application/x-www-form-urlencoded";
const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy":
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
};

type OpenWorld = Pick<World, "db" | "clock" | "seal">;

/** Mounts the pages that need no key. */
export function mountMaskedPages(api: Api, world: OpenWorld): void {
  // A browser's form sends this type; what it holds is not looked at. Other open pages may take it as well.
  if (!api.hasContentTypeParser(FORM)) {
    api.addContentTypeParser(FORM, { bodyLimit: 1_024, parseAs: "buffer" }, (_request, body, done) => done(null, body));
  }
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

function page(title: string, content: string): string {
  const style = "body{font:1rem/1.5 system-ui,sans-serif;max-width:32rem;margin:4rem auto;padding:0 1rem}";
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title><style>${style}</style></head><body><h1>${title}</h1>${content}</body></html>\n`;
}

const ASK = page(
  "Forward mail to your mailbox?",
  '<p>If you confirm, mail to masked addresses is forwarded to the mailbox that got this link. If you do not know about this, close the page.</p><form method="post"><button type="submit">Confirm</button></form>',
);
const DONE = page("Confirmed", "<p>Mail may now be forwarded to your mailbox.</p>");
const OVER = page(
  "This link does not work",
  "<p>It is too old, or the destination was removed. Ask for a new one.</p>",
);
