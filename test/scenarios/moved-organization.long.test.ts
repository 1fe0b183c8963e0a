// An organization moves from one cell to another while it is used: nothing that was acknowledged is lost or comes twice, and what is out in
// the world (keys, links, return paths, reverse addresses, webhook secrets) goes on working. Two Posterns as users run them, each with a
// database, a master key and a data folder of its own.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { createHmac, randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { createTransport } from "nodemailer";
import type pg from "pg";
import { BEGIN_AS_SYSTEM } from "../../src/platform/database/session-settings.ts";
import { freePort } from "../support/free-port.ts";
import { inheritedEnv } from "../support/inherited-env.ts";
import { ask } from "../support/postern-process.ts";
import { rawSmtp } from "../support/raw-smtp.ts";
import { type Scene, setScene } from "../support/scene.ts";
import { connectToRows } from "../support/table-digests.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const PROGRAM = resolve(import.meta.dirname, "../../src/main.ts");
const OWNER = "anna.real@home.example";
const CONTACT = "shop.keeper@contact.example";
const PASSPHRASE = "correct horse battery staple";
/** Of one that waits for what is under way, too. */
const COMMAND_MS = 60_000;
const BIG = randomBytes(700_000).toString("base64");

let from: Scene;
let to: Scene;
let moved: { id: string; live_key: string };
let file: string;
let door: string;
const undo = new AsyncDisposableStack();

/** What it had before it moved, and what is out in the world of it. */
const had = { left: "", waiting: "", later: "", return_path: "", unsubscribe: "", reverse: "", mask: "", secret: "" };
const acknowledged: string[] = [];

before(async () => {
  const shared = {
    POSTERN_BACKUP_PASSPHRASE: PASSPHRASE,
    POSTERN_MASKED_DOMAIN: "masks.example",
    POSTERN_BODY_INLINE_BYTES: "100000",
  };
  from = await setScene({ env: shared });
  // The same world outside: names, and the recipients' server.
  to = await setScene({
    env: {
      ...shared,
      POSTERN_DNS: from.dns.address,
      POSTERN_TESTING_OUTBOUND_PORT: String(from.sink.port),
      NODE_EXTRA_CA_CERTS: String(from.env.NODE_EXTRA_CA_CERTS),
    },
  });
  for (const name of ["recipient.example", "waiting.example", "home.example", "contact.example"]) {
    from.dns.set(name, "MX", [{ exchange: `mx.${name}`, preference: 10 }]);
    from.dns.set(`mx.${name}`, "A", ["127.0.0.1"]);
  }
  from.dns.set("contact.example", "TXT", ["v=spf1 ip4:127.0.0.1 -all"]);
  from.dns.set("home.example", "TXT", ["v=spf1 ip4:127.0.0.1 -all"]);
  from.sink.onRcpt((address) => (address.endsWith("@waiting.example") ? { code: 450, text: "4.2.0 not now" } : null));
  file = join(from.dir, "moving");
  door = await startDoor();
});

/** The door of both cells, asked as nginx does. */
async function startDoor(): Promise<string> {
  const place = `127.0.0.1:${await freePort()}`;
  const cells = Object.entries({ from, to }).map(([name, { env }]) => ({
    ...{ name: `cell_${name}`, internal: env.POSTERN_INTERNAL, http: env.POSTERN_HTTP },
    ...{ mx: env.POSTERN_MX, submission: env.POSTERN_SUBMISSION },
  }));
  const list = join(from.dir, "cells.json");
  writeFileSync(list, JSON.stringify({ cells }));
  const args = [PROGRAM, "cells", "door", "--cells", list, "--listen", place];
  const running = spawn(process.execPath, args, { env: inheritedEnv(), stdio: "ignore" });
  undo.defer(() => void running.kill("SIGKILL"));
  const isUp = () => fetch(`http://${place}/where?domain=nobody.example`).then(() => true);
  await until("the door answers", () => isUp().catch(() => false));
  return place;
}

