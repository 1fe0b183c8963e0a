// Organizations through the operator's command line (`postern organizations`, `postern sql`), and what of it an API that
// runs beside it does from the next request on.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { inheritedEnv } from "../support/inherited-env.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");

let dns: DnsServer;
let sink: SmtpSink;
let api: TestApi;

before(async () => {
  dns = await startDnsServer();
  sink = await startSmtpSink();
  receiveAt(dns, "recipient.example");
  api = await testApi({ POSTERN_DNS: dns.address, POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) });
  for (const name of ["sender.example", "second.example"]) await addVerifiedDomain(api, dns, name);
});

after(async () => {
  await api?.close();
  await sink?.stop();
  await dns?.stop();
});

type Ran = { code: number; stdout: string; stderr: string };

/** The program as an operator runs it, on the database of the API. */
async function postern(...args: string[]): Promise<Ran> {
  const env = {
    ...inheritedEnv(),
    DATABASE_URL: api.database_url,
    POSTERN_DATA: api.config.data_dir,
    POSTERN_LOG_LEVEL: "warn",
  };
  try {
    return { code: 0, ...(await promisify(execFile)(process.execPath, [MAIN, ...args], { env })) };
  } catch (error) {
    return error as Ran;
  }
}

async function done(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await postern(...args);
  assert.equal(code, 0, stderr);
  return stdout;
}

/** What the engine asks of the relays of senders is answered when the test says so; the API, which asks first, has its answer. */
function lookUpOfRelays(): { isAsked: Promise<void>; answer(): void } {
  const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { db } = api.world;
  const { query } = db;
  let looks = 0;
  db.query = async (text, ...values) => {
    if (text.includes("join relay using")) looks += 1;
    if (text.includes("join relay using") && looks > 1) {
      asked.resolve();
      await answered.promise;
    }
    return query(text, ...values);
  };
  const answer = () => {
    db.query = query;
    answered.resolve();
  };
  return { isAsked: asked.promise, answer };
}

const set = (...options: string[]) => done("organizations", "set", api.org_id, ...options);

