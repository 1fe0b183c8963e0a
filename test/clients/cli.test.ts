// The client commands against a running server: real HTTP, real SMTP and DNS on loopback.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { Webhook as StandardWebhooks } from "standardwebhooks";
import { readOperations } from "../../clients/cli/commands/resources.ts";
import { readEvents } from "../../clients/cli/events.ts";
import { verify } from "../../clients/node/src/postern.ts";
import { uuidFloor } from "../../src/platform/random.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { type Ended, type Given, runClient } from "../support/client-commands.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { byClock, type MovedClock, runningClock } from "../support/moved-clock.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain, publish } from "../support/verified-domain.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");
const clock: MovedClock = runningClock(new Date().toISOString());
let api: TestApi;
let dns: DnsServer;
let sink: SmtpSink;
let base: string;
let folder: string;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "postern-cli-"));
  dns = await startDnsServer();
  sink = await startSmtpSink();
  sink.onRcpt((address) => {
    const [local] = address.split("@");
    if (local === "unknown") return { code: 550, text: "5.1.1 No such user here" };
    if (local === "full") return { code: 452, text: "4.2.2 Mailbox full" };
    if (local === "spam") return { code: 550, text: "5.7.1 Message rejected as spam by our filter" };
    return null;
  });
  const env = { POSTERN_DNS: dns.address, POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) };
  api = await testApi(env, byClock(clock));
  await api.startMta();
  await api.app.listen({ host: "127.0.0.1", port: 0 });
  base = `http://127.0.0.1:${(api.app.server.address() as AddressInfo).port}`;
  await addVerifiedDomain(api, dns, "sender.example");
  receiveAt(dns, "recipient.example");
});
after(async () => {
  await api.close();
  await sink.stop();
  await dns.stop();
  rmSync(folder, { recursive: true, force: true });
});

type RunOptions = Partial<Given> & { key?: string | null };

/** A command line with the key of the organization here, or another one, or none. */
async function run(words: string[], { key = api.live_key, env, ...given }: RunOptions = {}): Promise<Ended> {
  const access: Record<string, string> = key === null ? {} : { POSTERN_API_KEY: key, POSTERN_BASE_URL: base };
  return runClient(words, { ...given, env: { XDG_CONFIG_HOME: folder, ...access, ...env } });
}

async function send(to: string, more: object = {}, key = api.live_key): Promise<string> {
  const mail = { from: "shop@sender.example", to: [to], subject: "An order", text_body: "Hello", ...more };
  const { status, body } = await api.ask("POST", "/v1/send", mail, { key });
  assert.equal(status, 202, JSON.stringify(body));
  return body.id;
}

test("login checks the key and keeps it in a file that only its owner reads; use, whoami and logout go by it", async () => {
  const wrong = await run(["login", "--base-url", base, "--key-stdin"], { key: null, stdin: "svc_live_wrong" });
  assert.deepEqual([wrong.status, wrong.out], [3, ""]);
  for (const [profile, key] of [
    ["live", api.live_key],
    ["test", api.test_key],
  ] as const) {
    const { status, err } = await run(["login", "--profile", profile, "--base-url", base, "--key-stdin"], {
      key: null,
      stdin: `${key}\n`,
    });
    assert.equal(status, 0, err);
  }
  assert.equal(statSync(join(folder, "postern/profiles.json")).mode & 0o777, 0o600);
  assert.equal((await run(["whoami"], { key: null })).json.environment, "test");
  assert.equal((await run(["use", "live"], { key: null })).status, 0);
  const shown = await run(["whoami"], { key: null, tty: true });
  assert.match(shown.out, /environment.*live/);
  assert.ok(!`${shown.out}${shown.err}`.includes(api.live_key), "the key is never shown");
  assert.equal((await run(["whoami", "--profile", "nobody"], { key: null })).status, 4);
  await run(["logout", "--profile", "live"], { key: null });
  assert.equal((await run(["whoami"], { key: null })).status, 3);
  assert.equal((await run(["whoami", "--profile", "test"], { key: null })).json.environment, "test");
});

