// Behind the List-Unsubscribe link of a mail (RFC 8058): open to anybody who has the link, which its signature proves was
// ours. Only POST acts; GET shows a page with a button, because mail scanners follow links. The recipient is unsubscribed
// from the list the mail named, else from mail of the sender domain that carries such a link.
import { Type } from "@sinclair/typebox";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type Leave, readUnsubscribeToken, UNSUBSCRIBE_CONTEXT, UNSUBSCRIBE_PATH } from "../mail/unsubscribe-token.ts";
import { type Buckets, createBuckets } from "../platform/buckets.ts";
import type { Api } from "../platform/http.ts";
import { Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import { unsubscribe } from "../suppressions/suppressions.ts";
import { askPage, donePage, errorPage, FIELD, PAGE_POLICY, VALUE } from "./unsubscribe-page.ts";

const BODY_BYTES_MAX = 8 * 1024;
/** A client: a mailbox provider passes on the clicks of all its users, or everybody stands behind one proxy. */
const RATE = { per_s: 50, burst: 500, names_max: 10_000 };

type Call = FastifyRequest<{ Params: { token: string } }>;

/** Mounts the page and the one-click endpoint; without an API key. */
export function mountUnsubscribe(api: Api, world: World): void {
  const buckets = createBuckets(RATE);
  const schema = { hide: true, params: Type.Object({ token: Type.String({ maxLength: 1024 }) }) };
  // RFC 8058 §3.1: multipart/form-data or application/x-www-form-urlencoded; both are searched as they are.
  for (const type of ["application/x-www-form-urlencoded", "multipart/form-data"]) {
    api.addContentTypeParser(type, { parseAs: "buffer", bodyLimit: BODY_BYTES_MAX }, (_request, body, done) =>
      done(null, body),
    );
  }
  const path = `${UNSUBSCRIBE_PATH}:token`;
  api.get(path, { schema }, async (request, reply) => {
    limit(world, buckets, request);
    const leave = leaveOf(world, request as Call);
    return leave ? show(reply, 200, askPage(leave)) : showUnknown(reply);
  });
  api.post(path, { schema, bodyLimit: BODY_BYTES_MAX }, async (request, reply) => {
    limit(world, buckets, request);
    const leave = leaveOf(world, request as Call);
    if (!leave) return showUnknown(reply);
    if (!isOneClick(request)) {
      return show(reply, 400, errorPage("Nothing has changed", "This request does not ask to unsubscribe."));
    }
    await world.db.asOrg(leave.org_id, (tx) =>
      unsubscribe(world, tx, { ...leave, source_message_id: leave.message_id }),
    );
    return show(reply, 200, donePage(leave));
  });
}

function limit(world: World, buckets: Buckets, request: FastifyRequest): void {
  const waitS = buckets.take(request.ip, world.clock.monotonic());
  if (waitS === 0) return;
  throw new Refusal("rate_limit_exceeded", "too many requests from this address; try again shortly", {
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

function leaveOf(world: World, request: Call): Leave | null {
  return readUnsubscribeToken(request.params.token, (text) => world.seal.hash(text, UNSUBSCRIBE_CONTEXT));
}

const MULTIPART_FIELD = new RegExp(
  `name="?${FIELD}"?[^\\r\\n]*\\r?\\n(?:[^\\r\\n]+\\r?\\n)*\\r?\\n${VALUE}\\s*(?:--|\\r|\\n|$)`,
  "i",
);

function isOneClick(request: FastifyRequest): boolean {
  const body = Buffer.isBuffer(request.body) ? request.body.toString("latin1") : "";
  if (/^multipart\//i.test(request.headers["content-type"] ?? "")) return MULTIPART_FIELD.test(body);
  return new URLSearchParams(body).getAll(FIELD).includes(VALUE);
}

function showUnknown(reply: FastifyReply) {
  return show(
    reply,
    404,
    errorPage("Link not known", "This link is not complete or not one of ours. Copy it whole from the mail."),
  );
}

function show(reply: FastifyReply, status: number, html: string) {
  return reply
    .code(status)
    .headers({
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": PAGE_POLICY,
      "referrer-policy": "no-referrer",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "x-robots-tag": "noindex",
    })
    .send(html);
}
