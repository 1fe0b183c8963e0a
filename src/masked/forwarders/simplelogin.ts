// The alias part of SimpleLogin's API (https://github.com/simple-login/app/blob/master/docs/api.md), so that password managers
// and browser extensions that know that service make masked addresses here. Ids are UUIDs where theirs are numbers.
import { timingSafeEqual } from "node:crypto";
import type { FastifyRequest } from "fastify";
import { type Static, Type } from "typebox";
import { type Api, IdParams } from "../../http/http.ts";
import { invalid } from "../../platform/refusal.ts";
import { newLocalPart } from "../addresses/addresses.ts";
import type { AliasPorts } from "../addresses/aliases.ts";
import type { AliasRecord } from "../types.ts";
import { type OwnAliases, type OwnWorld, ownAliases, switchAlias } from "./own-aliases.ts";

const PAGE_SIZE = 20;
const BODY_BYTES_MAX = 16_384;
const SUFFIX_LENGTH = 5;
const SUFFIX_CONTEXT = "masked-suffix";

const Text = (maxLength: number) => Type.Optional(Type.Union([Type.String({ maxLength }), Type.Null()]));
const Note = { note: Text(500), name: Text(100) };
const Hostname = Type.Object({ hostname: Type.Optional(Type.String({ maxLength: 253 })) });

/** Mounts them under /api; the scope has seen to the key. */
export function mountSimpleLogin(api: Api, world: OwnWorld, ports: AliasPorts): void {
  const own = (request: FastifyRequest) => ownAliases(world, ports, request.account);
  mountCreating(api, world, own);
  mountLists(api, own);
  mountOne(api, own);
  api.get("/api/user_info", { schema: { hide: true } }, async (request) => {
    const { email } = (await own(request)).mailbox;
    return { name: request.account.key_name, email, is_premium: true, in_trial: false, profile_picture_url: null };
  });
}

type Own = (request: FastifyRequest) => Promise<OwnAliases>;

function mountCreating(api: Api, world: OwnWorld, own: Own): void {
  const random = Type.Object({
    hostname: Type.Optional(Type.String({ maxLength: 253 })),
    mode: Type.Optional(Type.String({ maxLength: 16 })),
  });
  api.post(
    "/api/alias/random/new",
    {
      bodyLimit: BODY_BYTES_MAX,
      schema: {
        hide: true,
        operationId: "createMaskedAlias",
        querystring: random,
        body: Type.Optional(Type.Union([Type.Object(Note), Type.Null()])),
      },
    },
    async (request, reply) => {
      const { hostname, mode } = request.query;
      const mine = await own(request);
      const format = mode === "uuid" ? "uuid" : mode === "word" ? "words" : "random";
      const made = await mine.create({ format, description: request.body?.note || hostname || null });
      return reply.code(201).send(created(made, mine));
    },
  );

  api.get("/api/v5/alias/options", { schema: { hide: true, querystring: Hostname } }, async (request) => {
    const { mailbox } = await own(request);
    const tail = newLocalPart(world.random, "random").slice(0, SUFFIX_LENGTH);
    const suffix = `.${tail}@${world.config.masked_domain}`;
    const signed_suffix = `${suffix}.${proofOf(world, mailbox.id, suffix)}`;
    const labels = (request.query.hostname ?? "").split(".");
    return {
      can_create: true,
      prefix_suggestion: (labels.at(-2) ?? labels[0] ?? "").toLowerCase().replace(/[^a-z0-9-]/g, ""),
      suffixes: [{ suffix, signed_suffix, is_custom: false, is_premium: false }],
    };
  });

  const custom = Type.Object({
    alias_prefix: Type.String({ minLength: 1, maxLength: 50 }),
    signed_suffix: Type.String({ maxLength: 500 }),
    ...Note,
  });
  for (const version of ["v2", "v3"]) {
    api.post(
      `/api/${version}/alias/custom/new`,
      {
        bodyLimit: BODY_BYTES_MAX,
        schema: { hide: true, operationId: "createMaskedAlias", querystring: Hostname, body: custom },
      },
      async (request, reply) => {
        const { alias_prefix, signed_suffix, note, name } = request.body;
        const mine = await own(request);
        const suffix = readSuffix(world, mine, signed_suffix);
        const description = note || request.query.hostname || null;
        const local_part = `${alias_prefix}${suffix.slice(0, suffix.indexOf("@"))}`;
        const made = await mine.create({ local_part, description, display_name: name ?? null });
        return reply.code(201).send(created(made, mine));
      },
    );
  }
}

function proofOf({ seal }: OwnWorld, mailboxId: string, suffix: string): string {
  return seal.hash(`${mailboxId} ${suffix}`, SUFFIX_CONTEXT).toString("hex");
}

