// `npm run demo -- --keep` as a newcomer meets it: what it prints works, the mail shows, and Ctrl-C leaves nothing behind.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { inheritedEnv } from "../support/inherited-env.ts";
import { until } from "../support/until.ts";

const DEMO = join(import.meta.dirname, "demo.ts");
const READY_WITHIN_MS = 300_000;

let dir: string;
let child: ChildProcess;
let output = "";
let kept: { base_url: string; live_key: string; mailbox: string; person: string; password: string };

before(async () => {
  dir = mkdtempSync(join(tmpdir(), "postern-keep-"));
  const env = { ...inheritedEnv(), TMPDIR: dir };
  child = spawn(process.execPath, [DEMO, "--keep", "--json", "--days", "5"], {
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk) => {
      output += chunk;
    });
  }
  const line = await until(
    () => output,
    () => {
      if (child.exitCode !== null) throw new Error(output);
      return output.split("\n").find((text) => text.startsWith('{"base_url"'));
    },
    READY_WITHIN_MS,
  );
  kept = JSON.parse(line);
});

after(async () => {
  if (child.exitCode === null) {
    child.kill("SIGTERM");
    await once(child, "exit");
  }
  rmSync(dir, { recursive: true, force: true });
});

test("the printed command sends a first mail, and the page and the command show it", async () => {
  const [command] = /^curl -X POST [\s\S]*?'\{.*\}'$/m.exec(output) ?? [];
  assert.ok(command?.includes(`Authorization: Bearer ${kept.live_key}`), output);
  const [, text] = /-d '(\{.*\})'$/.exec(command ?? "") ?? [];
  const mail = { ...JSON.parse(text as string), to: ["anna@some.where.com"], subject: "Mine <b>&</b> first" };
  const answer = await fetch(`${kept.base_url}/v1/send`, {
    method: "POST",
    headers: { authorization: `Bearer ${kept.live_key}`, "content-type": "application/json" },
    body: JSON.stringify(mail),
  });
  assert.equal(answer.status, 202);
  const arrived = await until("the mail arrives", async () => {
    const { messages } = (await (await fetch(`${kept.mailbox}messages`)).json()) as { messages: { subject: string }[] };
    return messages.find(({ subject }) => subject === mail.subject);
  });
  assert.partialDeepStrictEqual(arrived, { to: ["anna@some.where.com"], text: "Hello\n" });
  const page = await (await fetch(kept.mailbox)).text();
  assert.ok(page.includes("Mine &#60;b&#62;&#38;&#60;/b&#62; first"), page);
  const link = /href="(\/\d+)"/.exec(page)?.[1] as string;
  assert.match(await (await fetch(new URL(link, kept.mailbox))).text(), /^Subject: Mine/m);
});

test("days of a shop are in it: what was sent and received, what bounced and was suppressed, on every one of them", async () => {
  const read = async (path: string) => {
    const answer = await fetch(`${kept.base_url}${path}`, { headers: { authorization: `Bearer ${kept.live_key}` } });
    assert.equal(answer.status, 200, path);
    // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
    return (await answer.json()) as any;
  };
  assert.ok((await read("/v1/emails?status=delivered")).total > 40);
  assert.ok((await read("/v1/inbound-emails?status=delivered&environment=live")).total > 3);
  assert.ok((await read("/v1/suppressions")).total > 38);
  assert.ok(
    (await read("/v1/masked/aliases")).aliases.some((one: { emails_forwarded: number }) => one.emails_forwarded > 0),
  );
  assert.ok((await read("/v1/domains/shop.example/dmarc/summary")).total_messages > 0);
  const { stats } = await read("/v1/domains/shop.example/stats/daily?days=5");
  for (const day of stats.slice(0, 4)) assert.ok(day.total_sent > 0, JSON.stringify(day));
});

test("the person that it names signs in to the dashboard", async () => {
  const answer = await fetch(`${kept.base_url}/dashboard/api/sign-in`, {
    method: "POST",
    headers: { "content-type": "application/json", origin: kept.base_url, "x-postern-dashboard": "1" },
    body: JSON.stringify({ email: kept.person, password: kept.password }),
  });
  assert.equal(answer.status, 200, await answer.text());
});

test("Ctrl-C ends all of it: the installation, its database, and its files", async () => {
  const scene = readdirSync(dir).find((name) => name.startsWith("postern-scene-")) as string;
  assert.ok(existsSync(join(dir, scene)));
  child.kill("SIGINT");
  const [code] = await once(child, "exit");
  assert.equal(code, 0, output);
  for (const url of [`${kept.base_url}/healthz`, kept.mailbox]) await assert.rejects(fetch(url));
  assert.equal(existsSync(join(dir, scene)), false);
});
