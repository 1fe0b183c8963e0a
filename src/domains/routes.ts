// /v1/domains
import { Type } from "typebox";
import { requirePlan } from "../accounts/accounts.ts";
import {
  type Api,
  answers,
  Closed,
  Deleted,
  Extended,
  Id,
  IdParams,
  Named,
  Nullable,
  OneOf,
  PageOf,
  PageQuery,
  pageOf,
  Time,
} from "../http/http.ts";
import type { World } from "../platform/world.ts";
import * as domains from "./domains.ts";
import { showDomain, showDomains, withLimits } from "./shown.ts";
import { CHECK_STATUSES, DOMAIN_STATUSES, DOMAIN_TYPES, type DomainPorts, PURPOSES, TLS_POLICIES } from "./types.ts";

const WEBHOOK_IDS_MAX = 20;

const Types = Named(
  "DomainType",
  OneOf(DOMAIN_TYPES, {
    description:
      "Decides which records are required: outbound ownership, SPF and DKIM; inbound and alias ownership and MX; both all four",
  }),
);

const Domain = Named(
  "Domain",
  Type.Object({
    id: Id,
    domain: Type.String({ description: "ASCII (A-labels), lower case" }),
    type: Types,
    verified: Type.Boolean({ description: "Status verified, or degraded for less than 72 hours" }),
    ownership_verified: Type.Boolean(),
    mx_verified: Type.Boolean(),
    spf_verified: Type.Boolean(),
    dkim_verified: Type.Boolean({ description: "DNS shows the record of an active key" }),
    dmarc_verified: Type.Boolean({
      description: "A valid DMARC record sends us its reports; recommended, never required",
    }),
    return_path_verified: Type.Boolean({ description: "Recommended, never required: SPF aligns through it" }),
    status: OneOf(DOMAIN_STATUSES, {
      description:
        "pending: not verified yet. degraded: a required record was gone on two checks at least 10 minutes apart; sends for 72 hours more. failed: not verified for 14 days. A good check makes any of them verified",
    }),
    catch_all_enabled: Type.Boolean(),
    catch_all_webhook_ids: Type.Array(Id),
    active: Type.Boolean({ description: "false: neither sends nor receives; what waits goes on waiting" }),
    tls_policy: OneOf(TLS_POLICIES, { description: "require: mail from this domain is never delivered without TLS" }),
    ip_pool: Nullable(Type.String()),
    last_dns_check: Nullable(Time),
    next_check_at: Time,
    verified_at: Nullable(Time),
    created_at: Time,
    updated_at: Time,
    warming: Nullable(
      Named(
        "DomainLimits",
        Type.Object({
          phase: Type.String(),
          daily_limit: Nullable(Type.Integer()),
          hourly_limit: Nullable(Type.Integer()),
          per_minute_limit: Nullable(Type.Integer()),
          hint: Nullable(Type.String({ description: "What the limits are and what lifts them" })),
        }),
      ),
    ),
  }),
);

const DnsRecord = Named(
  "DnsRecord",
  Type.Object({
    purpose: OneOf(PURPOSES),
    type: OneOf(["TXT", "MX", "CNAME"]),
    name: Type.String({ description: "The full name, without final dot" }),
    value: Type.String(),
    priority: Nullable(Type.Integer()),
    ttl: Type.Integer({ description: "Seconds; a suggestion" }),
    required: Type.Boolean(),
    status: OneOf(CHECK_STATUSES, {
      description:
        "missing: not there. error: the name servers could not be asked, which changes nothing. unchecked: not yet asked",
    }),
    found: Type.Array(Type.String(), { description: "What stands there now" }),
    hint: Nullable(Type.String({ description: "What to do, in plain words" })),
    checked_at: Nullable(Time),
  }),
);

const Params = {
  ...IdParams,
  properties: { id: Type.String({ maxLength: 1024, description: "The domain's id or its name" }) },
} as typeof IdParams;
const tags = ["Domains"];

/** Mounts the domains endpoints. `ports`: what domains need of features to the right. */
export function mountDomains(api: Api, world: World, ports: DomainPorts): void {
  mountCollection(api, world, ports);
  mountDomain(api, world, ports);
  mountRemoval(api, world, ports);
  mountDns(api, world, ports);
}

function mountCollection(api: Api, world: World, ports: DomainPorts): void {
  api.post(
    "/v1/domains",
    {
      schema: {
        operationId: "createDomain",
        tags,
        summary: "Add a domain; one that sends gets its first DKIM key (RSA, selector postern1) with it",
        description:
          "The domain is `pending` until DNS shows its records: publish what `GET /v1/domains/{id}/dns` lists, then call verify. Several organizations may add the same domain, and one of them can verify it.",
        body: Closed({
          domain: Type.String({ minLength: 1, maxLength: 1024 }),
          type: Type.Optional({ ...Types, default: "inbound" }),
          catch_all_enabled: Type.Optional(Type.Boolean({ default: false })),
          inbound_mx_acknowledged: Type.Optional(
            Type.Boolean({
              default: false,
              description: "You know that publishing our MX moves all mail of the domain",
            }),
          ),
          warming: Type.Optional({
            ...OneOf(["auto", "warmed"]),
            default: "auto",
            description:
              "warmed: mailbox providers know the domain already, it sends without the limits of its first weeks",
          }),
        }),
        response: answers({ 201: Domain }, [409]),
      },
    },
    async (request, reply) => {
      const created = await domains.createDomain(world, ports, request.account, request.body);
      return reply.code(201).send(await showDomain(world, ports, request.account.org_id, created));
    },
  );

  api.get(
    "/v1/domains",
    {
      schema: {
        operationId: "listDomains",
        tags,
        summary: "List domains, newest first",
        description: "Each with its state and its sending limits.",
        querystring: Closed(PageQuery),
        response: answers({ 200: PageOf("domains", Domain) }),
      },
    },
    async (request) => {
      const { org_id } = request.account;
      const page = await domains.listDomains(world, org_id, pageOf(request.query));
      return { ...page, domains: await showDomains(world, ports, org_id, page.domains) };
    },
  );
}

