// Behind the List-Unsubscribe link of a mail (RFC 8058): open to anybody who has the link, which its signature proves was
// ours. Only POST acts; GET shows a page with a button, because mail scanners follow links. The recipient is unsubscribed
// from the list the mail named, else from mail of the sender domain that carries such a link.

import type { FastifyReply, FastifyRequest } from "fastify";
import { Type } from "typebox";
import { refuseIfMoving } from "../../accounts/accounts.ts";
import type { Api } from "../../http/http.ts";
import { FORM_BYTES_MAX, openPages, sendPage } from "../../http/public-page.ts";
import {
  type Leave,
  readUnsubscribeToken,
  UNSUBSCRIBE_CONTEXT,
  UNSUBSCRIBE_PATH,
} from "../../mail/unsubscribe-token.ts";
import type { World } from "../../platform/world.ts";
import { unsubscribe } from "../../suppressions/suppressions.ts";
import { askPage, donePage, errorPage, FIELD, VALUE } from "./unsubscribe-page.ts";

type Call = FastifyRequest<{ Params: { token: string } }>;

/** Mounts the page and the one-click endpoint in a scope of their own; without an API key. */
export function mountUnsubscribe(api: Api, world: World): void {
  openPages(api, world);
  const schema = { hide: true, params: Type.Object({ token: Type.String({ maxLength: 1024 }) }) };
  const path = `${UNSUBSCRIBE_PATH}:token`;
  api.get(path, { schema }, async (request, reply) => {
    const leave = leaveOf(world, request as Call);
    return leave ? sendPage(reply, 200, askPage(leave)) : sendUnknown(reply);
  });
  api.post(path, { schema, bodyLimit: FORM_BYTES_MAX }, async (request, reply) => {
    const leave = leaveOf(world, request as Call);
    if (!leave) return sendUnknown(reply);
    if (!isOneClick(request)) {
      return sendPage(reply, 400, errorPage("Nothing has changed", "This request does not ask to unsubscribe."));
    }
    await world.db.asOrg(leave.org_id, (tx) =>
      unsubscribe(world, tx, { ...leave, source_message_id: leave.message_id }),
    );
    return sendPage(reply, 200, donePage(leave));
  });
}

function leaveOf(world: World, request: Call): Leave | null {
  const leave = readUnsubscribeToken(request.params.token, (text) => world.seal.hash(text, UNSUBSCRIBE_CONTEXT));
  refuseIfMoving(world, leave?.org_id ?? null);
  return leave;
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

function sendUnknown(reply: FastifyReply) {
  return sendPage(
    reply,
    404,
    errorPage(
      "Link not known",
      "This link is not complete, or this service did not write it. Copy it whole from the mail.",
    ),
  );
}
