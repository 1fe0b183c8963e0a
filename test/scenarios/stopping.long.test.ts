// SIGTERM to a process of all roles (reliability rule 16): it ends in good order whatever its clients have left half done,
// what is on the wire is finished, and no lease is kept.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { inheritedEnv } from "../support/inherited-env.ts";
import { type Scene, setScene } from "../support/scene.ts";
import { receiveAt } from "../support/stories.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");

let s: Scene;

before(async () => {
  s = await setScene();
});
after(() => s?.close());

/** A client that sends this and then nothing. */
async function silentAfter(text: string): Promise<Socket> {
  const { hostname, port } = new URL(s.base_url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => undefined);
  await new Promise<void>((done) => socket.once("connect", () => done()));
  await new Promise<void>((done) => (text === "" ? done() : socket.write(text, () => done())));
  return socket;
}

test("it ends in good order although clients have sent half a request, and finishes what is on the wire", async () => {
  const postern = await s.start();
  const { id } = await addVerifiedDomain(s, s.dns, "shop.example");
  receiveAt(s.dns, "customer.example");
  const answering = Promise.withResolvers<null>();
  const held = Promise.withResolvers<void>();
  s.sink.onMessage(() => {
    held.resolve();
    return answering.promise;
  });
  const message = { from: "shop@shop.example", to: ["anna@customer.example"], subject: "hello", text_body: "hello" };
  const sent = await s.ask("POST", "/v1/send", message);
  assert.equal(sent.status, 202, JSON.stringify(sent.body));
  await held.promise;

  const head = `POST /v1/send HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${s.live_key}\r\n`;
  const clients = await Promise.all([
    silentAfter(""),
    silentAfter("GET /v1/domains HTTP/1.1\r\nhos"),
    silentAfter(`${head}content-type: application/json\r\ncontent-length: 500\r\n\r\n{"from": "shop@`),
  ]);
  // The one with a body is being read once a later request on another connection was answered.
  assert.equal((await s.ask("GET", `/v1/domains/${id}`)).status, 200);
  postern.child.kill("SIGTERM");
  const ready = `http://${s.env.POSTERN_INTERNAL}/readyz`;
  await until("readiness says that it stops", async () => (await fetch(ready)).status === 503);
  answering.resolve(null);

  assert.equal(await postern.exited, 0, postern.output());
  const admin = await s.admin();
  const leases = await admin.query("select count(*)::int as kept from lease where node_id is not null");
  assert.deepEqual(leases.rows, [{ kept: 0 }]);
  assert.deepEqual((await admin.query("select * from delivery")).rows, []);
  assert.deepEqual((await admin.query("select status from recipient")).rows, [{ status: "delivered" }]);
  for (const client of clients) client.destroy();
});

test("under npm, whose shell passes no signal on, it ends as by SIGTERM once that shell is gone", async () => {
  const env = { ...inheritedEnv(), ...s.env, npm_package_name: "postern", npm_lifecycle_event: "start" };
  const script = '"$0" "$1" start; true'; // the shell stays between
  const shell = spawn("sh", ["-c", script, process.execPath, MAIN], { env, detached: true, stdio: "ignore" });
  const health = () =>
    fetch(`http://${s.env.POSTERN_INTERNAL}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    );
  try {
    await until("it runs", health);
    shell.kill("SIGTERM");
    await until("it has ended", async () => !(await health()));
    await until("its process is gone", () => !isRunning(-(shell.pid as number)));
  } finally {
    if (isRunning(-(shell.pid as number))) process.kill(-(shell.pid as number), "SIGKILL");
  }
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test("SIGHUP, sent where there is no terminal, ends nothing and is answered by a sentence", async () => {
  const postern = await s.start();
  postern.child.kill("SIGHUP");
  await until("it says so", () => postern.output().includes("SIGHUP changes nothing"));
  assert.equal((await fetch(`http://${s.env.POSTERN_INTERNAL}/healthz`)).status, 200);
  assert.equal(await postern.stop(), 0);
});
