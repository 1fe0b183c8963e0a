// /dashboard/api/operator/mail: what came for the installation's own mailboxes. It is nobody's mail but the installation's, so that
// the operator flag alone opens it.
import type { FastifyReply } from "fastify";
import { Type } from "typebox";
import { downloadHeaders } from "../../http/download.ts";
import {
  AnswerOf,
  type Api,
  answers,
  Closed,
  HeaderField,
  Id,
  IdParams,
  Named,
  Nullable,
  OneOf,
  Time,
} from "../../http/http.ts";
import type { World } from "../../platform/world.ts";
import { AuthResults } from "../../webhooks/types.ts";
import type { Inbound } from "../inbound.ts";
import { OPERATOR_MAILBOXES } from "../receive/own-addresses.ts";
import { STATUSES } from "../types.ts";
import * as mail from "./operator-views.ts";

const tags = ["Operator's mail"];
const MAIL = "/dashboard/api/operator/mail";
const OPERATOR = { needs: "operator" } as const;
const Text = Nullable(Type.String());
const Mailbox = OneOf(OPERATOR_MAILBOXES);

const LISTED = {
  id: Id,
  mailbox: Mailbox,
  recipient: Type.String({ description: "The envelope recipient" }),
  subject: Text,
  status: OneOf(STATUSES),
  reason: Nullable(Type.String({ description: "Why it is out of the ordinary" })),
  size: Type.Integer(),
  received_at: Time,
};

const Row = Named(
  "OperatorMailRow",
  Type.Object({ ...LISTED, envelope_from: Type.String(), from_address: Text, has_attachments: Type.Boolean() }),
);

const One = Named(
  "OperatorMail",
  Type.Object({
    ...LISTED,
    message_id: Text,
    from: Text,
    cc: Type.Array(Type.String()),
    reply_to: Text,
    date: Text,
    envelope: Type.Object({ from: Type.String(), remote_ip: Text, helo: Type.String(), tls: Type.Boolean() }),
    auth_results: Nullable(AuthResults),
    text: Text,
    html: Text,
    headers: Type.Array(HeaderField),
    attachments: Type.Array(
      Type.Object({ id: Id, filename: Type.String(), content_type: Type.String(), size: Type.Integer() }),
    ),
    defects: Type.Array(Type.String()),
  }),
);

const Binary = (...types: string[]) => ({
  description: "The content",
  content: Object.fromEntries(types.map((type) => [type, { schema: Type.String({ format: "binary" }) }])),
});

/** Mounts them on the scope of the dashboard's own API. */
export function mountOperatorMail(api: Api, world: World, inbound: Inbound): void {
  mountList(api, world);
  mountReading(api, world, inbound);
}

function mountList(api: Api, world: World): void {
  api.get(
    MAIL,
    {
      config: OPERATOR,
      schema: {
        operationId: "listOperatorMail",
        tags,
        summary: "List what came for postmaster@, abuse@ and the feedback addresses of the installation, newest first",
        querystring: Closed({
          query: Type.Optional(
            Type.String({
              ...{ minLength: 1, maxLength: 320 },
              description: "Part of the recipient, the sender or the subject",
            }),
          ),
          mailbox: Type.Optional(Mailbox),
          after: Type.Optional({ ...Id, description: "`next` of the page before" }),
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 50 })),
        }),
        response: answers({
          200: Named(
            "OperatorMailList",
            Type.Object({
              mails: Type.Array(Row),
              total: Type.Integer(),
              total_is_at_least: Type.Optional(Type.Boolean()),
              next: Nullable(Id),
            }),
          ),
        }),
      },
    },
    async ({ query: { query: text, limit, ...asked } }) =>
      mail.pageOperatorMail(world, { ...asked, text, limit: limit ?? 50 }),
  );
}

function mountReading(api: Api, world: World, inbound: Inbound): void {
  api.get(
    `${MAIL}/:id`,
    {
      config: OPERATOR,
      schema: {
        operationId: "getOperatorMail",
        tags,
        summary: "Get one with its content",
        params: IdParams,
        response: answers({ 200: AnswerOf("mail", One) }, [404]),
      },
    },
    async ({ params: { id } }) => ({ mail: await mail.getOperatorMail(world, inbound, id) }),
  );

  api.get(
    `${MAIL}/:id/raw`,
    {
      config: OPERATOR,
      schema: {
        operationId: "getOperatorMailRaw",
        tags,
        summary: "The message as it came, with our trace fields in front; always as a download",
        params: IdParams,
        response: answers({ 200: Binary("message/rfc822") as never }, [404]),
      },
    },
    async ({ params: { id } }, reply) => {
      const bytes = await mail.getOperatorSource(world, inbound, id);
      const headers = { ...downloadHeaders(`${id}.eml`, "application/octet-stream"), "content-type": "message/rfc822" };
      return (reply as FastifyReply)
        .headers(headers)
        .serializer((payload: unknown) => payload as string)
        .send(bytes);
    },
  );

  api.get(
    `${MAIL}/:id/attachments/:attachment_id/download`,
    {
      config: OPERATOR,
      schema: {
        operationId: "downloadOperatorMailAttachment",
        tags,
        summary: "Download an attachment; types that a browser would run are application/octet-stream",
        params: Type.Object({
          id: Type.String({ maxLength: 1024 }),
          attachment_id: Type.String({ maxLength: 1024 }),
        }),
        response: answers({ 200: Binary("application/octet-stream", "*/*") as never }, [404]),
      },
    },
    async ({ params: { id, attachment_id } }, reply) => {
      const { attachment, content } = await mail.openOperatorAttachment(world, id, attachment_id);
      const headers = downloadHeaders(attachment.filename, attachment.content_type);
      return (reply as FastifyReply).headers({ ...headers, "content-length": attachment.size }).send(content);
    },
  );
}
