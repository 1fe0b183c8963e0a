// What the contract tester asks about: some of everything, made through the API, and their names given to the tester as
// dictionaries (its configuration file), so that its requests reach beyond the 404 of a random id. Not here: the bodies
// that it starts from (contract-examples.ts).
import { join } from "node:path";
import type { DnsServer } from "../support/dns-server.ts";
import { apiOf, ask, type Posterns } from "../support/postern-process.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

/** Dictionaries by name: ids, slugs, addresses. */
export type Subjects = Record<string, string[]>;

/** The tester deletes while it asks; there must be some left. */
const EACH = 12;
/** How often a value comes from its dictionary; otherwise the tester makes one up. */
const PROBABILITY = 0.8;

/** A domain whose mail server has no room for anybody. */
export const FULL_MAILBOXES = "full.example";
const BOUNCE_MS_MAX = 10_000;

type Maker = (mark: string) => Promise<string>;
type Create = (path: string, body?: unknown) => Promise<string>;

/** Makes the subjects with the live key: a domain in use, domains to delete, and some of everything else. */
export async function makeSubjects(settings: Posterns, dns: DnsServer): Promise<Subjects> {
  const create: Create = async (path, body) => {
    const answer = await (typeof body === "string" ? upload(settings, path, body) : ask(settings, "POST", path, body));
    if (answer.status >= 300) throw new Error(`POST ${path} answers ${answer.status}: ${JSON.stringify(answer.body)}`);
    return idIn(answer.body);
  };
  const { id: domain } = await addVerifiedDomain(apiOf(settings), dns, "shop.example", { type: "both" });
  const { id: young } = await addVerifiedDomain(apiOf(settings), dns, "young.example");
  const subjects: Subjects = { domain: [domain], young: [young], selectors: ["postern1", "postern2", "other"] };
  const makers = makersFor(settings, create, domain);
  for (const [name, make] of Object.entries(makers)) {
    const ids: string[] = [];
    for (let at = 0; at < EACH; at += 1) ids.push(await make(`subject${at}`));
    subjects[name] = ids;
  }
  const { id: held } = await addVerifiedDomain(apiOf(settings), dns, "held.example", { type: "both" });
  subjects.quarantined = await quarantineAll(settings, create, held);
  subjects.reports = await idsOf(settings, `/v1/domains/${domain}/dmarc/reports`, "reports");
  const [withContacts = "", ...masked] = subjects.masked ?? [];
  const contacts = `/v1/masked/aliases/${withContacts}/contacts`;
  for (let at = 0; at < EACH; at += 1) await create(contacts, { email: `friend${at}@elsewhere.example` });
  subjects.contacts = await idsOf(settings, contacts, "contacts");
  const [withAttachment = "", ...inbound] = subjects.inbound ?? [];
  subjects.attachments = await attachmentsOf(settings, withAttachment);
  return {
    ...subjects,
    senders: ["a@shop.example", "Shop <orders@shop.example>", "b@unknown.example"],
    recipients: ["Anna <anna@recipient.example>", "b@recipient.example", "subject1@recipient.example"],
    addresses: ["b@recipient.example", "subject1@recipient.example"],
    inbound,
    masked,
    withContacts: [withContacts],
    withAttachment: [withAttachment],
    receivers: ["subject1@shop.example", "new@shop.example", "x@unknown.example"],
    slugs: ["subject1", "subject2", ...(subjects.templates ?? [])],
  };
}