test("send takes flags, a file and standard input; --dry-run refuses a live key", async () => {
  const flags = [
    "send",
    "--from",
    "Shop <shop@sender.example>",
    "--to",
    "anna@recipient.example",
    "--subject",
    "By flags",
  ];
  const sent = await run([...flags, "--text", "-", "--tag", "cli", "--idempotency-key", "once"], {
    stdin: "Hello from a pipe",
  });
  assert.equal(sent.json.status, "queued", sent.err);
  const again = await run([...flags, "--text", "-", "--tag", "cli", "--idempotency-key", "once"], {
    stdin: "Hello from a pipe",
  });
  assert.equal(again.json.id, sent.json.id);
  await emailWithStatus(api, sent.json.id, ["delivered"]);
  const file = join(folder, "mail.json");
  writeFileSync(
    file,
    JSON.stringify({ from: "shop@sender.example", to: ["anna@recipient.example"], subject: "x", text_body: "y" }),
  );
  const attached = await run(["send", "--file", file, "--subject", "With a file", "--attach", file]);
  const { email } = (await api.ask("GET", `/v1/emails/${attached.json.id}`)).body;
  assert.equal(email.subject, "With a file");
  assert.equal((await run([...flags, "--text", "x", "--dry-run"])).status, 2);
  assert.equal((await run([...flags, "--text", "x", "--dry-run"], { key: api.test_key })).json.status, "simulated");
  const lacking = await run(["send", "--to", "anna@recipient.example"]);
  assert.deepEqual([lacking.status, /--from/.test(lacking.err)], [2, true]);
});

test("every operation is a command, and its help names its arguments", async () => {
  const rows = readOperations();
  assert.ok(rows.length >= 120, `${rows.length} operations`);
  for (const { resource, method, arguments: args } of rows) {
    const words = [...resource, method].map((word) => word.replaceAll("_", "-"));
    const { out, status } = await run([...words, "--help"], { tty: true });
    assert.equal(status, 0, words.join(" "));
    for (const { name } of args)
      assert.ok(out.includes(`<${name.replaceAll("_", "-")}>`), `${words.join(" ")}: ${name}`);
  }
});

test("resources are created, listed as a table or as JSON, and removed only with a yes", async () => {
  const made = await run([
    "templates",
    "create",
    "--name",
    "Order",
    "--slug",
    "cli-order",
    "--subject",
    "S",
    "--text-body",
    "Hi {{name}}",
  ]);
  assert.equal(made.json.slug, "cli-order", made.err);
  const table = await run(["templates", "list"], { tty: true });
  assert.match(table.out, /slug/);
  assert.match(table.out, /cli-order/);
  assert.ok(
    table.out.split("\n").every((line) => line.length <= 120),
    "a line fits the terminal",
  );
  assert.equal((await run(["templates", "list", "--all"])).json.templates[0].slug, "cli-order");
  const refused = await run(["templates", "delete", "cli-order"]);
  assert.deepEqual([refused.status, /--yes/.test(refused.err)], [2, true]);
  assert.equal((await run(["templates", "delete", "cli-order", "--yes"])).json.deleted, true);
  const gone = await run(["templates", "get", "cli-order"]);
  assert.equal(gone.status, 4);
  const invalid = await run(["templates", "create", "--name", "x", "--subject", "{{", "--text-body", "t"]);
  assert.deepEqual([invalid.status, /subject/.test(invalid.err)], [2, true]);
  const raw = await run(["api", "GET", "/v1/me"]);
  assert.equal(raw.json.environment, "live");
  assert.equal((await run(["api", "POST", "/v1/templates", "--data", "{"])).status, 2);
  const nowhere = await run(["templates", "create", "--data", "@/nowhere.json"]);
  assert.deepEqual([nowhere.status, /--data: \/nowhere\.json.*no such file/.test(nowhere.err)], [2, true]);
});

