// What the contract tester asks about: some of everything, made through the API, and their names given to the tester as
// dictionaries (its configuration file), so that its requests reach beyond the 404 of a random id.
import { join } from "node:path";
import type { DnsServer } from "../support/dns-server.ts";
import { ask, type Posterns, setUpDomain } from "../support/postern-process.ts";

/** Dictionaries by name: ids, slugs, addresses. */
export type Subjects = Record<string, string[]>;

/** The tester deletes while it asks; there must be some left. */
const EACH = 12;
/** How often a value comes from its dictionary; otherwise the tester makes one up. */
const PROBABILITY = 0.8;

type Maker = (mark: string) => Promise<string>;
type Create = (path: string, body?: unknown) => Promise<string>;

/** Makes the subjects with the live key: a domain in use, domains to delete, and some of everything else. */
export async function makeSubjects(settings: Posterns, dns: DnsServer): Promise<Subjects> {
  const create: Create = async (path, body) => {
    const answer = await ask(settings, "POST", path, body);
    if (answer.status >= 300) throw new Error(`POST ${path} answers ${answer.status}: ${JSON.stringify(answer.body)}`);
    return idIn(answer.body);
  };
  const domain = await setUpDomain(settings, dns, "shop.example", "both");
  const young = await setUpDomain(settings, dns, "young.example");
  const subjects: Subjects = { domain: [domain], young: [young], selectors: ["postern1", "postern2", "other"] };
  const makers = makersFor(settings, create, domain);
  for (const [name, make] of Object.entries(makers)) {
    const ids: string[] = [];
    for (let at = 0; at < EACH; at += 1) ids.push(await make(`subject${at}`));
    subjects[name] = ids;
  }
  subjects.destinations = await idsOf(settings, "/v1/masked/destinations", "destinations");
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
    scheduled: (mark) => create("/v1/send", { ...mail(mark), scheduled_at: later() }),
    aliases: (mark) => create("/v1/aliases", { domain_id: domainId, local_part: mark }),
    masked: (mark) => create("/v1/masked/aliases", { forward_to: [`${mark}@people.example`], domain_id: domainId }),
    deletedMasked: async (mark) => {
      const id = await create("/v1/masked/aliases", { forward_to: [`${mark}@people.example`], domain_id: domainId });
      await ask(settings, "DELETE", `/v1/masked/aliases/${id}`);
      return id;
    },
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

type Operation = { path: string; method: string };
type Binding = { path: RegExp; method?: RegExp; parameters: Record<string, string> };

/** What stands for a parameter or a field of the body, by path and method; the first that fits decides. */
const BINDINGS: Binding[] = [
  { path: /^.v1.api-keys.\{/, parameters: { "path.id": "keys" } },
  { path: /^.v1.domains.\{id\}$/, method: /DELETE/, parameters: { "path.id": "domains" } },
  { path: /^.v1.domains.\{.*\{selector/, parameters: { "path.id": "domains", "path.selector": "selectors" } },
  { path: /^.v1.domains.\{.*\/rotate/, parameters: { "path.id": "domains", "body.old_selector": "selectors" } },
  { path: /^.v1.domains.\{.*.warming./, method: /POST/, parameters: { "path.id": "young" } },
  { path: /^.v1.domains.\{/, parameters: { "path.id": "domain" } },
  { path: /^.v1.webhooks.\{/, parameters: { "path.id": "webhooks" } },
  { path: /^.v1.webhook-deliveries.\{/, parameters: { "path.id": "deliveries" } },
  { path: /^.v1.templates.\{/, parameters: { "path.id": "slugs" } },
  { path: /^.v1.suppressions.\{/, parameters: { "path.identifier": "suppressions" } },
  { path: /^.v1.suppressions.check/, parameters: { "query.email": "addresses" } },
  { path: /^.v1.imports.suppressions.jobs/, parameters: { "path.id": "imports" } },
  { path: /^.v1.emails.\{id\}.cancel/, parameters: { "path.id": "scheduled" } },
  { path: /^.v1.emails.\{/, parameters: { "path.id": "emails" } },
  { path: /^.v1.aliases.\{/, parameters: { "path.id": "aliases" } },
  { path: /^.v1.aliases$/, method: /POST/, parameters: { "body.domain_id": "domain" } },
  { path: /^.v1.masked.aliases$/, method: /POST/, parameters: { "body.domain_id": "domain" } },
  { path: /^.v1.masked.aliases.\{id\}.restore/, parameters: { "path.id": "deletedMasked" } },
  { path: /^.v1.masked.aliases.\{id\}$/, method: /DELETE/, parameters: { "path.id": "masked" } },
  { path: /\{contact_id\}/, parameters: { "path.id": "withContacts", "path.contact_id": "contacts" } },
  { path: /^.v1.masked.aliases.\{/, parameters: { "path.id": "withContacts" } },
  { path: /^.v1.masked.destinations.\{/, parameters: { "path.id": "destinations" } },
  { path: /^.v1.inbound-emails.simulate/, parameters: { "body.to": "receivers", "body.from": "senders" } },
  { path: /\{attachment_id\}/, parameters: { "path.id": "withAttachment", "path.attachment_id": "attachments" } },
  { path: /^.v1.inbound-emails.\{/, parameters: { "path.id": "inbound" } },
  { path: /^.v1.send$/, parameters: { "body.from": "senders", "body.to[*]": "recipients", "body.template": "slugs" } },
  { path: /^.v1/, method: /GET/, parameters: { "query.domain_id": "domain", "query.endpoint_id": "webhooks" } },
];

function bindingOf({ path, method }: Operation): Binding | undefined {
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

/** The examples for contract_hooks.py (JSON): by operation, bodies and parameters that work. */
export function testerExamples(subjects: Subjects, operations: Operation[]): string {
  const bodies = new Map(Object.entries(bodiesWith(subjects)));
  const examples: Record<string, { bodies: unknown[]; parameters: Record<string, string[]> }> = {};
  for (const operation of operations) {
    const name = `${operation.method} ${operation.path}`;
    const parameters = Object.entries(bindingOf(operation)?.parameters ?? {}).map(([parameter, dictionary]) => {
      const values = subjects[dictionary] ?? [];
      return [parameter, EXAMPLES.test(name) ? values : values.slice(-2)] as const;
    });
    examples[name] = { bodies: bodies.get(name) ?? [], parameters: Object.fromEntries(parameters) };
  }
  return JSON.stringify(examples);
}

/** What works once only is tried with every subject. */
const EXAMPLES = /^DELETE|\/(cancel|commit)$/;

function bodiesWith(subjects: Subjects): Record<string, unknown[]> {
  const mail = { from: "a@shop.example", to: ["Anna <anna@recipient.example>"], subject: "Hi", text_body: "Hi" };
  const domain_id = subjects.domain?.[0];
  const rich = {
    ...mail,
    cc: ["c@recipient.example"],
    html_body: "<p>Hi</p>",
    tags: ["a"],
    metadata: { order: "1" },
    headers: { "X-Order": "1" },
    attachments: [{ filename: "a.txt", content: "aGk=" }],
  };
  const templated = { from: mail.from, to: mail.to, template: "subject1", variables: { name: "Anna" } };
  const scheduled_at = new Date(Date.now() + 86_400_000).toISOString();
  return {
    "POST /v1/send": [mail, rich, templated, { ...mail, scheduled_at }],
    "POST /v1/send/batch": [[mail, rich], { emails: [mail, templated], validation: "permissive" }],
    "POST /v1/api-keys": [{ name: "new", environment: "test" }],
    "PUT /v1/api-keys/{id}": [{ name: "renamed" }],
    "POST /v1/domains": [
      { domain: "new.example", type: "outbound" },
      { domain: "b.example", type: "both" },
    ],
    "PUT /v1/domains/{id}": [{ active: true }, { tls_policy: "opportunistic" }],
    "POST /v1/domains/{id}/dkim": [{ selector: "other", algorithm: "ed25519" }],
    "POST /v1/domains/{id}/dkim/rotate": [{ old_selector: "postern1", new_selector: "postern9" }],
    "POST /v1/domains/{id}/warming/start": [{ phase: "phase_2" }],
    "PUT /v1/domains/{id}/relay": [{ host: "relay.example", tls: "starttls", mode: "fallback" }],
    "POST /v1/ip-pools": [{ name: "new", ips: [{ ip: "127.0.0.9", ehlo: "mx9.postern.example" }] }],
    "POST /v1/masked/aliases": [{ forward_to: ["new@people.example"], domain_id }],
    "PUT /v1/masked/aliases/{id}": [{ description: "new" }],
    "POST /v1/masked/aliases/{id}/contacts": [{ email: "friend@elsewhere.example" }],
    "POST /v1/webhooks": [{ url: "https://new.receiver.example/", events: ["email.bounced"], domain_id }],
    "PUT /v1/webhooks/{id}": [{ events: ["email.delivered"] }, { enabled: false }],
    "POST /v1/webhooks/{id}/replay": [{ from: "2026-01-01T00:00:00Z" }],
    "POST /v1/templates": [{ name: "new", slug: "new", subject: "Hi {{name}}", html_body: "<p>{{name}}</p>" }],
    "PUT /v1/templates/{id}": [{ description: "new" }, { subject: "Hello {{name}}" }],
    "POST /v1/templates/{id}/preview": [{ variables: { name: "Anna" } }],
    "POST /v1/suppressions": [{ email: "new@recipient.example" }, { email: "n@x.example", reason: "complaint" }],
    "POST /v1/imports/suppressions/preview": [{ csv: "email,reason\na@x.example,bounce\n", provider: "custom" }],
    "POST /v1/aliases": [
      { domain_id, local_part: "new" },
      { domain_id, local_part: "b", description: "b" },
    ],
    "PATCH /v1/aliases/{id}": [{ description: "new" }, { active: false }],
    "POST /v1/inbound-emails/simulate": [
      { to: "subject1@shop.example", from: "d@elsewhere.example", subject: "Hi", text: "Hi" },
      { to: ["subject1@shop.example"], raw: "From: d@elsewhere.example\r\nSubject: Hi\r\n\r\nHi\r\n" },
    ],
  };
}