const Removal = Closed({
  force: Type.Optional(
    Type.Boolean({ default: false, description: "Remove it although aliases or queued mail need it" }),
  ),
});

function mountDomain(api: Api, world: World, ports: DomainPorts): void {
  api.get(
    "/v1/domains/:id",
    {
      schema: {
        operationId: "getDomain",
        tags,
        summary: "Get a domain by id or name",
        description:
          "The state as the last check found it. A check is made by verify, and by itself: every 5 minutes at first, later daily.",
        params: Params,
        response: answers({ 200: Domain }, [404]),
      },
    },
    async ({ account: { org_id }, params }) =>
      showDomain(world, ports, org_id, await domains.getDomain(world, org_id, params.id)),
  );

  api.put(
    "/v1/domains/:id",
    {
      config: { live_domain_only: "change a live domain" },
      schema: {
        operationId: "updateDomain",
        tags,
        summary: "Change the given fields; another type asks for other records",
        description:
          "What is left out stays. Another type may ask for further DNS records before the domain is verified again.",
        params: Params,
        body: Closed({
          type: Type.Optional(Types),
          catch_all_enabled: Type.Optional(Type.Boolean()),
          catch_all_webhook_ids: Type.Optional(Type.Array(Id, { maxItems: WEBHOOK_IDS_MAX, uniqueItems: true })),
          active: Type.Optional(Type.Boolean()),
          tls_policy: Type.Optional(OneOf(TLS_POLICIES)),
          ip_pool: Type.Optional(
            Nullable(
              Type.String({
                pattern: "^[a-z0-9][a-z0-9_-]{0,62}$",
                description: "Addresses to send from; needs Scale or Enterprise. null: the shared ones",
              }),
            ),
          ),
        }),
        response: answers({ 200: Domain }, [404]),
      },
    },
    async ({ account, body, params }) => {
      if (body.ip_pool) requirePlan(account, "dedicated_ips");
      const updated = await domains.updateDomain(world, ports, account.org_id, { id: params.id, changes: body });
      return showDomain(world, ports, account.org_id, updated);
    },
  );
}

function mountRemoval(api: Api, world: World, ports: DomainPorts): void {
  api.delete(
    "/v1/domains/:id",
    {
      config: { live_domain_only: "delete a live domain" },
      schema: {
        operationId: "deleteDomain",
        tags,
        summary: "Remove a domain and its DKIM keys; answered when nothing is signed with them any more",
        description: "Mail that waits for a domain which was removed with `force` becomes `failed` when it is due.",
        params: Params,
        querystring: Removal,
        response: answers({ 200: Deleted }, [404, 409]),
      },
    },
    async (request) => {
      const removal = { id: request.params.id, force: request.query.force ?? false };
      return { deleted: true, id: await domains.deleteDomain(world, ports, request.account.org_id, removal) };
    },
  );
}

function mountDns(api: Api, world: World, ports: DomainPorts): void {
  api.get(
    "/v1/domains/:id/dns",
    {
      schema: {
        operationId: "listDomainDnsRecords",
        tags,
        summary: "The DNS records to publish, and what the last check saw of each",
        description: "What to publish, and what the last check saw of each. Nothing is looked up by this call.",
        params: Params,
        response: answers({ 200: Type.Object({ domain: Type.String(), records: Type.Array(DnsRecord) }) }, [404]),
      },
    },
    async (request) => domains.listDnsRecords(world, ports, request.account.org_id, request.params.id),
  );

  api.post(
    "/v1/domains/:id/verify",
    {
      schema: {
        operationId: "verifyDomain",
        tags,
        summary: "Check the DNS records now: a check, never a reset; 200 also when records are missing",
        description:
          "SPF is evaluated as receivers do (RFC 7208), for the From domain and for the envelope, from the addresses that mail " +
          "leaves from. What the domain's owner has to correct makes the record a `mismatch`. What the operator of this service " +
          "has to mend leaves it `ok`: the record's `hint` and the `summary` say so.",
        params: Params,
        response: answers(
          {
            200: Extended("VerifiedDomain", Domain, {
              summary: Type.String({ description: "Where the domain stands, in a sentence or two" }),
              records: Type.Array(DnsRecord),
            }),
          },
          [404, 409],
        ),
      },
    },
    async (request) => {
      const { org_id } = request.account;
      const verified = await domains.verifyDomain(world, ports, org_id, request.params.id);
      return withLimits(await showDomain(world, ports, org_id, verified));
    },
  );
}
