// /v1/masked/failed
import { Type } from "typebox";
import {
  type Account,
  type Api,
  answers,
  Closed,
  Deleted,
  Id,
  IdParams,
  Named,
  Nullable,
  OneOf,
  PageOf,
  PageQuery,
  pageOf,
  Time,
} from "../../http/http.ts";
import { isUuid } from "../../platform/database/db.ts";
import { notFound, Refusal } from "../../platform/refusal.ts";
import { tooSoon } from "../addresses/destinations.ts";
import type { CarryWorld } from "../carry/carry.ts";
import type { BouncePorts } from "../settle/ports.ts";
import { deleteFailed, findKept, listFailed, openFailed, type SentAgain, sendAgain } from "./failed.ts";
import { sendMessage, withEncrypting } from "./failed-pages.ts";
import { FAILED_KINDS } from "./failed-queries.ts";

const tags = ["Masked aliases"];
const params = IdParams;

const Failed = Named(
  "MaskedFailed",
  Type.Object({
    id: Id,
    alias_id: Id,
    alias: Type.String({ description: "The full address" }),
    kind: OneOf(FAILED_KINDS, { description: "Which way it went: forwarded to a mailbox, or a reply" }),
    contact: Nullable(Type.String()),
    destination: Nullable(Type.String()),
    reason: Type.String({ description: "As the activity has it" }),
    size: Type.Integer(),
    created_at: Time,
    expires_at: Time,
  }),
);

/** Mounts the endpoints of mail that failed. */
export function mountFailed(api: Api, world: CarryWorld, ports: BouncePorts): void {
  mountReading(api, world);
  const again = withEncrypting(api, ports);
  api.post(
    "/v1/masked/failed/:id/send",
    {
      schema: {
        operationId: "sendMaskedFailed",
        tags,
        summary: "Send it again, to whom it was for; once",
        description:
          "Under the rules and limits of now. 409 where the alias, its replies or the mailbox is off, or a reply shows a mailbox that the alias got since. If it fails again, it is kept again.",
        params,
        response: answers({ 200: Type.Object({ sent: Type.Boolean(), id: Id }) }, [404, 409]),
      },
    },
    async ({ account, params: { id } }) => {
      await mustFind(world, account, id);
      const sent = await sendAgain(world, again, { org_id: account.org_id, id });
      if (sent.done !== "sent") throw refusalOf(sent, world.clock.now());
      return { sent: true, id };
    },
  );
  api.delete(
    "/v1/masked/failed/:id",
    {
      schema: {
        operationId: "deleteMaskedFailed",
        tags,
        summary: "Delete mail that failed",
        description: "It cannot be sent again.",
        params,
        response: answers({ 200: Deleted }, [404]),
      },
    },
    async ({ account, params: { id } }) => {
      const { row } = await mustFind(world, account, id);
      await deleteFailed(world, ports, row);
      return { deleted: true, id };
    },
  );
}

function mountReading(api: Api, world: CarryWorld): void {
  api.get(
    "/v1/masked/failed",
    {
      schema: {
        operationId: "listMaskedFailed",
        tags,
        summary: "List mail that failed for good and is kept for seven days, newest first",
        description:
          "forward: a mailbox's server did not take it. reply: a contact's did not. At most ten of an alias, of 25 MiB each.",
        querystring: Closed({
          ...PageQuery,
          alias_id: Type.Optional(Id),
          kind: Type.Optional(OneOf(FAILED_KINDS, { description: "Which way it went" })),
        }),
        response: answers({ 200: PageOf("failed", Failed) }),
      },
    },
    async ({ account, query }) => listFailed(world, account, query, pageOf(query)),
  );
  api.get(
    "/v1/masked/failed/:id/raw",
    {
      schema: {
        operationId: "getMaskedFailedRaw",
        tags,
        summary: "Download it as it would have left",
        description: "Byte for byte, before signing.",
        params,
        response: answers(
          {
            200: {
              description: "The content",
              content: { "message/rfc822": { schema: Type.String({ format: "binary" }) } },
            } as never,
          },
          [404],
        ),
      },
    },
    async ({ account, params: { id } }, reply) => {
      const { row } = await mustFind(world, account, id);
      const bytes = await openFailed(world, row);
      if (bytes === null) throw notFound("mail that failed");
      return sendMessage(reply, id, bytes);
    },
  );
}

async function mustFind(world: CarryWorld, { org_id, environment }: Account, id: string) {
  const kept = isUuid(id) ? await findKept(world, { org_id, id }) : null;
  if (!kept || kept.row.environment !== environment) throw notFound("mail that failed");
  return kept;
}

function refusalOf(sent: SentAgain, now: number): Refusal {
  switch (sent.done) {
    case "off":
      return new Refusal("invalid_state", "the alias, its replies or its mailbox is switched off or not confirmed");
    case "held":
      return new Refusal("invalid_state", "the reply shows a mailbox that the alias has had only since it was written");
    case "unsealed":
      return new Refusal("invalid_state", "the forward could not be encrypted for the key of its mailbox");
    case "later": {
      const { whose, type, most, span_ms } = sent.over;
      return tooSoon(`too much mail passes through the ${whose}`, type, most, span_ms - (now % span_ms));
    }
    default:
      return notFound("mail that failed");
  }
}