/** Which cell it names for a mail or a request. */
async function cellFor(what: { rcpt?: string; key?: string; path?: string }): Promise<string | undefined> {
  if (what.rcpt !== undefined) {
    const headers = { "auth-method": "none", "auth-smtp-to": `RCPT TO:<${what.rcpt}>` };
    const port = (await fetch(`http://${door}/mail`, { headers })).headers.get("auth-port");
    return { [from.mx_port]: "from", [to.mx_port]: "to" }[Number(port)];
  }
  const headers = {
    "x-original-host": "mail.example",
    "x-original-uri": what.path ?? "/v1/me",
    ...(what.key === undefined ? {} : { authorization: `Bearer ${what.key}` }),
  };
  const named = (await fetch(`http://${door}/http`, { headers })).headers.get("x-postern-cell");
  return named?.replace("cell_", "");
}
after(async () => {
  await undo.disposeAsync();
  await to?.close();
  await from?.close();
});

type Ended = { status: number; out: string; err: string };

function postern(scene: Scene, ...args: string[]): Promise<Ended> {
  const env = { ...inheritedEnv(), ...scene.env };
  return new Promise((done) => {
    execFile(process.execPath, [PROGRAM, ...args], { env, timeout: COMMAND_MS }, (error, out, err) =>
      done({ status: error ? Number(error.code ?? 1) : 0, out, err }),
    );
  });
}

async function printed(scene: Scene, ...args: string[]) {
  const { status, out, err } = await postern(scene, ...args, "--json");
  assert.equal(status, 0, `${args.join(" ")}: ${err}`);
  return JSON.parse(out.trim().split("\n").at(-1) as string);
}

/** With the organization's key, wherever it is. */
const asMoved = (scene: Scene, method: string, path: string, body?: unknown) =>
  ask({ base_url: scene.base_url, live_key: moved.live_key }, method, path, body);

async function smtp(port: number, mail: { from: string; to: string; content: string }) {
  const client = await rawSmtp(port);
  await client.reply();
  const answer = await client.deliver({ ...mail, to: [mail.to] });
  client.destroy();
  return answer;
}

const subjectsAt = (email: string) =>
  from.sink.messages
    .filter(({ to: [first] }) => first === email)
    .map(({ bytes }) => /^Subject: (.*)\r$/m.exec(bytes.toString("latin1"))?.[1]);

const unfolded = (bytes: Buffer) => bytes.toString("latin1").replace(/\r\n\s+/g, " ");

/** As the cell itself sees its rows, on Citus too. */
async function inDatabase<T>(scene: Scene, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await connectToRows(String(scene.env.DATABASE_URL));
  try {
    await client.query(BEGIN_AS_SYSTEM);
    const found = await work(client);
    await client.query("commit");
    return found;
  } finally {
    await client.end();
  }
}

/** Rows that name it, by table. */
function rowsNaming(scene: Scene, orgId: string): Promise<Record<string, number>> {
  return inDatabase(scene, async (client) => {
    const { rows } = await client.query<{ name: string }>(
      `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'org_id'
        where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = current_schema()::regnamespace`,
    );
    const found: Record<string, number> = {};
    for (const { name } of rows) {
      const [counted] = (await client.query(`select count(*)::int as n from ${name} where org_id = $1`, [orgId])).rows;
      if (counted.n > 0) found[name] = counted.n;
    }
    return found;
  });
}

/** Tests look into answers freely; the assertions are the check. */
// biome-ignore lint/suspicious/noExplicitAny: as said
const read = (answer: { body: any }): any => answer.body;

const send = (change: object) =>
  asMoved(from, "POST", "/v1/send", { from: "a@shop.example", subject: "x", text_body: "x", ...change });

const copyFor = (email: string) =>
  until(`a mail for ${email}`, () => from.sink.messages.find(({ to: [first] }) => first === email));

const incoming = (text: string) => ({
  from: CONTACT,
  to: "desk@shop.example",
  content: `From: ${CONTACT}\r\nTo: desk@shop.example\r\n${text}\r\n`,
});

