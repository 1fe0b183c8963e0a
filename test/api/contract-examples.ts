// The examples that the contract tester starts from: bodies and parameters with which each operation succeeds, by its
// name in the description. The tester tries them as they are, then varies them.
import { bindingOf, dmarcReport, type Operation, type Subjects } from "./contract-subjects.ts";

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
const EXAMPLES = /^DELETE|\/(cancel|commit|release|retry|restore)$/;

function bodiesWith(subjects: Subjects): Record<string, unknown[]> {
  return { ...bodiesOfSending(), ...bodiesOfDomains(), ...bodiesOfLists(), ...bodiesOfReceiving(subjects) };
}

function bodiesOfSending(): Record<string, unknown[]> {
  const mail = { from: "a@shop.example", to: ["Anna <anna@recipient.example>"], subject: "Hi", text_body: "Hi" };
  const rich = {
    ...mail,
    cc: ["c@recipient.example"],
    html_body: "<p>Hi</p>",
    tags: ["a"],
    metadata: { order: "1" },
    headers: { "X-Order": "1" },
    attachments: [{ filename: "a.txt", content: "aGk=" }],
    unsubscribe: { list: "news", one_click: true },
  };
  const templated = { from: mail.from, to: mail.to, template: "subject1", variables: { name: "Anna" } };
  const scheduled_at = new Date(Date.now() + 86_400_000).toISOString();
  return {
    "POST /v1/send": [mail, rich, templated, { ...mail, scheduled_at }],
    "POST /v1/send/batch": [[mail, rich], { emails: [mail, templated], validation: "permissive" }],
    "POST /v1/templates": [{ name: "new", slug: "new", subject: "Hi {{name}}", html_body: "<p>{{name}}</p>" }],
    "PUT /v1/templates/{id}": [{ description: "new" }, { subject: "Hello {{name}}" }],
    "POST /v1/templates/{id}/preview": [{ variables: { name: "Anna" } }],
  };
}

function bodiesOfDomains(): Record<string, unknown[]> {
  return {
    "POST /v1/domains": [
      { domain: "new.example", type: "outbound" },
      { domain: "b.example", type: "both" },
    ],
    "PUT /v1/domains/{id}": [{ active: true }, { tls_policy: "opportunistic" }],
    "PUT /v1/domains/{id}/spam": [{ thresholds: { tag: 5, quarantine: 8, reject: 15 } }, { block: ["spam.example"] }],
    "POST /v1/domains/{id}/dkim": [{ selector: "other", algorithm: "ed25519" }],
    "POST /v1/domains/{id}/dkim/rotate": [{ old_selector: "postern1", new_selector: "postern9" }],
    "POST /v1/domains/{id}/warming/start": [{ phase: "phase_2" }],
    "PUT /v1/domains/{id}/relay": [{ host: "relay.example", tls: "starttls", mode: "fallback" }],
    "POST /v1/ip-pools": [{ name: "new", ips: [{ ip: "127.0.0.9", ehlo: "mx9.postern.example" }] }],
    "PUT /v1/ip-pools/{id}": [{ ips: [{ ip: "127.0.1.99" }] }],
    "POST /v1/dmarc/reports": [dmarcReport("example")],
  };
}

function bodiesOfLists(): Record<string, unknown[]> {
  return {
    "POST /v1/api-keys": [{ name: "new", environment: "test" }],
    "PUT /v1/api-keys/{id}": [{ name: "renamed" }],
    "POST /v1/webhooks": [{ url: "https://new.receiver.example/", events: ["email.bounced"] }],
    "PUT /v1/webhooks/{id}": [{ events: ["email.delivered"] }, { enabled: false }],
    "POST /v1/webhooks/{id}/replay": [{ from: "2026-01-01T00:00:00Z" }],
    "POST /v1/suppressions": [{ email: "new@recipient.example" }, { email: "n@x.example", reason: "unsubscribe" }],
    "POST /v1/imports/suppressions/preview": [{ csv: "email,reason\na@x.example,bounce\n", provider: "custom" }],
  };
}

function bodiesOfReceiving(subjects: Subjects): Record<string, unknown[]> {
  const domain_id = subjects.domain?.[0];
  const rule = {
    name: "new",
    conditions: [{ field: "subject", comparator: "contains", value: "x" }],
    action: "store",
    active: false,
  };
  return {
    "POST /v1/aliases": [
      { domain_id, local_part: "new" },
      { domain_id, local_part: "b", description: "b" },
    ],
    "PATCH /v1/aliases/{id}": [{ description: "new" }, { active: false }],
    "POST /v1/inbound-emails/simulate": [
      { to: "subject1@shop.example", from: "d@elsewhere.example", subject: "Hi", text: "Hi" },
      { to: ["subject1@shop.example"], raw: "From: d@elsewhere.example\r\nSubject: Hi\r\n\r\nHi\r\n" },
    ],
    "POST /v1/inbound-rules": [{ ...rule, domain_id }],
    "POST /v1/domains/{id}/rules": [rule],
    "PATCH /v1/inbound-rules/{id}": [{ name: "renamed" }],
    "POST /v1/inbound-rules/reorder": [{ ids: subjects.rules?.slice(0, 3) }],
    "POST /v1/inbound-rules/test": [{ rule_id: subjects.rules?.[0] }, { conditions: rule.conditions, domain_id }],
    "POST /v1/masked/aliases": [{ forward_to: ["new@people.example"], domain_id }],
    "PUT /v1/masked/aliases/{id}": [{ description: "new" }],
    "POST /v1/masked/aliases/{id}/contacts": [{ email: "friend@elsewhere.example" }],
    "PATCH /v1/masked/aliases/{id}/contacts/{contact_id}": [{ blocked: true }],
    "POST /v1/masked/destinations": [{ email: "new@people.example" }],
  };
}