test("a text that is a file of its own is read from that file", async () => {
  const list = join(folder, "list.csv");
  writeFileSync(list, "email\nimported@recipient.example\n");
  const preview = ["suppressions", "imports", "preview", "--provider", "generic", "--csv"];
  const { json, err } = await run([...preview, `@${list}`]);
  assert.equal(json?.valid_rows, 1, err);
  const nowhere = await run([...preview, "@/nowhere.csv"]);
  assert.deepEqual([nowhere.status, /--csv: \/nowhere\.csv.*no such file/.test(nowhere.err)], [2, true]);
  const template = ["templates", "create", "--name", "n", "--slug", "at", "--text-body", "t", "--subject"];
  const made = await run([...template, "@home"]);
  assert.equal(made.json.subject, "@home", made.err);
});

test("a command that is not there is named with the nearest one, and is wrong usage", async () => {
  const { status, err } = await run(["domain", "list"]);
  assert.equal(status, 2);
  assert.match(err, /domains/);
  const nobody = await run(["whoami"], { key: null, env: { XDG_CONFIG_HOME: join(folder, "empty") } });
  assert.deepEqual([nobody.status, /postern login/.test(nobody.err)], [3, true]);
  const away = await run(["whoami"], { env: { POSTERN_BASE_URL: "http://127.0.0.1:9" } });
  assert.equal(away.status, 5);
});

