// A backup that was restored holds a queue that was sent meanwhile: nothing of it leaves until the operator says so.
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { inheritedEnv } from "../support/inherited-env.ts";
import { type Scene, setScene } from "../support/scene.ts";
import { receiveAt } from "../support/stories.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");

let s: Scene;

before(async () => {
  s = await setScene({ embedded: true, env: { POSTERN_LOG_LEVEL: "info" } });
  receiveAt(s.dns, "recipient.example");
});
after(() => s?.close());

async function send(subject: string): Promise<string> {
  const mail = { from: "a@sender.example", to: ["b@recipient.example"], subject, text_body: "x" };
  const { status, body } = await s.ask("POST", "/v1/send", mail);
  assert.equal(status, 202, JSON.stringify(body));
  return String(body.id);
}

async function statusOf(id: string): Promise<string> {
  const { body } = await s.ask("GET", `/v1/emails/${id}`);
  return (body.email as unknown as { status: string }).status;
}

const data = () => join(s.dir, "data");

test("the old queue waits, new mail is accepted, and `postern resume` sends both", async () => {
  const writing = await s.start(["api", "mta", "clock"]);
  await addVerifiedDomain(s, s.dns, "sender.example");
  const first = await send("first");
  await until("the first is delivered", async () => (await statusOf(first)) === "delivered");
  await writing.stop();
  const accepting = await s.start(["api"]);
  const queued = await send("in the backup");
  await accepting.stop();
  execFileSync("cp", ["-a", data(), join(s.dir, "backup")]); // with its owners, as backups are made

  const sending = await s.start();
  await until("what was queued leaves", async () => (await statusOf(queued)) === "delivered");
  await sending.stop();
  assert.doesNotMatch(sending.output(), /nothing is sent/, "a plain restart is no restored backup");

  rmSync(data(), { recursive: true });
  renameSync(join(s.dir, "backup"), data());
  const restored = await s.start();
  assert.match(restored.output(), /nothing is sent: run `postern resume`/);
  const later = await send("after it was restored");
  assert.deepEqual([await statusOf(queued), await statusOf(later)], ["queued", "queued"]);

  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, "resume"], {
    env: { ...inheritedEnv(), ...s.env },
  });
  assert.match(stdout, /Mail leaves again/);
  await until(
    "both leave",
    async () => (await statusOf(queued)) === "delivered" && (await statusOf(later)) === "delivered",
  );
  await restored.stop();

  const again = await s.start();
  assert.doesNotMatch(again.output(), /nothing is sent/, "it was confirmed once and for all");
  await again.stop();
});