test("an organization with domains, a webhook and a mask that somebody wrote to", async () => {
  await from.start();
  const made = await printed(from, "organizations", "create", "--name", "Moving Ltd");
  moved = { id: made.organization.id, live_key: made.live_key };
  const api = { ask: (method: string, path: string, body?: unknown) => asMoved(from, method, path, body) };
  await addVerifiedDomain({ ask: from.ask }, from.dns, "staying.example", { type: "outbound" });
  const { id: domain_id } = await addVerifiedDomain(api, from.dns, "shop.example", { type: "both" });
  await api.ask("POST", "/v1/aliases", { domain_id, local_part: "desk", action: "store" });
  const hook = await api.ask("POST", "/v1/webhooks", { url: `${from.receiver.url}/hook`, events: ["email.delivered"] });
  assert.equal(hook.status, 201, JSON.stringify(hook.body));
  had.secret = read(hook).secret;
  from.receiver.respond(() => ({ status: 500 }));

  const { alias } = read(await api.ask("POST", "/v1/masked/aliases", { forward_to: [OWNER] }));
  had.mask = `${alias.address}@masks.example`;
  const consent = await copyFor(OWNER);
  const link = /\/masked\/confirm\/[A-Za-z0-9_-]+/.exec(consent.bytes.toString().replace(/=\r\n/g, ""))?.[0];
  assert.equal((await fetch(from.base_url + link, { method: "POST" })).status, 200);
  const content = `From: ${CONTACT}\r\nTo: ${had.mask}\r\nSubject: offer\r\n\r\nx\r\n`;
  assert.equal((await smtp(from.mx_port, { from: CONTACT, to: had.mask, content })).code, 250);
  const forward = await until("the forward", () =>
    from.sink.messages.find(({ bytes }) => /^Subject: offer/m.test(bytes.toString())),
  );
  had.reverse = /^From: .*<(.+)>/m.exec(unfolded(forward.bytes))?.[1] as string;
});

test("mail that left, waits, is scheduled, and came; large ones among them", async () => {
  const left = await send({ to: ["left@recipient.example"], subject: "left", unsubscribe: { list: "news" } });
  const copy = await copyFor("left@recipient.example");
  had.return_path = copy.from;
  had.unsubscribe = /<https?:\/\/[^/]+(\/unsubscribe\/[A-Za-z0-9_-]+)>/.exec(unfolded(copy.bytes))?.[1] as string;
  const attachments = [{ filename: "big.bin", content: BIG, content_type: "application/octet-stream" }];
  const waiting = await send({ to: ["w@waiting.example"], subject: "waiting", attachments });
  const scheduled_at = new Date(Date.now() + 3_600_000).toISOString();
  const later = await send({ to: ["later@recipient.example"], subject: "later", scheduled_at });
  assert.deepEqual([left.status, waiting.status, later.status], [202, 202, 202]);
  [had.left, had.waiting, had.later] = [left, waiting, later].map((one) => read(one).id) as [string, string, string];
  const text = `Subject: came\r\n\r\n${BIG.replace(/.{76}/g, "$&\r\n")}`;
  assert.equal((await smtp(from.mx_port, incoming(text))).code, 250);
  await until("the webhook was tried", () => from.receiver.requests.length > 0);
  await until("one waits", async () => {
    const { email } = read(await asMoved(from, "GET", `/v1/emails/${had.waiting}`));
    return email.recipients[0].attempts === 1;
  });
});

test("it is exported while it sends: each request is accepted or asked to come again", async () => {
  // Its server takes its time: what is there when the hold begins is waited for.
  from.sink.onMessage(async ({ to: [first] }) => {
    if (first === "load@recipient.example") await new Promise((done) => setTimeout(done, 50));
    if (first === "slow@recipient.example") await new Promise((done) => setTimeout(done, 3_000));
    return null;
  });
  const refused = new Set<string>();
  let sending = true;
  const load = (async () => {
    for (let n = 0; sending; n += 1) {
      const subject = `load ${n}`;
      const { status, body } = await send({ to: ["load@recipient.example"], subject });
      if (status === 202) acknowledged.push(subject);
      else refused.add(`${status} ${body.code}`);
      await new Promise((done) => setTimeout(done, 5));
    }
  })();
  await until("some were sent", () => acknowledged.length > 20);
  assert.equal((await send({ to: ["slow@recipient.example"], subject: "slow" })).status, 202);
  const { out, err, status } = await postern(from, "organizations", "export", moved.id, file, "--json");
  assert.equal(status, 0, err);
  const exported = JSON.parse(out);
  await until("requests are refused", () => refused.size > 0);
  sending = false;
  await load;
  assert.ok(exported.rows > 50 && exported.bodies >= 2, out);
  assert.deepEqual([...refused], ["503 unavailable"]);
  assert.match(err, /waiting: .*mail server/);
});