test("domains add --wait ends when the records are there; dns is a zone file", async () => {
  const waiting = run(["domains", "add", "cli.example", "--wait", "--timeout", "2"]);
  const records = await until("the domain is there", async () => {
    const { status, body } = await api.ask("GET", "/v1/domains/cli.example/dns");
    return status === 200 && body.records;
  });
  publish(dns, records);
  const { status, json, err } = await waiting;
  assert.match(err, /_postern\.cli\.example\. \d+ IN TXT/, "the records to publish are named while it waits");
  assert.deepEqual([status, json?.domain.verified], [0, true], err);
  const zone = await run(["domains", "dns", "cli.example", "--format", "bind"]);
  assert.match(zone.out, /^_postern\.cli\.example\. \d+ IN TXT "postern-verify=/m);
  const unverified = await run(["domains", "add", "never.example", "--wait", "--timeout", "0"]);
  assert.deepEqual([unverified.status, /not verified/.test(unverified.err)], [1, true]);
});

test("why names the cause and the next step of each kind of failure", async () => {
  const why = async (what: string): Promise<string> => {
    const { status, out, err } = await run(["why", what], { tty: true });
    assert.ok(status === 0 || status === 4, err);
    return `${out}${err}`;
  };
  const ended = async (to: string, status: string, more: object = {}) => {
    const id = await send(to, more);
    await emailWithStatus(api, id, [status]);
    return why(id);
  };
  dns.set("null.example", "MX", [{ exchange: "", preference: 0 }]);
  const imported = "left@recipient.example";
  await api.ask("POST", "/v1/suppressions", { email: imported });
  const asImported = "update suppression set reason = 'complaint', source = 'import:custom' where email = $1";
  await api.world.db.execute(asImported, [imported]);
  const expected: [string, () => Promise<string>, RegExp, RegExp][] = [
    ["delivered", () => ended("anna@recipient.example", "delivered"), /server took it/, /spam folder/],
    [
      "5xx",
      () => ended("unknown@recipient.example", "bounced"),
      /does not exist.*No such user/s,
      /Correct the address/,
    ],
    ["suppressed", () => why("unknown@recipient.example"), /suppression list/, /suppressions remove unknown@/],
    ["imported", () => why(imported), /imported on .* as a complaint/, /Leave it there/],
    ["4xx", () => ended("full@recipient.example", "deferred"), /"later" \(452\).*Mailbox full/s, /next try is at/],
    ["spam", () => ended("spam@recipient.example", "bounced"), /refuse|spam/i, /SPF, DKIM|answer/],
    ["no MX", () => ended("anna@nowhere.example", "deferred"), /no mail server/, /next try is at/],
    ["null MX", () => ended("anna@null.example", "bounced"), /takes no mail at all/, /Correct the address/],
    [
      "scheduled",
      async () =>
        why(await send("anna@recipient.example", { scheduled_at: new Date(clock.now() + 3_600_000).toISOString() })),
      /as its sender asked/,
      /emails cancel/,
    ],
    ["test key", async () => why(await send("anna@recipient.example", {}, api.test_key)), /test key/, /live key/],
    [
      "TLS required",
      () => ended("anna@recipient.example", "deferred", { require_tls: true }),
      /terms for TLS that its sender or the domain demands/,
      /next try is at/,
    ],
    [
      "expired",
      () => ended("full@recipient.example", "expired", { expires_at: new Date(clock.now() + 2_000).toISOString() }),
      /could not be delivered in time.*Mailbox full/s,
      /Mend what the answer names, then: postern emails retry/,
    ],
    ["unknown id", () => why("0193a5c0-7b1e-7000-8000-000000000001"), /no e-mail/, /emails list/],
  ];
  for (const [name, ask, cause, next] of expected) {
    const text = await ask();
    assert.match(text, cause, name);
    assert.match(text, next, name);
  }
  const scheduled = await send("anna@recipient.example", {
    scheduled_at: new Date(clock.now() + 3_600_000).toISOString(),
  });
  await api.ask("POST", `/v1/emails/${scheduled}/cancel`);
  assert.match(await why(scheduled), /canceled before it left.*Next:/s);
});

test("why of mail that waits for its domain's limits blames no server", async () => {
  const { id } = await addVerifiedDomain(api, dns, "slow.example", { warm: false });
  const scheduled_at = new Date(clock.now() + 60_000).toISOString();
  const mail = await send("anna@recipient.example", { from: "shop@slow.example", scheduled_at });
  await api.ask("POST", `/v1/domains/${id}/warming/pause`, { reason: "a campaign went wrong" });
  clock.move(61_000);
  await emailWithStatus(api, mail, ["deferred"]);
  const { out } = await run(["why", mail], { tty: true });
  assert.match(out, /has not left yet: .*paused \(a campaign went wrong\).*looked at again at .*why slow\.example/s);
  assert.doesNotMatch(out, /could be reached|The answer was/);
});

test("why of a domain names the pool whose new addresses have sent what they may today", async () => {
  await addVerifiedDomain(api, dns, "pooled.example");
  const made = await api.ask("POST", "/v1/ip-pools", { name: "fresh", ips: [{ ip: "127.0.0.77" }] });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  await api.ask("PUT", "/v1/domains/pooled.example", { ip_pool: "fresh" });
  const why = async (): Promise<string> => (await run(["why", "pooled.example"], { tty: true })).out;
  assert.match(await why(), /no limit holds its mail/);
  const mail = { from: "shop@pooled.example", to: ["anna@recipient.example"], subject: "s", text_body: "t" };
  await api.ask("POST", "/v1/send/batch", Array(51).fill(mail));
  await until("fifty are attempted", async () => {
    const { body } = await api.ask("GET", "/v1/ip-pools/fresh");
    return body.ip_pool.ips[0].warmup.used_today >= 50;
  });
  assert.match(await why(), /pool fresh are new.*the 50 attempts.*after midnight/s);
});

test("why of a domain names what holds its mail: warming, quota, records", async () => {
  const why = async (what: string, key: string) => (await run(["why", what], { tty: true, key })).out;
  assert.match(await why("sender.example", api.live_key), /is verified, and no limit/);
  const { org_id, live_key } = await api.organization("starter");
  // Its plan has 10 requests a second, and this test asks faster.
  await api.world.db.execute("update organization set requests_per_second = 1000 where id = $1", [org_id]);
  const asking = {
    ask: (method: string, path: string, body?: unknown) => api.ask(method, path, body, { key: live_key }),
  };
  const domain = await addVerifiedDomain(asking, dns, "young.example", { warm: false });
  await api.ask(
    "POST",
    `/v1/domains/${domain.id}/warming/pause`,
    { reason: "a campaign went wrong" },
    { key: live_key },
  );
  await api.world.db.execute("update organization set monthly_quota = 0 where id = $1", [org_id]);
  const text = await why("young.example", live_key);
  assert.match(text, /paused: a campaign went wrong.*warming resume/s);
  assert.match(text, /quota is used up: 0 of 0/);
  await api.ask("POST", "/v1/domains", { domain: "new.example", type: "outbound" }, { key: live_key });
  assert.match(await why("new.example", live_key), /not verified.*domains dns new\.example/s);
  const { id } = await addVerifiedDomain(asking, dns, "fading.example");
  const { body } = await asking.ask("GET", `/v1/domains/${id}/dns`);
  for (const { name, type } of body.records) dns.remove(name, type);
  await asking.ask("POST", `/v1/domains/${id}/verify`);
  clock.move(11 * 60_000);
  await asking.ask("POST", `/v1/domains/${id}/verify`);
  assert.match(await why("fading.example", live_key), /degraded.*is gone.*72 hours more.*domains verify fading/s);
});

test("who goes on reading after a pause hears that events may be missing", async () => {
  const stop = new AbortController();
  const said: string[] = [];
  const source = { base_url: base, api_key: api.live_key, types: [], after: uuidFloor(Date.now() - 40 * 86_400_000) };
  const reading = readEvents({ ...source, signal: stop.signal }, (sentence) => said.push(sentence));
  const first = reading.next();
  await until("it is said", () => said.length > 0);
  assert.match(String(said[0]), /^events before 20\S+Z may be missing: they were not kept$/);
  stop.abort();
  await first;
});

test("listen forwards an event byte for byte, signed, and again when asked", async () => {
  const calls: { body: Buffer; headers: IncomingMessage["headers"] }[] = [];
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    calls.push({ body: Buffer.concat(parts), headers: request.headers });
    response.end("ok");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const port = (server.address() as AddressInfo).port;
  const secret = `whsec_${"k".repeat(44)}`;
  const stop = new AbortController();
  const typed = new PassThrough();
  const listening = run(["listen", `${port}/hooks`, "--secret", secret, "--events", "email.delivered"], {
    tty: true,
    signal: stop.signal,
    stdin: typed,
  });
  await until("it is known that somebody reads", async () => {
    const rows = await api.world.db.query("select 1 from event_listener where org_id = $1", [api.org_id]);
    return rows.length > 0;
  });
  // Whether an organization's events are read is known for a second: mail sent before may be missed.
  const found = await until("an event is forwarded", async () => {
    const id = await send("listen@recipient.example");
    await emailWithStatus(api, id, ["delivered"]);
    const missedAt = Date.now() + 3_000;
    const call = await until(
      "it is forwarded or missed",
      () => calls.find(({ body }) => body.includes(id)) ?? (Date.now() > missedAt ? "missed" : null),
    );
    return call === "missed" ? null : { call, id };
  });
  const event = verify(found.call.body, found.call.headers["x-service-signature"], secret);
  assert.deepEqual([event.event, event.email_id], ["email.delivered", found.id]);
  const [stored] = await api.world.db.query<{ body: Buffer }>("select body from webhook_event where id = $1", [
    event.event_id,
  ]);
  assert.deepEqual(found.call.body, stored?.body);
  const standard = new StandardWebhooks(secret).verify(found.call.body.toString(), found.call.headers as never);
  assert.equal((standard as { event_id: string }).event_id, event.event_id);
  const before = calls.length;
  typed.write("r\n");
  const again = await until("it is sent again", () => calls[before]);
  assert.deepEqual(again.body, calls[before - 1]?.body);
  stop.abort();
  const { out } = await listening;
  assert.match(out, /delivered +listen@recipient\.example.*→ 200/);
  server.close();
  server.closeAllConnections();
});

test("the program itself: a pipe gets JSON, and each shell its completions", async () => {
  const words = async (...args: string[]): Promise<{ status: number | null; out: string }> => {
    const env = { ...process.env, POSTERN_API_KEY: api.live_key, POSTERN_BASE_URL: base };
    const child = spawn(process.execPath, [MAIN, ...args], { env, stdio: ["ignore", "pipe", "ignore"] });
    let out = "";
    child.stdout.on("data", (piece) => (out += piece));
    const [status] = await once(child, "close");
    return { status: status as number | null, out };
  };
  const me = await words("whoami");
  assert.deepEqual([me.status, JSON.parse(me.out).environment], [0, "live"]);
  assert.equal((await words("nonsense")).status, 2);
  for (const shell of ["bash", "zsh", "fish"]) assert.match((await run(["completion", shell])).out, /templates/);
  const { out: script } = await words("completion", "bash");
  const offered = (typed: string[]) => {
    const ask = `COMP_WORDS=(postern ${typed.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${typed.length}; _postern; echo "\${COMPREPLY[*]}"`;
    return spawnSync("bash", ["-c", `complete() { :; }\n${script}\n${ask}`], { encoding: "utf8" }).stdout.trim();
  };
  assert.equal(offered(["--profile", "test", "--js"]), "--json");
  assert.equal(offered(["--profile", "test", "emails", "l"]), "list");
  assert.equal(offered(["domains", "get", "shop.example", "--qu"]), "--quiet");
  assert.equal(offered(["send", "--from", "a@b.example", "--to", "send", "--dry"]), "--dry-run");
  assert.equal((await run(["completion", "cmd"])).status, 2);
});

test("fish offers what comes next, also behind an option and its value", { skip: fishIsMissing() }, async () => {
  const script = spawnSync(process.execPath, [MAIN, "completion", "fish"], { encoding: "utf8" }).stdout;
  const offered = (typed: string) => {
    const ask = `${script}\ncomplete -C '${typed}'`;
    const { stdout, stderr } = spawnSync("fish", ["--no-config", "-c", ask], { encoding: "utf8" });
    assert.equal(stderr, "");
    return stdout.trim().split("\n");
  };
  assert.deepEqual(offered("postern --profile test emails l"), ["list"]);
  assert.deepEqual(offered("postern domains --json ver"), ["verify"]);
  assert.deepEqual(offered("postern send --from a@b.example --to send --dry"), ["--dry-run"]);
});

function fishIsMissing(): string | false {
  return spawnSync("fish", ["--version"]).status === 0 ? false : "fish is not installed (apt-get install fish)";
}

test("what every command takes may stand before the command, and between its words", async () => {
  const words = async (...args: string[]) => {
    const env = { ...process.env, POSTERN_API_KEY: api.live_key, POSTERN_BASE_URL: "http://127.0.0.1:9" };
    const child = spawn(process.execPath, [MAIN, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
    const [read, failed] = [text(child.stdout), text(child.stderr)];
    const [status] = (await once(child, "close")) as [number | null];
    return { status, out: await read, err: await failed };
  };
  const before = await words("--base-url", base, "--json", "domains", "list", "--limit", "1");
  assert.deepEqual([before.status, JSON.parse(before.out).domains.length], [0, 1], before.err);
  const between = await words("domains", `--base-url=${base}`, "list", "--limit", "1");
  assert.deepEqual([between.status, JSON.parse(between.out).domains.length], [0, 1], between.err);
  const both = await words("--base-url", "http://127.0.0.1:1", "whoami", "--base-url", base);
  assert.equal(both.status, 0, both.err);
  const unknown = await words("--profile", "nobody", "whoami");
  assert.match(unknown.err, /^postern: there is no profile 'nobody'/);
  assert.equal(unknown.status, 4);
  assert.match((await words("--json", "domains", "nonsense")).err, /^error: unknown command 'nonsense'/);
  const local = await words("--json", "config");
  assert.deepEqual([local.status, typeof JSON.parse(local.out)], [0, "object"], local.err);
  assert.match((await words("--profile", "a", "config")).err, /unknown option '--profile'/);
});

test("a flag of a field takes true or false, and help lists choices within the width", async () => {
  const wrong = await run(["domains", "update", "sender.example", "--active", "maybe"]);
  assert.deepEqual([wrong.status, wrong.err], [2, "postern: --active takes true or false, not 'maybe'\n"]);
  const help = spawnSync(process.execPath, [MAIN, "masked", "aliases", "create", "--help"], { encoding: "utf8" });
  assert.deepEqual(
    help.stdout.split("\n").filter((line) => line.length > 80),
    [],
  );
});

test("what is wrong with a command line is said before anything is asked of the server", async () => {
  const closed = "http://127.0.0.1:9";
  for (const [words, status, sentence] of [
    [["whoami", "--base-url", "127.0.0.1:8080"], 2, /'127\.0\.0\.1:8080' is not the address of a Postern.*--base-url/],
    [["whoami", "--profile", "nobody"], 4, /there is no profile 'nobody'/],
    [["send", "--from", "a@b.example", "--to", "c@d.example", "--attach", "/nope.pdf"], 2, /--attach: \/nope\.pdf/],
    [["domains", "dns", "sender.example", "--format", "xml"], 2, /--format is table, bind, json, not 'xml'/],
    [
      ["domains", "add", "late.example", "--wait", "--timeout", "soon"],
      2,
      /--timeout takes a number of minutes, not 'soon'/,
    ],
    [["listen", "3000", "--events", "email.foo"], 2, /there is no event 'email\.foo'/],
    [["listen", "3000", "--secret", "short"], 2, /--secret takes a signing secret/],
    [["templates", "preview", "templates/nope"], 2, /templates\/nope is not the folder of a template/],
  ] as [string[], number, RegExp][]) {
    const { err, status: ended } = await run(words, { env: { POSTERN_BASE_URL: closed } });
    assert.equal(ended, status, `${words.join(" ")}: ${err}`);
    assert.match(err, sentence);
    assert.doesNotMatch(err, /Signing secret|Ready/);
  }
});

test("another web server is not taken for a Postern", async () => {
  const server = createServer((_request, response) => response.writeHead(404).end("<h1>Not here</h1>"));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { err } = await run(["whoami", "--base-url", `http://127.0.0.1:${(server.address() as AddressInfo).port}`]);
  server.close();
  assert.match(err, /not as a Postern answers: is the address right/);
});

test("trigger fails where the mail is refused", async () => {
  const file = join(folder, "refused.eml");
  writeFileSync(file, "From: a@b.example\r\nTo: x@nowhere.example\r\n\r\nHello\r\n");
  const { err, status } = await run(["trigger", "email.received", "--file", file, "--to", "x@nowhere.example"]);
  assert.equal(status, 1);
  assert.match(err, /the mail was refused: x@nowhere\.example 55\d /);
});

test("trigger fails where the endpoint does not take the event, in JSON as in words", async () => {
  const asked = ["webhooks", "create", "--url", "https://nobody.invalid/hook", "--events", "email.bounced", "--json"];
  const { webhook } = JSON.parse((await run(asked)).out);
  const { out, err, status } = await run(["trigger", "email.bounced", "--webhook", webhook.id, "--json"]);
  assert.equal(status, 1);
  assert.equal(JSON.parse(out).status, "failed");
  assert.match(err, /the endpoint did not take the event/);
  assert.equal((await run(["trigger", "email.bounced", "--webhook", webhook.id], { tty: true })).status, 1);
  await run(["webhooks", "delete", webhook.id]);
});

test("why says that an address is suppressed only where it is", async () => {
  const id = await send("bounced+a@simulator.postern.test");
  const simulated = await until("the simulator has bounced it", async () => {
    const { out } = await run(["why", id], { tty: true });
    return out.includes("bounced") ? out : null;
  });
  assert.doesNotMatch(simulated, /suppressed/);
  const { out } = await run(["why", "unknown@recipient.example"], { tty: true });
  assert.match(out, /suppressed until you remove it: postern suppressions remove unknown@recipient\.example/);
});

test("lists show the status first, also where the terminal says no width", async () => {
  await send("anna@recipient.example");
  for (const columns of [80, 0]) {
    const { out } = await run(["emails", "list", "--limit", "1"], { tty: true, columns });
    assert.match(out, /^id +status +to/, `${columns} columns`);
  }
});
