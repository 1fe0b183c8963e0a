// /v1/inbound-emails

import type { FastifyReply } from "fastify";
import { Type } from "typebox";
import { protectLive } from "../accounts/accounts.ts";
import { downloadHeaders } from "../http/download.ts";
import {
  type Account,
  AnswerOf,
  type Api,
  answers,
  Closed,
  Deleted,
  Environment,
  Id,
  IdParams,
  Nullable,
  OneOf,
  PageOf,
  PageQuery,
  pageOf,
} from "../http/http.ts";
import type { World } from "../platform/world.ts";
import type { Inbound } from "./inbound.ts";
import * as emails from "./read/emails.ts";
import { SORTS } from "./read/list-queries.ts";
import { InboundEmail, InboundEmailRow, SimulateBody, SimulatedMessage, SimulatedReply } from "./read/shape.ts";
import { simulate } from "./receive/simulate.ts";
import { mountRules } from "./rules/rules-routes.ts";
import { mountSpam } from "./spam/spam-routes.ts";
import { STATUSES } from "./types.ts";

/** 35 MiB as base64, with room for the rest. */
const SIMULATE_BYTES_MAX = 48 * 1024 * 1024;
const TEXT_MAX = 1_000;

const One = AnswerOf("email", InboundEmail);
const Binary = (...types: string[]) => ({
  description: "The content",
  content: Object.fromEntries(types.map((type) => [type, { schema: Type.String({ format: "binary" }) }])),
});
const tags = ["Inbound"];

/** Mounts the endpoints of received mail. */
export function mountInbound(api: Api, world: World, inbound: Inbound): void {
  mountList(api, world);
  mountReading(api, world, inbound);
  mountDownloads(api, world, inbound);
  mountChanging(api, world, inbound);
  mountSimulate(api, world, inbound);
  mountRules(api, world, inbound);
  mountSpam(api, world);
}

const Substring = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: TEXT_MAX, description }));

function mountList(api: Api, world: World): void {
  api.get(
    "/v1/inbound-emails",
    {
      schema: {
        operationId: "listInboundEmails",
        tags,
        summary: "List received mail, newest first",
        description:
          "Mail to masked addresses is listed only while it waits in quarantine: it goes on once and is then forgotten.",
        querystring: Closed({
          ...PageQuery,
          q: Substring("Part of From, the recipient, Subject or Message-ID"),
          from: Substring("Part of From"),
          to: Substring("Part of the recipient"),
          subject: Substring("Part of Subject"),
          envelope_sender: Substring("Part of the envelope sender"),
          status: Type.Optional(OneOf(STATUSES)),
          environment: Type.Optional(Environment),
          domain_id: Type.Optional(Id),
          alias_id: Type.Optional(Id),
          thread_id: Type.Optional(Id),
          has_attachments: Type.Optional(Type.Boolean()),
          from_date: Type.Optional(Type.String({ maxLength: 40, description: "A day or a time (RFC 3339)" })),
          to_date: Type.Optional(Type.String({ maxLength: 40, description: "A day (the whole of it) or a time" })),
          sort: Type.Optional(OneOf(SORTS, { description: "received_at by default" })),
          direction: Type.Optional(OneOf(["asc", "desc"], { description: "desc by default" })),
        }),
        response: answers({ 200: PageOf("emails", InboundEmailRow) }),
      },
    },
    async (request) => emails.listEmails(world, request.account.org_id, { ...request.query, ...pageOf(request.query) }),
  );
}

function mountReading(api: Api, world: World, inbound: Inbound): void {
  api.get(
    "/v1/inbound-emails/:id",
    {
      schema: {
        operationId: "getInboundEmail",
        tags,
        summary: "Get a received mail: the event's fields, what became of it, its webhook deliveries",
        description: "A test key cannot read live mail.",
        params: IdParams,
        response: answers({ 200: One }, [404]),
      },
    },
    async (request) => {
      await protectMail(world, request, "read live mail");
      return { email: await emails.getEmail(world, inbound, request.account, request.params.id) };
    },
  );
}