test("it is held still, and nobody else is", async () => {
  const held = await smtp(from.mx_port, incoming("Subject: held\r\n\r\nx"));
  assert.deepEqual([held.code, /moved/.test(held.text)], [451, true], held.text);
  assert.equal(await cellFor({ rcpt: "desk@shop.example" }), "from");
  const auth = { user: "postern", pass: moved.live_key };
  const submission = { host: "127.0.0.1", port: from.submission_port, auth, tls: { rejectUnauthorized: false } };
  const submitted = createTransport(submission).sendMail({
    from: "a@shop.example",
    to: "x@recipient.example",
    text: "x",
  });
  await assert.rejects(submitted, { responseCode: 451, message: /moved/ });
  const clicked = await clickUnsubscribe(from);
  assert.deepEqual([clicked.status, clicked.headers.get("retry-after") !== null], [503, true]);
  const mail = { from: "a@staying.example", to: ["others@recipient.example"], subject: "others", text_body: "x" };
  assert.equal((await from.ask("POST", "/v1/send", mail)).status, 202);
  await until("the other organization sends on", () => subjectsAt("others@recipient.example").length === 1);
  const set = await postern(from, "organizations", "set", moved.id, "--state", "active");
  assert.equal(set.status, 1);
  assert.match(set.err, /organizations keep/);
});

const clickUnsubscribe = (scene: Scene) =>
  fetch(scene.base_url + had.unsubscribe, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: "List-Unsubscribe=One-Click",
  });

test("a cell with keys of its own refuses it; one that was never started takes it whole", async () => {
  const other = undo.adopt(await setScene({ env: { POSTERN_BACKUP_PASSPHRASE: PASSPHRASE } }), (one) => one.close());
  const running = await other.start();
  await running.stop();
  const refused = await postern(other, "organizations", "import", file);
  assert.deepEqual([refused.status, /POSTERN_MASKED_DOMAIN/.test(refused.err)], [2, true], refused.err);
  other.env.POSTERN_MASKED_DOMAIN = "masks.example";
  const unlike = await postern(other, "organizations", "import", file);
  assert.deepEqual([unlike.status, /root key/.test(unlike.err)], [2, true], unlike.err);

  from.receiver.respond(() => ({ status: 200 }));
  from.receiver.requests.length = 0;
  const imported = await printed(to, "organizations", "import", file);
  assert.deepEqual([imported.organization.id, imported.organization.state], [moved.id, "active"]);
  const again = await postern(to, "organizations", "import", file);
  assert.deepEqual([again.status, /here already/.test(again.err)], [2, true], again.err);
  await to.start();
});

test("its requests, its mail and its links find it, all that was acknowledged arrives once", async () => {
  for (const path of [
    ...["/v1/me", "/v1/domains", "/v1/aliases", "/v1/emails?limit=100", `/v1/emails/${had.left}/events`],
    ...["/v1/webhooks", "/v1/inbound-emails", "/v1/masked/aliases"],
  ]) {
    const there = await asMoved(to, "GET", path);
    assert.equal(there.status, 200, `${path}: ${JSON.stringify(there.body)}`);
  }
  const [came] = read(await asMoved(to, "GET", "/v1/inbound-emails")).emails;
  const raw = await fetch(`${to.base_url}/v1/inbound-emails/${came.id}/raw`, {
    headers: { authorization: `Bearer ${moved.live_key}` },
  });
  assert.ok((await raw.text()).includes(BIG.slice(0, 76)));

  await until("all of the load arrived", () => subjectsAt("load@recipient.example").length >= acknowledged.length);
  from.sink.onRcpt(() => null);
  await to.moveClock(30 * 60_000);
  const big = (await copyFor("w@waiting.example")).bytes.toString("latin1");
  assert.ok(big.replace(/\r\n/g, "").includes(BIG));
  assert.match(unfolded(Buffer.from(big, "latin1")), /^DKIM-Signature:.* d=shop\.example;/m);
  assert.deepEqual(subjectsAt("load@recipient.example").sort(), acknowledged.sort());
  assert.deepEqual(subjectsAt("slow@recipient.example"), ["slow"]);
  assert.equal(read(await asMoved(to, "GET", `/v1/emails/${had.later}`)).email.status, "scheduled");
});

