// Plays the example of every operation against the API in process, and shows what it answered: the same story writes the
// examples of answers (write-examples.ts) and proves that they hold (examples.test.ts).

import { type TestApi, testApi } from "../support/api.ts";
import { startDnsServer } from "../support/dns-server.ts";
import { PGP_PUBLIC_KEY } from "../support/pgp-key.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";
import { REQUESTS } from "./example-requests.ts";
import { operationsOf, type Placed, readDescription } from "./operations.ts";
import { BODIES, makeNamed, type Names, type Owner, ownerOf, paramsOf, QUERIES } from "./resources.ts";

export type Played = { operation: Placed; status: number; body: unknown; type: string };

export type Stage = {
  api: TestApi;
  operations: Placed[];
  play(operation: Placed): Promise<Played>;
  close(): Promise<void>;
};

/** The API with an engine that delivers to a server here, and an owner of everything that examples name. */
export async function setStage(): Promise<Stage> {
  const dns = await startDnsServer();
  const sink = await startSmtpSink();
  sink.onRcpt((address) => (address.startsWith("full") ? { code: 552, text: "5.2.2 mailbox full" } : null));
  const api = await testApi({ POSTERN_DNS: dns.address, POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) });
  receiveAt(dns, "recipient.example");
  await api.startMta();
  const owner = ownerOf(api, dns, api.live_key, "shop");
  return {
    api,
    operations: operationsOf(await readDescription(api)),
    play: (operation) => playExample(api, owner, operation),
    async close() {
      await api.close();
      await sink.stop();
      await dns.stop();
    },
  };
}

async function playExample(api: TestApi, owner: Owner, operation: Placed): Promise<Played> {
  const { method, path, operationId } = operation;
  const names = await (PREPARED[operationId]?.(owner) ?? namesIn(owner, path));
  const url = path.replace(/\{(\w+)\}/g, (_whole, name) => encodeURIComponent(names[name] ?? ""));
  const query = QUERIES[operation.name];
  const file = operationId === "uploadDmarcReport" ? await BODIES[operation.name]?.(owner) : undefined;
  const body = file ?? (await filled(owner, REQUESTS[operationId]));
  const headers: Record<string, string> = file ? { "content-type": "application/xml" } : {};
  const answer = await api.ask(method, query ? `${url}?${query}` : url, body, { key: owner.key, headers });
  const type = String(answer.headers["content-type"] ?? "");
  return { operation, status: answer.status, body: answer.body, type };
}

async function namesIn(owner: Owner, path: string): Promise<Names> {
  if (paramsOf(path).length === 0) return {};
  const [names = {}] = await makeNamed(owner, path);
  return names;
}

async function filled(owner: Owner, request: unknown): Promise<unknown> {
  const text = JSON.stringify(request);
  if (text === undefined) return undefined;
  const values: Record<string, () => Promise<string>> = {
    domain: async () => (await owner.domain()).domain,
    domain_id: async () => (await owner.domain()).id,
    rule_id: async () => nameIn(await makeNamed(owner, "/v1/inbound-rules/{id}"), "id"),
    local_part: async () => {
      const { id } = await owner.domain();
      const body = { domain_id: id, local_part: `help${Date.now()}`, action: "store" };
      return (await owner.api.ask("POST", "/v1/aliases", body)).body.alias.address;
    },
  };
  let done = text;
  for (const [name, find] of Object.entries(values)) {
    if (text.includes(`{${name}}`)) done = done.replaceAll(`{${name}}`, await find());
  }
  return JSON.parse(done);
}

function nameIn([names]: Names[], name: string): string {
  const found = names?.[name];
  if (found === undefined) throw new Error(`nothing was made that has the name ${name}`);
  return found;
}