async function upload(settings: Posterns, path: string, xml: string) {
  const headers = { authorization: `Bearer ${settings.live_key}`, "content-type": "application/xml" };
  const answer = await fetch(settings.base_url + path, { method: "POST", headers, body: xml });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

/** Mails that wait for their release. */
async function quarantineAll(settings: Posterns, create: Create, domainId: string): Promise<string[]> {
  const thresholds = { tag: 0, quarantine: 0, reject: null };
  const set = await ask(settings, "PUT", `/v1/domains/${domainId}/spam`, { thresholds });
  if (set.status !== 200) throw new Error(`the spam settings answer ${set.status}: ${JSON.stringify(set.body)}`);
  await create("/v1/aliases", { domain_id: domainId, local_part: "*", action: "store" });
  const ids: string[] = [];
  for (let at = 0; at < EACH; at += 1) {
    const mail = { to: "a@held.example", from: "d@elsewhere.example", subject: `held ${at}`, text: "x" };
    ids.push(await create("/v1/inbound-emails/simulate", mail));
  }
  return ids;
}

/** An e-mail whose recipient's server says that the mailbox is full: it may be tried again by hand. */
async function bouncedSoftly(settings: Posterns, create: Create, mail: object): Promise<string> {
  const id = await create("/v1/send", { ...mail, to: [`someone@${FULL_MAILBOXES}`] });
  const until = Date.now() + BOUNCE_MS_MAX;
  while (Date.now() < until) {
    const { body } = await ask(settings, "GET", `/v1/emails/${id}`);
    if ((body.email as unknown as { status: string }).status === "bounced") return id;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("the e-mail to a full mailbox has not bounced");
}

/** An aggregate report about shop.example of the day before yesterday. */
export function dmarcReport(mark: string): string {
  const day = 86_400;
  const begin = (Math.floor(Date.now() / 1_000 / day) - 2) * day;
  return `<?xml version="1.0"?><feedback><report_metadata><org_name>${mark}</org_name>
<email>reports@reporter.example</email><report_id>${mark}</report_id>
<date_range><begin>${begin}</begin><end>${begin + day - 1}</end></date_range></report_metadata>
<policy_published><domain>shop.example</domain><p>none</p></policy_published>
<record><row><source_ip>192.0.2.9</source_ip><count>3</count><policy_evaluated><disposition>none</disposition>
<dkim>pass</dkim><spf>pass</spf></policy_evaluated></row><identifiers><header_from>shop.example</header_from></identifiers>
<auth_results><dkim><domain>shop.example</domain><result>pass</result></dkim></auth_results></record></feedback>`;
}

function makersFor(settings: Posterns, create: Create, domainId: string): Record<string, Maker> {
  const mail = (mark: string) => ({
    from: "a@shop.example",
    to: ["c@recipient.example"],
    subject: mark,
    text_body: mark,
  });
  const later = () => new Date(Date.now() + 86_400_000).toISOString();
  const hook = (mark: string) => ({ url: `https://${mark}.receiver.example/`, events: ["email.bounced"] });
  const file = { filename: "a.txt", content: "aGk=", content_type: "text/plain" };
  return {
    domains: (mark) => create("/v1/domains", { domain: `${mark}.example`, type: "both" }),
    webhooks: (mark) => create("/v1/webhooks", hook(mark)),
    deliveries: async (mark) => create(`/v1/webhooks/${await create("/v1/webhooks", hook(`d${mark}`))}/test`),
    templates: (mark) =>
      create("/v1/templates", { name: mark, slug: mark, subject: "Hi {{name}}", text_body: "{{name}}" }),
    suppressions: (mark) => create("/v1/suppressions", { email: `${mark}@recipient.example` }),
    imports: (mark) =>
      create("/v1/imports/suppressions/preview", { csv: `email\n${mark}@x.example\n`, provider: "custom" }),
    emails: (mark) => create("/v1/send", mail(mark)),
    bounced: (mark) => bouncedSoftly(settings, create, mail(mark)),
    rules: (mark) => create(`/v1/domains/${domainId}/rules`, ruleNamed(mark)),
    pools: (mark) => create("/v1/ip-pools", { name: mark, ips: [{ ip: `127.0.1.${1 + Number(mark.slice(7))}` }] }),
    uploads: (mark) => create("/v1/dmarc/reports", dmarcReport(mark)),
    scheduled: (mark) => create("/v1/send", { ...mail(mark), scheduled_at: later() }),
    aliases: (mark) => create("/v1/aliases", { domain_id: domainId, local_part: mark }),
    masked: (mark) => create("/v1/masked/aliases", { forward_to: [`${mark}@people.example`], domain_id: domainId }),
    deletedMasked: async (mark) => {
      const id = await create("/v1/masked/aliases", { forward_to: [`${mark}@people.example`], domain_id: domainId });
      await ask(settings, "DELETE", `/v1/masked/aliases/${id}`);
      return id;
    },
    unconfirmed: (mark) => create("/v1/masked/destinations", { email: `${mark}@slow.example` }),
    destinations: (mark) => create("/v1/masked/destinations", { email: `${mark}@unused.example` }),
    keys: (mark) => create("/v1/api-keys", { name: mark, environment: "test" }),
    inbound: (mark) =>
      create("/v1/inbound-emails/simulate", {
        to: "subject1@shop.example",
        from: "d@elsewhere.example",
        subject: mark,
        text: mark,
        attachments: [file],
      }),
  };
}

function ruleNamed(name: string): object {
  return { name, conditions: [{ field: "subject", comparator: "contains", value: name }], action: "store" };
}

/** Of `{"id": …}` or `{"webhook": {"id": …}}`. */
function idIn(body: Record<string, unknown>): string {
  if (typeof body.id === "string") return body.id;
  const named = Object.values(body).find((value) => typeof (value as { id?: unknown } | null)?.id === "string");
  return (named as { id: string }).id;
}

async function attachmentsOf(settings: Posterns, id: string): Promise<string[]> {
  const { body } = await ask(settings, "GET", `/v1/inbound-emails/${id}`);
  const { attachments } = body.email as unknown as { attachments: { id: string }[] };
  return attachments.map((attachment) => attachment.id);
}

async function idsOf(settings: Posterns, path: string, list: string): Promise<string[]> {
  const { body } = await ask(settings, "GET", path);
  return (body[list] as unknown as { id: string }[]).map(({ id }) => id);
}

export type Operation = { path: string; method: string };
type Binding = { path: RegExp; method?: RegExp; parameters: Record<string, string> };

/** What stands for a parameter or a field of the body, by path and method; the first that fits decides. */
const BINDINGS: Binding[] = [
  { path: /^.v1.api-keys.\{/, parameters: { "path.id": "keys" } },
  { path: /^.v1.domains.\{id\}$/, method: /DELETE/, parameters: { "path.id": "domains" } },
  { path: /^.v1.domains.\{.*\{selector/, parameters: { "path.id": "domains", "path.selector": "selectors" } },
  { path: /^.v1.domains.\{.*\/rotate/, parameters: { "path.id": "domains", "body.old_selector": "selectors" } },
  { path: /^.v1.domains.\{.*.warming./, method: /POST/, parameters: { "path.id": "young" } },
  { path: /^.v1.domains.\{.*\{reportId/, parameters: { "path.id": "domain", "path.reportId": "reports" } },
  { path: /^.v1.domains.\{.*.spam/, parameters: { "path.id": "young" } },
  { path: /^.v1.domains.\{/, parameters: { "path.id": "domain" } },
  { path: /^.v1.webhooks.\{/, parameters: { "path.id": "webhooks" } },
  { path: /^.v1.webhook-deliveries.\{/, parameters: { "path.id": "deliveries" } },
  { path: /^.v1.templates.\{/, parameters: { "path.id": "slugs" } },
  { path: /^.v1.suppressions.\{/, parameters: { "path.identifier": "suppressions" } },
  { path: /^.v1.suppressions.check/, parameters: { "query.email": "addresses" } },
  { path: /^.v1.imports.suppressions.jobs/, parameters: { "path.id": "imports" } },
  { path: /^.v1.emails.\{id\}.cancel/, parameters: { "path.id": "scheduled" } },
  { path: /^.v1.emails.\{id\}.retry/, parameters: { "path.id": "bounced" } },
  { path: /^.v1.emails.\{/, parameters: { "path.id": "emails" } },
  { path: /^.v1.aliases.\{/, parameters: { "path.id": "aliases" } },
  { path: /^.v1.aliases$/, method: /POST/, parameters: { "body.domain_id": "domain" } },
  { path: /^.v1.masked.aliases$/, method: /POST/, parameters: { "body.domain_id": "domain" } },
  { path: /^.v1.masked.aliases.\{id\}.restore/, parameters: { "path.id": "deletedMasked" } },
  { path: /^.v1.masked.aliases.\{id\}$/, method: /DELETE/, parameters: { "path.id": "masked" } },
  { path: /\{contact_id\}/, parameters: { "path.id": "withContacts", "path.contact_id": "contacts" } },
  { path: /^.v1.masked.aliases.\{/, parameters: { "path.id": "withContacts" } },
  { path: /^.v1.masked.destinations.\{id\}.resend/, parameters: { "path.id": "unconfirmed" } },
  { path: /^.v1.masked.destinations.\{/, parameters: { "path.id": "destinations" } },
  { path: /^.v1.inbound-emails.simulate/, parameters: { "body.to": "receivers", "body.from": "senders" } },
  { path: /\{attachment_id\}/, parameters: { "path.id": "withAttachment", "path.attachment_id": "attachments" } },
  { path: /^.v1.inbound-emails.\{id\}.release/, parameters: { "path.id": "quarantined" } },
  { path: /^.v1.inbound-emails.\{/, parameters: { "path.id": "inbound" } },
  { path: /^.v1.inbound-rules$/, method: /POST/, parameters: { "body.domain_id": "domain" } },
  { path: /^.v1.inbound-rules.reorder/, parameters: { "body.ids[*]": "rules" } },
  { path: /^.v1.inbound-rules.test/, parameters: { "body.rule_id": "rules" } },
  { path: /^.v1.inbound-rules.\{/, parameters: { "path.id": "rules" } },
  { path: /^.v1.ip-pools.\{/, parameters: { "path.id": "pools" } },
  { path: /^.v1.send$/, parameters: { "body.from": "senders", "body.to[*]": "recipients", "body.template": "slugs" } },
  { path: /^.v1/, method: /GET/, parameters: { "query.domain_id": "domain", "query.endpoint_id": "webhooks" } },
];

/** Which dictionaries stand for the parameters of an operation. */
export function bindingOf({ path, method }: Operation): Binding | undefined {
  return BINDINGS.find((candidate) => candidate.path.test(path) && (candidate.method?.test(method) ?? true));
}

/**
 * What takes only ids that we chose, none that the tester read in an answer: it would revoke its own key, pause or delete
 * the domain that everything else sends from.
 */
const SPARING = /^DELETE .v1.api-keys.|^POST .v1.domains.*.warming.|^(PUT|DELETE) .v1.domains.\{id\}$/;

/** The tester's configuration (TOML): the dictionaries, where they are used, and the hooks. */
export function testerConfiguration(subjects: Subjects, operations: Operation[]): string {
  const hooks = join(import.meta.dirname, "contract_hooks.py");
  const lines = [`hooks = ${JSON.stringify(hooks)}`];
  for (const [name, values] of Object.entries(subjects)) {
    lines.push(`[dictionaries.${name}]`, `values = ${JSON.stringify(values)}`);
  }
  for (const operation of operations) {
    const { path, method } = operation;
    const pairs = Object.entries(bindingOf(operation)?.parameters ?? {}).map(
      ([name, dictionary]) => `"${name}" = { dictionary = "${dictionary}", probability = ${PROBABILITY} }`,
    );
    if (pairs.length === 0) continue;
    lines.push("[[operations]]", `include-name = ${JSON.stringify(`${method} ${path}`)}`);
    lines.push(`parameters = { ${pairs.join(", ")} }`);
    if (!SPARING.test(`${method} ${path}`)) continue;
    lines.push("phases.stateful.enabled = false");
    for (const phase of ["examples", "coverage", "fuzzing"]) {
      lines.push(`phases.${phase}.extra-data-sources.responses = false`);
    }
  }
  return `${lines.join("\n")}\n`;
}
