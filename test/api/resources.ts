// How a test makes what a path of the API names, and which body an operation needs: the table behind isolation.test.ts.
// A new route needs one line here when its path names something new (RESOURCES) or its body has required fields
// (BODIES). Everything is marked with `mark`, so that a leak is found by searching for it.
import { insertFailed } from "../../src/masked/held/failed-queries.ts";
import type { TestApi } from "../support/api.ts";
import type { DnsServer } from "../support/dns-server.ts";
import { PGP_PUBLIC_KEY } from "../support/pgp-key.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

/** Path parameters; several ways of naming the same thing (id, slug, address) are several of these. */
export type Names = Record<string, string>;

export type Owner = {
  api: TestApi;
  dns: DnsServer;
  key: string;
  /** For what a test key may not make: relays and pools. */
  live_key: string;
  /** Part of every name, text and address this owner makes. */
  mark: string;
  /** A verified domain that sends and receives, made once, and again after `forget`. */
  domain(): Promise<{ id: string; domain: string }>;
  /** The domain was deleted. */
  forget(): void;
};

type Make = (owner: Owner) => Promise<Names[]>;

let made = 0;

async function create(owner: Owner, path: string, body: unknown, key = owner.key) {
  const answer = await owner.api.ask("POST", path, body, { key });
  if (answer.status >= 300) throw new Error(`POST ${path} answers ${answer.status}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

/** A name that was not used before. */
function fresh(owner: Owner): string {
  made += 1;
  return `${owner.mark}${made}`;
}

async function makeEmail(owner: Owner): Promise<Names[]> {
  const { domain } = await owner.domain();
  const body = await create(owner, "/v1/send", {
    from: `${owner.mark} <${owner.mark}@${domain}>`,
    to: [`${owner.mark}@recipient.example`],
    subject: owner.mark,
    text_body: owner.mark,
    tags: [owner.mark],
    metadata: { note: owner.mark },
  });
  return [{ id: body.id }, { id: body.message_id }, { id: `<${body.message_id}>` }];
}

async function makeWebhook(owner: Owner): Promise<Names[]> {
  const url = `https://${fresh(owner)}.receiver.example/hook`;
  const { webhook } = await create(owner, "/v1/webhooks", { url, events: ["email.delivered"] });
  return [{ id: webhook.id }];
}

async function makeWebhookDelivery(owner: Owner): Promise<Names[]> {
  const [webhook] = await makeWebhook(owner);
  const { delivery } = await create(owner, `/v1/webhooks/${webhook?.id}/test`, undefined);
  return [{ id: delivery.id }];
}

async function makeTemplate(owner: Owner): Promise<Names[]> {
  const slug = fresh(owner);
  const body = { name: owner.mark, slug, subject: `${owner.mark} {{name}}`, html_body: `<p>${owner.mark}</p>` };
  const { template } = await create(owner, "/v1/templates", body);
  return [{ id: template.id }, { id: slug }];
}

async function makeTemplateVersion(owner: Owner): Promise<Names[]> {
  return (await makeTemplate(owner)).map((names) => ({ ...names, version: "1" }));
}

async function makeSuppression(owner: Owner): Promise<Names[]> {
  const email = `${fresh(owner)}@recipient.example`;
  const { suppression } = await create(owner, "/v1/suppressions", { email, note: owner.mark });
  return [{ identifier: suppression.id }, { identifier: email }];
}

async function makeImportJob(owner: Owner): Promise<Names[]> {
  const csv = `email,reason\n${fresh(owner)}@recipient.example,bounce\n`;
  const { job } = await create(owner, "/v1/imports/suppressions/preview", { csv, provider: "custom" });
  return [{ id: job.id }];
}

async function makeKey(owner: Owner): Promise<Names[]> {
  const { key } = await create(owner, "/v1/api-keys", { name: owner.mark, environment: "test" });
  return [{ id: key.id }];
}

async function makeAlias(owner: Owner): Promise<Names[]> {
  const { id } = await owner.domain();
  const body = { domain_id: id, local_part: fresh(owner), action: "store", description: owner.mark };
  const { alias } = await create(owner, "/v1/aliases", body);
  return [{ id: alias.id }];
}

async function makeInbound(owner: Owner): Promise<Names[]> {
  const { id, domain } = await owner.domain();
  const local = fresh(owner);
  await create(owner, "/v1/aliases", { domain_id: id, local_part: local, action: "store" });
  const { email } = await create(owner, "/v1/inbound-emails/simulate", {
    from: `${owner.mark}@contact.example`,
    to: [`${local}@${domain}`],
    subject: owner.mark,
    text: owner.mark,
    attachments: [{ filename: `${owner.mark}.txt`, content: Buffer.from(owner.mark).toString("base64") }],
  });
  return [{ id: email.id, attachment_id: email.attachments[0].id }];
}

async function makeRule(owner: Owner): Promise<Names[]> {
  const { id } = await owner.domain();
  const { rule } = await create(owner, `/v1/domains/${id}/rules`, ruleBody(owner));
  return [{ id: rule.id }];
}

function ruleBody({ mark }: Owner): object {
  return { name: mark, conditions: [{ field: "subject", comparator: "equals", value: mark }], action: "store" };
}

async function makeMaskedAlias(owner: Owner): Promise<Names[]> {
  const forward_to = [`${fresh(owner)}@mailbox.example`];
  const { alias } = await create(owner, "/v1/masked/aliases", { forward_to, description: owner.mark });
  return [{ id: alias.id }];
}

async function makeMaskedContact(owner: Owner): Promise<Names[]> {
  const [alias] = await makeMaskedAlias(owner);
  const email = `${fresh(owner)}@contact.example`;
  const { contact } = await create(owner, `/v1/masked/aliases/${alias?.id}/contacts`, { email });
  return [{ ...alias, contact_id: contact.id }];
}

async function makeMaskedDestination(owner: Owner): Promise<Names[]> {
  const { destination } = await create(owner, "/v1/masked/destinations", { email: `${fresh(owner)}@mailbox.example` });
  return [{ id: destination.id }];
}

async function makeMaskedPgpKey(owner: Owner): Promise<Names[]> {
  const names = await makeMaskedDestination(owner);
  const path = `/v1/masked/destinations/${names[0]?.id}/pgp-key`;
  const answer = await owner.api.ask("PUT", path, { public_key: PGP_PUBLIC_KEY }, { key: owner.key });
  if (answer.status >= 300) throw new Error(`no key: ${JSON.stringify(answer.body)}`);
  return names;
}

async function makeMaskedPattern(owner: Owner): Promise<Names[]> {
  const [destination] = await makeMaskedDestination(owner);
  const { pattern } = await create(
    owner,
    `/v1/masked/destinations/${destination?.id}/patterns`,
    await patternBody(owner),
  );
  return [{ ...destination, pattern_id: pattern.id }];
}

async function patternBody(owner: Owner): Promise<object> {
  return { pattern: `*.${fresh(owner)}@${(await owner.domain()).domain}` };
}

/** A forward that failed, whose mailbox is confirmed. */
async function makeMaskedFailed(owner: Owner): Promise<Names[]> {
  const [contact] = await makeMaskedContact(owner);
  const { world } = owner.api;
  const [row] = await world.db.query<{ org_id: string; owner_id: string; environment: "live" | "test" }>(
    `update masked_destination d set status = 'verified' from masked_alias_destination ad
      where ad.alias_id = $1 and d.org_id = ad.org_id and d.id = ad.destination_id
      returning d.org_id, d.id as owner_id, d.environment`,
    [contact?.id],
  );
  if (!row) throw new Error("no destination");
  const id = world.random.uuid();
  const mime = Buffer.from(`From: ${owner.mark}\r\nMessage-ID: <${id}@x.example>\r\n\r\n${owner.mark}\r\n`);
  const failed = { kind: "forward" as const, reason: owner.mark, size: mime.length, cleared: [row.owner_id] };
  const kept = { sealed: world.seal.seal(mime, `masked-held:${id}`), blob_key: null, message_id: id };
  const of = { alias_id: contact?.id ?? "", contact_id: contact?.contact_id ?? "" };
  await world.db.asOrg(row.org_id, (tx) =>
    insertFailed(tx, row.org_id, { ...row, ...failed, ...kept, ...of, id, created_at: new Date(world.clock.now()) }),
  );
  return [{ id }];
}

async function makeRelay(owner: Owner): Promise<Names[]> {
  const names = await namesOfDomain(owner);
  const answer = await owner.api.ask(
    "PUT",
    `/v1/domains/${names[0]?.id}/relay`,
    { host: `${owner.mark}.relay.example` },
    { key: owner.live_key },
  );
  if (answer.status >= 300) throw new Error(`no relay: ${JSON.stringify(answer.body)}`);
  return names;
}

async function makePool(owner: Owner): Promise<Names[]> {
  const name = fresh(owner).toLowerCase();
  const { ip_pool } = await create(owner, "/v1/ip-pools", { name, ips: [{ ip: freshAddress() }] }, owner.live_key);
  return [{ id: ip_pool.id }, { id: name }];
}

let addresses = 0;

/** An address that no pool has yet. */
function freshAddress(): string {
  addresses += 1;
  return `10.77.${addresses >> 8}.${addresses & 255}`;
}

/** An aggregate report about the owner's domain, as a file. */
async function dmarcReport(owner: Owner): Promise<Buffer> {
  const { domain } = await owner.domain();
  const day = 86_400;
  const begin = Math.floor(owner.api.world.clock.now() / 1_000 / day) * day - day;
  const xml = `<?xml version="1.0"?><feedback><report_metadata><org_name>${owner.mark}</org_name>
<email>reports@reporter.example</email><report_id>${fresh(owner)}</report_id>
<date_range><begin>${begin}</begin><end>${begin + day - 1}</end></date_range></report_metadata>
<policy_published><domain>${domain}</domain><p>none</p></policy_published>
<record><row><source_ip>192.0.2.9</source_ip><count>3</count><policy_evaluated><disposition>none</disposition>
<dkim>pass</dkim><spf>pass</spf></policy_evaluated></row><identifiers><header_from>${domain}</header_from></identifiers>
<auth_results><dkim><domain>${domain}</domain><result>pass</result></dkim></auth_results></record></feedback>`;
  return Buffer.from(xml);
}

async function makeDmarcReport(owner: Owner): Promise<Names[]> {
  const { id } = await owner.domain();
  const answer = await owner.api.ask("POST", "/v1/dmarc/reports", await dmarcReport(owner), {
    key: owner.key,
    headers: { "content-type": "application/xml" },
  });
  if (answer.status >= 300) throw new Error(`no report: ${JSON.stringify(answer.body)}`);
  return [{ id, reportId: answer.body.report.id }];
}

async function namesOfDomain(owner: Owner): Promise<Names[]> {
  const { id, domain } = await owner.domain();
  return [{ id }, { id: domain }];
}

async function namesOfDkimKey(owner: Owner): Promise<Names[]> {
  const [id, name] = await namesOfDomain(owner);
  const selector = fresh(owner).toLowerCase();
  await create(owner, `/v1/domains/${id?.id}/dkim`, { selector, algorithm: "ed25519" });
  return [
    { ...id, selector },
    { ...name, selector },
  ];
}

/**
 * By path up to its last parameter: the longest entry that a path begins with makes what it names. What only answers
 * under the owner's first name stands first.
 */
export const RESOURCES: Record<string, Make> = {
  "/v1/api-keys/{id}": makeKey,
  "/v1/aliases/{id}": makeAlias,
  "/v1/domains/{id}": namesOfDomain,
  "/v1/domains/{id}/dkim/{selector}": namesOfDkimKey,
  "/v1/webhooks/{id}": makeWebhook,
  "/v1/webhook-deliveries/{id}": makeWebhookDelivery,
  "/v1/templates/{id}": makeTemplate,
  "/v1/templates/{id}/versions/{version}": makeTemplateVersion,
  "/v1/suppressions/{identifier}": makeSuppression,
  "/v1/imports/suppressions/jobs/{id}": makeImportJob,
  "/v1/emails/{id}": makeEmail,
  "/v1/inbound-emails/{id}": makeInbound,
  "/v1/inbound-emails/{id}/attachments/{attachment_id}": makeInbound,
  "/v1/inbound-rules/{id}": makeRule,
  "/v1/masked/aliases/{id}": makeMaskedAlias,
  "/v1/masked/aliases/{id}/contacts/{contact_id}": makeMaskedContact,
  "/v1/masked/destinations/{id}": makeMaskedDestination,
  "/v1/masked/destinations/{id}/patterns/{pattern_id}": makeMaskedPattern,
  "/v1/masked/failed/{id}": makeMaskedFailed,
  "/v1/masked/destinations/{id}/pgp-key": makeMaskedPgpKey,
  "/v1/domains/{id}/dmarc/reports/{reportId}": makeDmarcReport,
  "/v1/domains/{id}/relay": makeRelay,
  "/v1/ip-pools/{id}": makePool,
};

type Body = (owner: Owner) => Promise<unknown> | unknown;

/** Bodies with which the operation works, for those that need one. Ids in them are added by the test. */
export const BODIES: Record<string, Body> = {
  "POST /v1/api-keys": ({ mark }) => ({ name: mark, environment: "test" }),
  "PUT /v1/api-keys/{id}": ({ mark }) => ({ name: mark }),
  "POST /v1/aliases": async (owner) => ({ domain_id: (await owner.domain()).id, local_part: fresh(owner) }),
  "PATCH /v1/aliases/{id}": ({ mark }) => ({ description: mark }),
  "POST /v1/domains": (owner) => ({ domain: `${fresh(owner)}.example`.toLowerCase(), type: "outbound" }),
  "PUT /v1/domains/{id}": () => ({ active: true }),
  "PUT /v1/masked/settings": () => ({ aliases_hour: 499 }),
  "POST /v1/domains/{id}/dkim/rotate": () => ({ old_selector: "postern1", new_selector: "postern9" }),
  "POST /v1/webhooks": ({ mark }) => ({ url: `https://${mark}.receiver.example/hook` }),
  "PUT /v1/webhooks/{id}": () => ({ events: ["email.bounced"] }),
  "POST /v1/webhooks/{id}/replay": () => ({ from: "2026-01-01T00:00:00Z" }),
  "POST /v1/templates": (owner) => ({ name: owner.mark, slug: fresh(owner), subject: "x", html_body: "<p>x</p>" }),
  "PUT /v1/templates/{id}": ({ mark }) => ({ description: mark }),
  "POST /v1/suppressions": (owner) => ({ email: `${fresh(owner)}@recipient.example` }),
  "POST /v1/imports/suppressions/preview": (owner) => ({
    csv: `email,reason\n${fresh(owner)}@recipient.example,bounce\n`,
    provider: "custom",
  }),
  "POST /v1/inbound-emails/simulate": async (owner) => ({
    from: `${owner.mark}@contact.example`,
    to: [`nobody@${(await owner.domain()).domain}`],
    subject: owner.mark,
    text: owner.mark,
  }),
  "POST /v1/inbound-rules": async (owner) => ({ ...ruleBody(owner), domain_id: (await owner.domain()).id }),
  "POST /v1/domains/{id}/rules": (owner) => ruleBody(owner),
  "PUT /v1/domains/{id}/spam": ({ mark }) => ({ block: [`${mark.toLowerCase()}.example`] }),
  "PATCH /v1/inbound-rules/{id}": ({ mark }) => ({ name: mark }),
  "POST /v1/inbound-rules/reorder": async (owner) => ({ ids: (await makeRule(owner)).map(({ id }) => id) }),
  "POST /v1/inbound-rules/test": async (owner) => ({ rule_id: (await makeRule(owner))[0]?.id }),
  "POST /v1/masked/aliases": (owner) => ({ forward_to: [`${fresh(owner)}@mailbox.example`] }),
  "POST /v1/masked/aliases/{id}/check": () => ({
    raw_base64: Buffer.from("From: me@mailbox.example\r\n\r\nHello").toString("base64"),
  }),
  "PUT /v1/masked/aliases/{id}": ({ mark }) => ({ description: mark }),
  "POST /v1/masked/aliases/{id}/contacts": (owner) => ({ email: `${fresh(owner)}@contact.example` }),
  "PATCH /v1/masked/aliases/{id}/contacts/{contact_id}": () => ({ blocked: true }),
  "POST /v1/masked/destinations": (owner) => ({ email: `${fresh(owner)}@mailbox.example` }),
  "POST /v1/masked/destinations/{id}/patterns": patternBody,
  "PUT /v1/masked/destinations/{id}/pgp-key": () => ({ public_key: PGP_PUBLIC_KEY }),
  "POST /v1/dmarc/reports": dmarcReport,
  "PUT /v1/domains/{id}/relay": ({ mark }) => ({ host: `${mark}.relay.example` }),
  "POST /v1/ip-pools": (owner) => ({ name: fresh(owner).toLowerCase(), ips: [{ ip: freshAddress() }] }),
  "PUT /v1/ip-pools/{id}": () => ({ ips: [{ ip: freshAddress() }] }),
  "POST /v1/send": async (owner) => mail(owner, (await owner.domain()).domain),
  "POST /v1/send/batch": async (owner) => [mail(owner, (await owner.domain()).domain)],
};

function mail({ mark }: Owner, domain: string): object {
  return { from: `${mark}@${domain}`, to: [`${mark}@recipient.example`], subject: mark, text_body: mark };
}

/** What a query parameter or a field of a body that ends in `_id` or `_ids` may name: a path of RESOURCES. */
export const REFERENCES: Record<string, string> = {
  domain_id: "/v1/domains/{id}",
  endpoint_id: "/v1/webhooks/{id}",
  template_id: "/v1/templates/{id}",
  webhook_ids: "/v1/webhooks/{id}",
  catch_all_webhook_ids: "/v1/webhooks/{id}",
  scope_id: "/v1/templates/{id}",
  alias_id: "/v1/aliases/{id}",
  thread_id: "/v1/inbound-emails/{id}",
  email_id: "/v1/inbound-emails/{id}",
  rule_id: "/v1/inbound-rules/{id}",
  event_ids: "/v1/webhook-deliveries/{id}",
  key_id: "/v1/api-keys/{id}",
};

/** Query parameters that an operation needs. */
export const QUERIES: Record<string, string> = {
  "GET /v1/suppressions/check": "email=x@recipient.example",
  "GET /v1/masked/people": "email=x@recipient.example",
  "DELETE /v1/masked/people": "email=x@recipient.example",
  "GET /v1/address-data": "email=x@recipient.example",
  "DELETE /v1/address-data": "email=x@recipient.example",
};

/** An owner over an organization's key; with a test key, beside a live one of the same organization. */
export function ownerOf(api: TestApi, dns: DnsServer, key: string, mark: string, live_key = key): Owner {
  let domain: Promise<{ id: string; domain: string }> | null = null;
  const owner: Owner = {
    api,
    dns,
    key,
    live_key,
    mark,
    domain() {
      domain ??= addVerifiedDomain(api, dns, `${fresh(owner)}.example`, { type: "both", key });
      return domain;
    },
    forget() {
      domain = null;
    },
  };
  return owner;
}

/** Makes what `path` names; throws a sentence for the author of a new route when nobody knows how. */
export async function makeNamed(owner: Owner, path: string): Promise<Names[]> {
  const known = Object.keys(RESOURCES).filter((prefix) => path === prefix || path.startsWith(`${prefix}/`));
  const [longest] = known.sort((a, b) => b.length - a.length);
  const missing = paramsOf(path).filter((name) => !paramsOf(longest ?? "").includes(name));
  const make = RESOURCES[longest ?? ""];
  if (make && missing.length === 0) return make(owner);
  throw new Error(
    `nobody knows how to make {${missing.join("}, {")}} of ${path}: add a line to RESOURCES in test/api/resources.ts`,
  );
}

/** The names in braces. */
export function paramsOf(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? "");
}
