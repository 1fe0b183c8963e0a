// /v1/emails: what was sent, and what became of it.
import { Type } from "typebox";
import { protectLive } from "../../accounts/accounts.ts";
import {
  type Account,
  AnswerOf,
  type Api,
  answers,
  Closed,
  Environment,
  HeaderField,
  Id,
  IdParams,
  Metadata,
  Named,
  Nullable,
  OneOf,
  PageOf,
  PageQuery,
  pageOf,
  Time,
} from "../../http/http.ts";
import { createParsePool } from "../../parsing/parse-pool.ts";
import type { World } from "../../platform/world.ts";
import { AllSuppressed } from "../shape.ts";
import { type CancelDeps, cancelEmail } from "./cancel.ts";
import * as emails from "./emails.ts";
import { type RetryDeps, retryEmail } from "./retry.ts";
import { EmailEvent, RecipientView, STATUSES } from "./shape.ts";
import { showContent } from "./show-content.ts";

const Email = Named(
  "Email",
  Type.Object({
    id: Id,
    message_id: Type.String({ description: "Without angle brackets" }),
    status: OneOf(STATUSES, { description: "A fold of the recipients' states" }),
    environment: Environment,
    from: Type.String(),
    to: Type.Array(Type.String()),
    cc: Type.Array(Type.String()),
    bcc: Type.Array(Type.String()),
    reply_to: Type.Array(Type.String()),
    subject: Type.String(),
    tags: Type.Array(Type.String()),
    metadata: Metadata,
    template_id: Nullable(Id),
    domain_id: Id,
    size: Type.Integer({ description: "Bytes of the message, unsigned" }),
    created_at: Time,
    scheduled_at: Nullable(Time),
    completed_at: Nullable(Time),
    recipients: Type.Array(RecipientView),
  }),
);

const Content = Named(
  "EmailContent",
  Type.Object({
    id: Id,
    message_id: Type.String(),
    headers: Type.Array(HeaderField),
    text_body: Nullable(Type.String()),
    html_body: Nullable(Type.String()),
    attachments: Type.Array(
      Named(
        "EmailAttachment",
        Type.Object({
          filename: Nullable(Type.String()),
          content_type: Type.String(),
          content_id: Nullable(Type.String()),
          size: Type.Integer(),
        }),
      ),
    ),
  }),
);

const tags = ["Sending"];
/** Starts with the first question, and only then costs memory. */
const PARSER = { size: 1, processor_ms: 10_000, memory_mib: 256 };

export type EmailRouteDeps = RetryDeps & CancelDeps;

/** Mounts the e-mail endpoints. */
export function mountEmails(api: Api, world: World, deps: EmailRouteDeps): void {
  mountReading(api, world);
  mountContent(api, world);
  mountChanging(api, world, deps);
}

function mountReading(api: Api, world: World): void {
  const text = Type.Optional(Type.String({ maxLength: 998 }));
  api.get(
    "/v1/emails",
    {
      schema: {
        operationId: "listEmails",
        tags,
        summary: "List sent e-mails, newest first",
        description: "Filters are combined. Mail of test keys is listed too, as `simulated`.",
        querystring: Closed({
          ...PageQuery,
          status: Type.Optional(OneOf(STATUSES)),
          from: text,
          to: text,
          subject: text,
          tag: Type.Optional(Type.String({ maxLength: 64 })),
          domain_id: Type.Optional(Type.String({ format: "uuid" })),
          environment: Type.Optional(Environment),
          message_id: text,
          from_date: Type.Optional(Type.String({ description: "A day or an RFC 3339 time, inclusive" })),
          to_date: Type.Optional(Type.String({ description: "A day or an RFC 3339 time, inclusive" })),
        }),
        response: answers({ 200: PageOf("emails", Email) }),
      },
    },
    async (request) => emails.listEmails(world, request.account.org_id, { ...request.query, ...pageOf(request.query) }),
  );

  api.get(
    "/v1/emails/:id",
    {
      schema: {
        operationId: "getEmail",
        tags,
        summary: "Get one e-mail, by id or Message-ID",
        description: "With each recipient and its own state. An e-mail of another organization is 404.",
        params: IdParams,
        response: answers({ 200: AnswerOf("email", Email) }, [404]),
      },
    },
    async (request) => ({ email: await emails.getEmail(world, request.account.org_id, request.params.id) }),
  );
}