/** The suffix that we offered to this mailbox; 400 for any other. */
function readSuffix(world: OwnWorld, { mailbox }: OwnAliases, signed: string): string {
  const dot = signed.lastIndexOf(".");
  const suffix = signed.slice(0, dot);
  const proof = Buffer.from(proofOf(world, mailbox.id, suffix));
  const given = Buffer.from(signed.slice(dot + 1));
  if (given.length === proof.length && timingSafeEqual(given, proof)) return suffix;
  throw invalid("signed_suffix", "the 'signed_suffix' field is none that GET /api/v5/alias/options gave to this key");
}

function mountLists(api: Api, own: Own): void {
  const query = Type.Object({
    page_id: Type.Optional(Type.Integer({ minimum: 0, maximum: 100_000 })),
    enabled: Type.Optional(Type.String({ maxLength: 16 })),
    disabled: Type.Optional(Type.String({ maxLength: 16 })),
  });
  const list = async (request: FastifyRequest, q?: string | null) => {
    const { page_id = 0, enabled, disabled } = request.query as Static<typeof query>;
    const mine = await own(request);
    const active = enabled === undefined ? (disabled === undefined ? {} : { active: false }) : { active: true };
    const page = { limit: PAGE_SIZE, offset: page_id * PAGE_SIZE };
    const { aliases } = await mine.list({ ...active, ...(q ? { q } : {}) }, page);
    return { aliases: aliases.map((alias) => shown(alias, mine)) };
  };
  api.get("/api/v2/aliases", { schema: { hide: true, querystring: query } }, async (request) => list(request));
  const body = Type.Optional(Type.Union([Type.Object({ query: Text(320) }), Type.Null()]));
  const schema = { hide: true, querystring: query, body };
  api.post("/api/v2/aliases", { bodyLimit: BODY_BYTES_MAX, schema }, async (request) =>
    list(request, request.body?.query),
  );
  api.get("/api/v2/mailboxes", { schema: { hide: true } }, async (request) => {
    const { id, email, status, aliases, created_at } = (await own(request)).mailbox;
    const creation_timestamp = secondsOf(created_at);
    return {
      mailboxes: [{ id, email, default: true, verified: status === "verified", nb_alias: aliases, creation_timestamp }],
    };
  });
}

function mountOne(api: Api, own: Own): void {
  const schema = { hide: true, params: IdParams };
  api.get("/api/aliases/:id", { schema }, async (request) => {
    const mine = await own(request);
    return shown(await mine.get(request.params.id), mine);
  });
  api.delete("/api/aliases/:id", { schema: { ...schema, operationId: "deleteMaskedAlias" } }, async (request) => {
    await (await own(request)).remove(request.params.id);
    return { deleted: true };
  });
  api.post(
    "/api/aliases/:id/toggle",
    { bodyLimit: BODY_BYTES_MAX, schema: { ...schema, operationId: "updateMaskedAlias" } },
    async (request) => {
      const mine = await own(request);
      const before = await mine.get(request.params.id);
      return { enabled: (await switchAlias(request, mine, { before, active: !before.active })).active };
    },
  );
  for (const method of ["PATCH", "PUT"] as const) {
    api.route({
      method,
      url: "/api/aliases/:id",
      bodyLimit: BODY_BYTES_MAX,
      schema: { ...schema, operationId: "updateMaskedAlias", body: Type.Object(Note) },
      handler: async (request) => {
        const { note, name } = request.body;
        const description = note === undefined ? {} : { description: note };
        const display = name === undefined ? {} : { display_name: name };
        await (await own(request)).change(request.params.id, { ...description, ...display });
        return { ok: true };
      },
    });
  }
}

/** An answer to a creation names the address once more, as `alias`: clients read that alone. */
function created(alias: AliasRecord, mine: OwnAliases) {
  return { alias: alias.email, ...shown(alias, mine) };
}

function shown(alias: AliasRecord, { mailbox }: OwnAliases) {
  const of = { id: mailbox.id, email: mailbox.email };
  return {
    id: alias.id,
    email: alias.email,
    name: alias.display_name,
    enabled: alias.active,
    creation_date: `${alias.created_at.toISOString().slice(0, 19).replace("T", " ")}+00:00`,
    creation_timestamp: secondsOf(alias.created_at),
    note: alias.masked_description,
    nb_block: alias.emails_blocked,
    nb_forward: alias.emails_forwarded,
    nb_reply: alias.emails_replied,
    mailbox: of,
    mailboxes: [of],
    support_pgp: false,
    disable_pgp: false,
    latest_activity: null,
    pinned: false,
  };
}

function secondsOf(time: Date): number {
  return Math.floor(time.getTime() / 1000);
}
