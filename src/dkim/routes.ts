// /v1/domains/{id}/dkim

import type { FastifyRequest } from "fastify";
import { Type } from "typebox";
import type { DomainPorts } from "../domains/types.ts";
import { CHECK_STATUSES } from "../domains/types.ts";
import { type Api, answers, Closed, Named, Nullable, OneOf, Time } from "../http/http.ts";
import type { World } from "../platform/world.ts";
import * as dkim from "./dkim.ts";
import { ALGORITHMS, KEY_STATUSES } from "./types.ts";

const Key = Named(
  "DkimKey",
  Type.Object({
    selector: Type.String(),
    domain: Type.String(),
    algorithm: OneOf(ALGORITHMS),
    public_key: Type.String({ description: "As in p= of the record: base64" }),
    status: OneOf(KEY_STATUSES, {
      description:
        "pending: waits for its DNS record. active: signs. retiring: replaced; its record must stay until retires_at. deactivated: ended",
    }),
    active: Type.Boolean(),
    verified: Type.Boolean({ description: "The last check saw its record" }),
    created_at: Time,
    activated_at: Nullable(Time),
    retires_at: Nullable(Time),
    deactivated_at: Nullable(Time),
  }),
);

const txt = { type: OneOf(["TXT"]), name: Type.String(), value: Type.String() };
const KeyAnswer = Named(
  "DkimKeyAnswer",
  Type.Object({ key: Key, dns_record: Named("DkimRecord", Type.Object(txt)), message: Type.String() }),
);

const id = Type.String({ maxLength: 1024, description: "The domain's id or its name" });
const Selector = Type.String({ minLength: 1, maxLength: 63 });
const tags = ["DKIM"];

/** Mounts the DKIM endpoints. `ports`: the same as those of the domains feature, whose checks do the looking up. */
export function mountDkim(api: Api, world: World, ports: DomainPorts): void {
  mountKeys(api, world);
  mountRotation(api, world);
  mountChecks(api, world, ports);
}

/** Every field of the body is optional, so that the body may be left out. */
async function allowNoBody(request: FastifyRequest): Promise<void> {
  request.body ??= {};
}

function mountKeys(api: Api, world: World): void {
  api.post(
    "/v1/domains/:id/dkim",
    {
      preValidation: allowNoBody,
      config: { live_domain_only: "change DKIM keys of a live domain" },
      schema: {
        operationId: "createDkimKey",
        tags,
        summary: "Make a DKIM key; it signs once DNS shows its record",
        description:
          "A domain that sends is made with a key, `postern1`, whose record stands among its DNS records. Until DNS has " +
          "shown it, the first to ask for a key without a selector, or with that one, gets this key, or in its place " +
          "one of the algorithm asked for. Each further call makes another.",
        params: Type.Object({ id }),
        body: Nullable(
          Closed({
            selector: Type.Optional({
              ...Selector,
              description: "Default: postern1, then postern2, …; one that the domain has or had is 409",
            }),
            algorithm: Type.Optional(OneOf(ALGORITHMS, { default: "rsa", description: "rsa has 2048 bits" })),
          }),
        ),
        response: answers({ 201: KeyAnswer }, [404, 409]),
      },
    },
    async (request, reply) =>
      reply.code(201).send(await dkim.createKey(world, request.account.org_id, request.params.id, request.body ?? {})),
  );

  api.get(
    "/v1/domains/:id/dkim",
    {
      schema: {
        operationId: "listDkimKeys",
        tags,
        summary: "All keys of a domain, newest first, and the records of those in use",
        description: "Keys that ended are listed too; `dns_records` has those that must be published now.",
        params: Type.Object({ id }),
        response: answers(
          {
            200: Type.Object({
              domain: Type.String(),
              keys: Type.Array(Key),
              dns_records: Type.Array(Named("DkimKeyRecord", Type.Object({ ...txt, selector: Type.String() }))),
            }),
          },
          [404],
        ),
      },
    },
    async (request) => dkim.listKeys(world, request.account.org_id, request.params.id),
  );
}

function mountRotation(api: Api, world: World): void {
  api.post(
    "/v1/domains/:id/dkim/rotate",
    {
      config: { live_domain_only: "change DKIM keys of a live domain" },
      schema: {
        operationId: "rotateDkimKey",
        tags,
        summary: "Make a successor of a key; the old one signs until DNS shows the new one",
        description:
          "The successor has the old key's algorithm. Once DNS shows it, an active old key is `retiring` for 7 days, in " +
          "which its record must stay; an old key that is still `pending` is `deactivated`. 409 when `new_selector` was used " +
          "before, and when the old key has a successor already or has ended.",
        params: Type.Object({ id }),
        body: Closed({ old_selector: Selector, new_selector: Selector }),
        response: answers({ 200: KeyAnswer }, [404, 409]),
      },
    },
    async (request) => dkim.rotateKey(world, request.account.org_id, request.params.id, request.body),
  );

  api.delete(
    "/v1/domains/:id/dkim/:selector",
    {
      config: { live_domain_only: "change DKIM keys of a live domain" },
      schema: {
        operationId: "deactivateDkimKey",
        tags,
        summary: "End a key at once; answered when nothing is signed with it any more",
        description:
          "Nothing is signed with the key any more when this answers. Its DNS record may then be removed. The only active key is 409 unless `force` is true.",
        params: Type.Object({ id, selector: Type.String({ maxLength: 253 }) }),
        querystring: Closed({
          force: Type.Optional(Type.Boolean({ default: false, description: "End even the only active key" })),
        }),
        response: answers({ 200: Type.Object({ deleted: Type.Boolean(), id: Type.String(), key: Key }) }, [404, 409]),
      },
    },
    async (request) => {
      const ending = { selector: request.params.selector, force: request.query.force ?? false };
      const key = await dkim.deactivateKey(world, request.account.org_id, request.params.id, ending);
      return { deleted: true, id: key.selector, key };
    },
  );
}

function mountChecks(api: Api, world: World, ports: DomainPorts): void {
  const KeyCheck = Named(
    "DkimKeyCheck",
    Type.Object({
      selector: Type.String(),
      verified: Type.Boolean(),
      status: OneOf(CHECK_STATUSES),
      found: Type.Array(Type.String()),
      hint: Nullable(Type.String()),
    }),
  );
  api.post(
    "/v1/domains/:id/dkim/verify",
    {
      schema: {
        operationId: "verifyDkimKeys",
        tags,
        summary: "Check the DNS records of all keys in use now; a pending key that is there becomes active",
        description:
          "Looks at the records in DNS at once. Nothing is lost when one is missing: the answer says what was found.",
        params: Type.Object({ id }),
        response: answers({ 200: Type.Object({ domain: Type.String(), keys: Type.Array(KeyCheck) }) }, [404]),
      },
    },
    async (request) => dkim.verifyKeys(world, ports, request.account.org_id, request.params.id),
  );
}