function mountContent(api: Api, world: World): void {
  const parser = createParsePool(PARSER);
  api.addHook("onClose", () => parser.stop());
  api.get(
    "/v1/emails/:id/events",
    {
      schema: {
        operationId: "listEmailEvents",
        tags,
        summary: "The timeline of an e-mail, oldest first",
        description: "Each step of each recipient, with what servers said, word for word.",
        params: IdParams,
        response: answers({ 200: Type.Object({ events: Type.Array(EmailEvent) }) }, [404]),
      },
    },
    async (request) => ({ events: await emails.listEvents(world, request.account.org_id, request.params.id) }),
  );

  api.get(
    "/v1/emails/:id/content",
    {
      schema: {
        operationId: "getEmailContent",
        tags,
        summary: "The content of an e-mail; as it was built with `Accept: message/rfc822`",
        description:
          "Read from the message as it was built, before signing. 409 when its body is kept no longer. A test key cannot read live mail.",
        params: IdParams,
        response: answers(
          {
            200: {
              description: "The content",
              content: {
                "application/json": { schema: AnswerOf("content", Content) },
                "message/rfc822": { schema: Type.String({ format: "binary" }) },
              },
            } as never,
          },
          [404, 409],
        ),
      },
    },
    async (request, reply) => {
      await protectMail(world, request, "read live mail");
      const { row, mime } = await emails.loadContent(world, request.account.org_id, request.params.id);
      if (/message\/rfc822/i.test(request.headers.accept ?? "")) {
        reply.header("content-disposition", `attachment; filename="${row.id}.eml"`);
        reply.header("x-content-type-options", "nosniff");
        return reply
          .type("message/rfc822")
          .serializer((bytes: unknown) => bytes as string)
          .send(mime as never);
      }
      return { content: { id: row.id, message_id: row.message_id, ...(await showContent(parser, mime)) } };
    },
  );
}

function mountChanging(api: Api, world: World, deps: EmailRouteDeps): void {
  api.post(
    "/v1/emails/:id/retry",
    {
      schema: {
        operationId: "retryEmail",
        tags,
        summary: "Send again to recipients that failed, expired or bounced softly",
        description:
          "Under the rules of new mail: the sender's domain must be ready, quota and warming must have room (429), and who " +
          "is suppressed by now becomes `suppressed` (422 when that is everybody). `attempts` of a recipient counts on.",
        params: IdParams,
        response: answers(
          {
            200: AnswerOf("email", Email),
            422: Type.Unsafe({ ...AllSuppressed, description: "All recipients are suppressed" }),
          },
          [404, 409],
        ),
      },
    },
    async (request) => ({ email: await retryEmail(world, deps, request.account, request.params.id) }),
  );

  api.post(
    "/v1/emails/:id/cancel",
    {
      schema: {
        operationId: "cancelEmail",
        tags,
        summary: "Cancel mail that was not attempted yet",
        description: "For mail that is scheduled or queued. 409 once an attempt was made.",
        params: IdParams,
        response: answers({ 200: AnswerOf("email", Email) }, [404, 409]),
      },
    },
    async (request) => {
      await protectMail(world, request, "cancel live mail");
      return { email: await cancelEmail(world, deps, request.account, request.params.id) };
    },
  );
}

type OfMail = { account: Account; params: { id: string } };

function protectMail(world: World, { account, params }: OfMail, what: string): Promise<void> {
  return protectLive(account, what, () => emails.environmentOf(world, account.org_id, params.id));
}