async function post(owner: Owner, path: string, body?: unknown) {
  const answer = await owner.api.ask("POST", path, body);
  if (answer.status >= 300) throw new Error(`POST ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

async function send(owner: Owner, more: object = {}): Promise<string> {
  const { domain } = await owner.domain();
  const mail = { from: `Shop <orders@${domain}>`, to: ["anna@recipient.example"], subject: "Your order 1001" };
  return (await post(owner, "/v1/send", { ...mail, text_body: "Thank you!", tags: ["order"], ...more })).id;
}

/** A domain that has not been warmed. */
async function young(owner: Owner): Promise<string> {
  youngs += 1;
  return (await addVerifiedDomain(owner.api, owner.dns, `young${youngs}.example`, { warm: false })).id;
}
let youngs = 0;

async function quarantined(owner: Owner): Promise<string> {
  const { id, domain } = await owner.domain();
  const thresholds = { tag: 0, quarantine: 0, reject: null };
  await owner.api.ask("PUT", `/v1/domains/${id}/spam`, { thresholds });
  await post(owner, "/v1/aliases", { domain_id: id, local_part: "held*", action: "store" });
  const mail = { to: `held@${domain}`, from: "anna@contact.example", subject: "Hello", text: "x" };
  const { email } = await post(owner, "/v1/inbound-emails/simulate", mail);
  await owner.api.ask("PUT", `/v1/domains/${id}/spam`, { thresholds: { tag: 5, quarantine: 8, reject: 15 } });
  return email.id;
}

/** What must have happened before, where it is more than that the thing exists. */
const PREPARED: Record<string, (owner: Owner) => Promise<Names>> = {
  retryEmail: async (owner) => {
    const id = await send(owner, { to: ["full@recipient.example"] });
    await emailWithStatus(owner.api, id, ["bounced"]);
    return { id };
  },
  cancelEmail: async (owner) => {
    const scheduled_at = new Date(owner.api.world.clock.now() + 86_400_000).toISOString();
    return { id: await send(owner, { scheduled_at }) };
  },
  getEmail: async (owner) => {
    const id = await send(owner);
    await emailWithStatus(owner.api, id, ["delivered"]);
    return { id };
  },
  listEmailEvents: async (owner) => {
    const id = await send(owner);
    await emailWithStatus(owner.api, id, ["delivered"]);
    return { id };
  },
  checkSuppression: async (owner) => {
    await post(owner, "/v1/suppressions", { email: "x@recipient.example", note: "asked by phone" });
    return {};
  },
  listMaskedDestinations: async (owner) => {
    await makeNamed(owner, "/v1/masked/destinations/{id}/pgp-key");
    return {};
  },
  exportMaskedPerson: async (owner) => {
    const { destination } = await post(owner, "/v1/masked/destinations", { email: "x@recipient.example" });
    const body = { public_key: PGP_PUBLIC_KEY };
    await owner.api.ask("PUT", `/v1/masked/destinations/${destination.id}/pgp-key`, body, { key: owner.key });
    return {};
  },
  getDmarcSummary: async (owner) => {
    const [names = {}] = await makeNamed(owner, "/v1/domains/{id}/dmarc/reports/{reportId}");
    return names;
  },
  getDomain: async (owner) => ({ id: await young(owner) }),
  startWarming: async (owner) => ({ id: await young(owner) }),
  getWarming: async (owner) => ({ id: await young(owner) }),
  pauseWarming: async (owner) => ({ id: await young(owner) }),
  resumeWarming: async (owner) => {
    const id = await young(owner);
    await post(owner, `/v1/domains/${id}/warming/pause`);
    return { id };
  },
  deleteDomain: async (owner) => ({ id: (await post(owner, "/v1/domains", { domain: "old.example" })).id }),
  releaseInboundEmail: async (owner) => ({ id: await quarantined(owner) }),
  restoreMaskedAlias: async (owner) => {
    const [names = {}] = await makeNamed(owner, "/v1/masked/aliases/{id}");
    await owner.api.ask("DELETE", `/v1/masked/aliases/${names.id}`);
    return names;
  },
  resendMaskedConfirmation: async (owner) => {
    const [names = {}] = await makeNamed(owner, "/v1/masked/destinations/{id}");
    await owner.api.world.db.query("update masked_destination set confirmation_sent_at = now() - interval '1 hour'");
    return names;
  },
};

const TIME = "2026-11-24T09:30:00.000Z";
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const BASE64 = /[A-Za-z0-9+/]{60,}={0,2}/g;

/** The same answer with made-up ids, times and secrets, and no list longer than one: what the description shows. */
export function toExample(body: unknown): unknown {
  const ids = new Map<string, string>();
  const nameId = (id: string): string => {
    const number = String(ids.size + 1).padStart(12, "0");
    ids.set(id, ids.get(id) ?? `0193a5c0-7b1e-7000-8000-${number}`);
    return ids.get(id) as string;
  };
  return JSON.parse(JSON.stringify(body), (_key, value) => {
    if (Array.isArray(value)) return value.slice(0, 1);
    if (typeof value !== "string") return value;
    if (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)) return TIME;
    if (/^\d{4}-\d\d-\d\d$/.test(value)) return TIME.slice(0, 10);
    return value
      .replace(UUID, nameId)
      .replace(/whsec_[A-Za-z0-9+/=]{43,}/, "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")
      .replace(/svc_(live|test)_[A-Za-z0-9]{38}/, "svc_$1_0000000000000000000000000000000000EXAMPLE")
      .replace(/postern-verify=\w+/, "postern-verify=0example0")
      .replace(BASE64, "MCowBQYDK2VwAyEA")
      .replaceAll("postern.test", "postern.example")
      .slice(0, 80);
  });
}

/** By the component that an answer is described by, which several operations share. */
export function answerName({ operation, status, type }: Played): string | null {
  const media = operation.responses[status]?.content?.["application/json"];
  return type.includes("json") ? (media?.schema.$ref?.split("/").at(-1) ?? null) : null;
}