test("webhooks that failed before come from the other cell, signed with the same secret", async () => {
  await to.moveClock(60 * 60_000);
  const delivered = await until("the one of the first mail", () =>
    from.receiver.requests.find(({ body }) => body.includes(had.left)),
  );
  const [, t, v1] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(delivered.headers["x-service-signature"])) ?? [];
  assert.equal(v1, createHmac("sha256", had.secret).update(`${t}.`).update(delivered.body).digest("hex"));
});

test("the door sends each to the cell that has it, and what is out in the world goes on working", async () => {
  assert.equal(await cellFor({ key: moved.live_key }), "to");
  assert.equal(await cellFor({ key: from.live_key }), "from");
  assert.equal(await cellFor({ path: had.unsubscribe }), "to");
  for (const rcpt of ["desk@shop.example", had.return_path, had.reverse, had.mask]) {
    assert.equal(await cellFor({ rcpt }), "to", rcpt);
  }
  assert.equal((await clickUnsubscribe(to)).status, 200);
  const bounced = await smtp(to.mx_port, { from: "", to: had.return_path, content: "Subject: failed\r\n\r\nx\r\n" });
  assert.equal(bounced.code, 250, `${had.return_path}: ${bounced.text}`);
  const content = `From: ${OWNER}\r\nTo: ${had.reverse}\r\nSubject: Re: offer\r\n\r\nyes\r\n`;
  const replied = await smtp(to.mx_port, { from: OWNER, to: had.reverse, content });
  assert.equal(replied.code, 250, `${had.reverse}: ${replied.text}`);
  await until("the contact has the reply", () => subjectsAt(CONTACT).includes("Re: offer"));
});

/** Than the file has: a process that had stood still let it in. */
async function oneMailMore(scene: Scene, more: 1 | -1): Promise<void> {
  const text = "update organization_move set exported_mails = exported_mails - $1";
  assert.equal((await inDatabase(scene, (client) => client.query(text, [more]))).rowCount, 1);
}

test("where another cell has it, it is not let go on here", async () => {
  const behindDoor = { ...from, env: { ...from.env, POSTERN_CELLS_DOOR: door } };
  const kept = await postern(behindDoor, "organizations", "keep", moved.id);
  assert.deepEqual([kept.status, /another cell has it: shop\.example/.test(kept.err)], [2, true], kept.err);
});

test("it is removed where it was, with all it had, and can come back", async () => {
  await from.moveClock(61_000);
  await oneMailMore(from, 1);
  const refused = await postern(from, "organizations", "remove", moved.id);
  assert.deepEqual([refused.status, /1 mails were accepted here after/.test(refused.err)], [2, true], refused.err);
  await oneMailMore(from, -1);
  const removed = await printed(from, "organizations", "remove", moved.id);
  assert.ok(removed.rows > 50, JSON.stringify(removed));
  assert.ok(Object.keys(await rowsNaming(to, moved.id)).length > 20);
  const { lane: _lane, blob_reference: _released, ...remaining } = await rowsNaming(from, moved.id);
  assert.deepEqual(remaining, {});
  assert.equal((await asMoved(from, "GET", "/v1/me")).status, 401);
  assert.equal(read(await from.ask("GET", "/v1/domains")).total, 1);

  const back = join(from.dir, "back");
  await printed(to, "organizations", "export", moved.id, back);
  await printed(to, "organizations", "keep", moved.id);
  assert.equal((await asMoved(to, "GET", "/v1/me")).status, 200, "it was kept");
  await printed(to, "organizations", "export", moved.id, `${back}2`);
  const returned = await printed(from, "organizations", "import", `${back}2`);
  assert.equal(returned.organization.id, moved.id);
  assert.equal(read(await asMoved(from, "GET", `/v1/emails/${had.left}`)).email.id, had.left);
  assert.equal((await clickUnsubscribe(from)).status, 200);
});
