// The pages behind links in mail, for people without an API key: one frame of plain HTML without scripts, images or anything
// from elsewhere, the header fields that go with it, the forms that come back from it, and a limit of requests for each
// client. What a page says and does, and what proves that its link is ours, is the features'.
import { createHash } from "node:crypto";
import type { FastifyReply } from "fastify";
import { clientKey } from "../mail/smtp-server/client-limits.ts";
import { createBuckets } from "../platform/fair/buckets.ts";
import { Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import type { Api } from "./http.ts";

/** RFC 8058 §3.1: what a mail program's one click may send, and a browser's form sends. */
const FORMS = ["application/x-www-form-urlencoded", "multipart/form-data"];
/** The limit of every body that a page gets. */
export const FORM_BYTES_MAX = 8 * 1024;
/** A client: a mailbox provider passes on the clicks of all its users, or everybody stands behind one proxy. */
const RATE = { per_s: 50, burst: 500, names_max: 10_000 };

const STYLE =
  "body{font:18px/1.5 system-ui,sans-serif;margin:0;background:#f6f6f4;color:#1c1c1a}" +
  "main{max-width:34em;margin:12vh auto 0;padding:0 1.5em}h1{font-size:1.4em}" +
  "button{font:inherit;padding:.6em 1.2em;border:0;border-radius:.4em;background:#1c4f82;color:#fff;cursor:pointer}" +
  "button:focus-visible{outline:3px solid #e09f3e;outline-offset:2px}" +
  "@media (prefers-color-scheme:dark){body{background:#1b1b1a;color:#eee}button{background:#3f7cb8}}";

/** Nothing but the page's own style may load; its form may only come back here; nobody may frame it. */
const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'`,
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join("; ");

const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": POLICY,
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "x-robots-tag": "noindex",
};

/** A whole page; `title` and `body` are HTML. */
export function page(title: string, body: string): string {
  return (
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title>` +
    `<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="robots" content="noindex">` +
    `<style>${STYLE}</style></head><body><main><h1>${title}</h1>${body}</main></body></html>\n`
  );
}

/** Text as it may stand in a page. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Answers with a page, which nobody keeps, indexes or frames. */
export function sendPage(reply: FastifyReply, status: number, html: string) {
  return reply.code(status).headers(HEADERS).send(html);
}

/**
 * Lets a scope of its own be pages: forms come as their bytes, 8 KiB at most, and a client that asks for too many pages
 * is refused with 429.
 */
export function openPages(scope: Api, { clock }: Pick<World, "clock">): void {
  for (const type of FORMS) {
    scope.addContentTypeParser(type, { parseAs: "buffer", bodyLimit: FORM_BYTES_MAX }, (_request, body, done) =>
      done(null, body),
    );
  }
  const buckets = createBuckets(RATE);
  scope.addHook("onRequest", async ({ ip }) => {
    const waitS = buckets.take(clientKey(ip), clock.monotonic());
    if (waitS > 0) throw tooMany(waitS);
  });
}

function tooMany(waitS: number): Refusal {
  return new Refusal("rate_limit_exceeded", "too many requests from this address; try again shortly", {
    retry_after_seconds: waitS,
    body: {
      limit_type: "requests_per_second",
      limit: RATE.per_s,
      used: RATE.per_s,
      retry_after_seconds: Math.max(1, Math.ceil(waitS)),
      warming_phase: "",
    },
  });
}