function mountDownloads(api: Api, world: World, inbound: Inbound): void {
  api.get(
    "/v1/inbound-emails/:id/raw",
    {
      schema: {
        operationId: "getInboundEmailRaw",
        tags,
        summary:
          "The message as stored: as it came, with our Return-Path, Authentication-Results, Received and X-Spam fields in front",
        description: "Byte for byte, always as a download. A test key cannot read live mail.",
        params: IdParams,
        response: answers({ 200: Binary("message/rfc822") as never }, [404]),
      },
    },
    async (request, reply) => {
      await protectMail(world, request, "read live mail");
      const { id } = request.params;
      const bytes = await emails.getRaw(world, inbound, request.account.org_id, id);
      const headers = { ...downloadHeaders(`${id}.eml`, "application/octet-stream"), "content-type": "message/rfc822" };
      return (reply as FastifyReply).headers(headers).serializer(asItIs).send(bytes);
    },
  );

  api.get(
    "/v1/inbound-emails/:id/attachments/:attachment_id/download",
    {
      schema: {
        operationId: "downloadInboundAttachment",
        tags,
        summary: "Download an attachment",
        description:
          "Always as a download; types that a browser would run (html, svg, xml) are application/octet-stream",
        params: Type.Object({
          id: Type.String({ maxLength: 1024 }),
          attachment_id: Type.String({ maxLength: 1024 }),
        }),
        response: answers({ 200: Binary("application/octet-stream", "*/*") as never }, [404]),
      },
    },
    async (request, reply) => {
      await protectMail(world, request, "read live mail");
      const { id, attachment_id } = request.params;
      const { attachment, content } = await emails.openAttachment(world, request.account.org_id, id, attachment_id);
      const headers = downloadHeaders(attachment.filename, attachment.content_type);
      return (reply as FastifyReply).headers({ ...headers, "content-length": attachment.size }).send(content);
    },
  );
}

function asItIs(payload: unknown): string {
  return payload as string;
}

function mountChanging(api: Api, world: World, inbound: Inbound): void {
  const schema = { tags, params: IdParams };
  api.post(
    "/v1/inbound-emails/:id/replay",
    {
      schema: {
        ...schema,
        operationId: "replayInboundEmail",
        summary: "Process a mail again: with the rules, the alias and the endpoints as they are now, and a new event",
        description:
          "Where its alias is gone the mail is treated as the alias wanted when it came. The judgement on spam is made again too; addresses of attachments stay the same.",
        response: answers({ 200: One }, [404, 409]),
      },
    },
    async (request) => {
      await protectMail(world, request, "process live mail again");
      await emails.replayEmail(world, inbound, request.account, request.params.id);
      return { email: await emails.getEmail(world, inbound, request.account, request.params.id) };
    },
  );

  api.post(
    "/v1/inbound-emails/:id/release",
    {
      schema: {
        ...schema,
        operationId: "releaseInboundEmail",
        summary: "Let a mail out of quarantine; it goes on as if it had not been suspected",
        description:
          "With the rules, the alias and the endpoints as they are now. Mail to a masked address goes to its mailboxes and is then forgotten; while the alias is off or deleted, or no mailbox of it confirmed, it stays in quarantine.",
        response: answers({ 200: One }, [404, 409]),
      },
    },
    async (request) => {
      await protectMail(world, request, "release live mail");
      await emails.releaseEmail(world, inbound, request.account, request.params.id);
      return { email: await emails.getEmail(world, inbound, request.account, request.params.id) };
    },
  );

  api.delete(
    "/v1/inbound-emails/:id",
    {
      schema: {
        ...schema,
        operationId: "deleteInboundEmail",
        summary: "Delete a mail, its attachments, and with its last recipient the message",
        description:
          "What its webhook events say is deleted with it: deliveries that are still queued fail, the log of deliveries stays, and a replay of one is 409. Mail that carried it on to others is sent mail and stays.",
        response: answers({ 200: Deleted }, [404]),
      },
    },
    async (request) => {
      await protectMail(world, request, "delete live mail");
      await emails.deleteEmail(world, request.account.org_id, request.params.id);
      return { deleted: true, id: request.params.id };
    },
  );
}

function mountSimulate(api: Api, world: World, inbound: Inbound): void {
  api.post(
    "/v1/inbound-emails/simulate",
    {
      bodyLimit: SIMULATE_BYTES_MAX,
      config: { heavy: true },
      schema: {
        operationId: "simulateInboundEmail",
        tags,
        summary: "Receive a mail that nobody sent, through the whole pipeline",
        description:
          "For tests: environment `test` whatever the key, works on domains whose DNS is not there yet, webhooks get the event, forwards are recorded and never sent. Masked and reverse addresses take it too: the whole forward or reply is shown in `messages`, and `email` is null.",
        body: SimulateBody,
        response: answers({
          200: Type.Object({
            accepted: Type.Boolean({ description: "By at least one recipient" }),
            results: Type.Array(SimulatedReply, { description: "What SMTP would have said, in the order of `to`" }),
            email: Nullable(InboundEmail),
            messages: Type.Array(SimulatedMessage, {
              description: "What would have left: forwards, replies of masked addresses, notices about those",
            }),
          }),
        }),
      },
    },
    async (request) => {
      const { results, messages } = await simulate(world, inbound, request.account, request.body);
      const id = results.find(({ email_id }) => email_id !== null)?.email_id;
      const email = id ? await emails.getEmail(world, inbound, request.account, id) : null;
      return { accepted: results.some(({ accepted }) => accepted), results, email, messages };
    },
  );
}

type OfMail = { account: Account; params: { id: string } };

function protectMail(world: World, { account, params }: OfMail, what: string): Promise<void> {
  return protectLive(account, what, () => emails.environmentOf(world, account.org_id, params.id));
}