const mail = { from: "a@sender.example", to: ["b@recipient.example"], subject: "x", text_body: "x" };
const send = (key: string = api.live_key) => api.ask("POST", "/v1/send", mail, { key });
describe("postern organizations", () => {
  it("creates one whose keys work at once, and lists it", async () => {
    const printed = await done("organizations", "create", "--name", "Shop of Ann", "--plan", "growth");
    const [id, live, test] = ["id", "live key", "test key"].map(
      (name) => new RegExp(`^ {2}${name} +(\\S+)$`, "m").exec(printed)?.[1] ?? "",
    ) as [string, string, string];
    assert.match(live, /^svc_live_/);
    assert.match(test, /^svc_test_/);
    const keys = await api.ask("GET", "/v1/api-keys", undefined, { key: live });
    assert.deepEqual([keys.status, keys.body.total], [200, 2]);
    assert.equal((await api.ask("GET", "/v1/api-keys", undefined, { key: test })).status, 200);
    const { organizations } = JSON.parse(await done("organizations", "list", "--json"));
    assert.equal(organizations.length, 2);
    const { created_at, ...rest } = organizations[1];
    assert.ok(Date.parse(created_at) > 0);
    assert.deepEqual(rest, {
      id,
      name: "Shop of Ann",
      plan: "growth",
      state: "active",
      purpose: null,
      requests_per_second: 100,
      monthly_quota: 500_000,
      own: [],
    });
    const further = (await done("keys", "create", "--name", "x", "--env", "live", "--organization", id)).trim();
    assert.equal((await api.ask("GET", "/v1/api-keys", undefined, { key: further })).body.total, 3);
  });

  it("answers with JSON where that is asked for", async () => {
    const created = JSON.parse(await done("organizations", "create", "--name", "Machine", "--json"));
    assert.deepEqual(Object.keys(created), ["organization", "live_key", "test_key"]);
    const { id } = created.organization;
    const made = JSON.parse(
      await done("keys", "create", "--name", "ci", "--env", "test", "--organization", id, "--json"),
    );
    const shown = await api.ask("GET", `/v1/api-keys/${made.key.id}`, undefined, { key: made.secret });
    assert.deepEqual([shown.status, shown.body.key.name, shown.body.key.environment], [200, "ci", "test"]);
    assert.equal((await api.ask("GET", "/v1/api-keys", undefined, { key: created.live_key })).body.total, 3);
    const changed = JSON.parse(await done("organizations", "set", id, "--plan", "growth", "--json"));
    assert.deepEqual([changed.organization.id, changed.organization.plan], [id, "growth"]);
  });

  it("ends with 2 for a wrong command line, with 1 where the work failed, with 0 for help", async () => {
    for (const args of [
      [],
      ["organisations"],
      ["organizations"],
      ["organizations", "create"],
      ["keys", "create", "--name", "x", "--env", "prod"],
      ["start", "--roles", "cook"],
      ["settings", "colour", "blue"],
    ]) {
      const { code, stderr, stdout } = await postern(...args);
      assert.equal(code, 2, `${args.join(" ")}: ${stderr}${stdout}`);
      assert.ok(stderr.length > 10, args.join(" "));
    }
    const nobody = "01890000-0000-7000-8000-000000000000";
    assert.equal((await postern("organizations", "set", nobody, "--plan", "growth")).code, 1);
    for (const args of [["organizations", "--help"], ["--version"]]) {
      assert.equal((await postern(...args)).code, 0, args.join(" "));
    }
  });

  it("suspends: sends are refused, what is queued waits and leaves once it is active again", async () => {
    const { body } = await send();
    const [head, line] = (await set("--state", "suspended")).split("\n") as [string, string];
    assert.match(head, /^id +state +plan +requests\/s +a month +created +name$/);
    assert.match(line, new RegExp(`^${api.org_id} +suspended +enterprise +5000 +1000000000 +\\S+ +My organization$`));
    const refused = await send();
    assert.deepEqual([refused.status, refused.body.code], [403, "organization_suspended"]);
    await api.startMta();
    const { live_key: other } = await api.organization();
    await addVerifiedDomain(api, dns, "other.example", { key: other });
    const { body: theirs } = await api.ask("POST", "/v1/send", { ...mail, from: "a@other.example" }, { key: other });
    const asOther: TestApi = { ...api, ask: (method, path, body) => api.ask(method, path, body, { key: other }) };
    await emailWithStatus(asOther, theirs.id, ["delivered"], 15_000);
    assert.equal((await api.ask("GET", `/v1/emails/${body.id}`)).body.email.status, "queued", "it waits");
    await set("--state", "active");
    await emailWithStatus(api, body.id, ["delivered"], 15_000);
  });

  it("suspends: what a process has in its memory goes back to the queue, and leaves once it is active again", async () => {
    const gate = Promise.withResolvers<null>();
    const before = sink.messages.length;
    let onTheWire = 0;
    sink.onMessage(() => {
      onTheWire += 1;
      return gate.promise;
    });
    const ids: string[] = [];
    for (let n = 0; n < 12; n += 1) ids.push((await send()).body.id);
    const waiting = async () => {
      const [row] = await api.world.db.query<{ count: number }>(
        "select count(*)::int as count from delivery where org_id = $1 and owner is null",
        [api.org_id],
      );
      return row?.count ?? 0;
    };
    await until("all are in memory", async () => onTheWire > 0 && (await waiting()) === 0);
    const late = lookUpOfRelays();
    ids.push((await api.ask("POST", "/v1/send", { ...mail, from: "a@second.example" })).body.id);
    await late.isAsked;
    await set("--state", "suspended");
    await until(
      "all but what is on the wire, or on its way to it, is in the queue",
      async () => (await waiting()) === ids.length - 1 - onTheWire,
    );
    // It reaches a path that was looked through already, and whose workers are all busy.
    late.answer();
    await until("that follows the others", async () => (await waiting()) === ids.length - onTheWire);
    sink.onMessage(() => null);
    gate.resolve(null);
    await until("that has its outcome", () => sink.messages.length === before + onTheWire);
    const statuses = async () => {
      const answers = await Promise.all(ids.map((id) => api.ask("GET", `/v1/emails/${id}`)));
      return answers.map(({ body }) => body.email.status);
    };
    await until(
      "it is recorded",
      async () => (await statuses()).filter((status) => status === "delivered").length === onTheWire,
    );
    assert.equal((await statuses()).filter((status) => status === "queued").length, ids.length - onTheWire);
    await set("--state", "active");
    for (const id of ids) await emailWithStatus(api, id, ["delivered"], 15_000);
    assert.equal(sink.messages.length, before + ids.length, "each once");
  });

  it("declines what it does not understand with one sentence that names the option", async () => {
    const { code, stdout, stderr } = await postern("organizations", "set", api.org_id, "--state", "asleep");
    assert.deepEqual([code, stdout], [2, ""]);
    assert.match(stderr, /^postern: '--state' is one of pending_review, active, suspended, not "asleep"\n$/);
  });
});

describe("postern sql", () => {
  it("sees every organization's rows, and changes none", async () => {
    const [head, ...ids] = (await done("sql", "select id from organization order by created_at")).trim().split("\n");
    assert.deepEqual([head, ids[0]], ["id", api.org_id]);
    assert.ok(ids.length > 1);
    const refused = await postern("sql", "update organization set state = 'suspended' returning id");
    assert.equal(refused.code, 1);
    assert.equal((await api.ask("GET", "/v1/api-keys")).status, 200);
  });
});
