// deploy/compose.scale.yaml as far as it can be played without containers: its nodes with the roles and the settings that it
// gives them, each with a data folder of its own, over one database and a real S3 store. Mail whose body is in the store passes
// from one node to the other.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { parse } from "yaml";
import { freePort } from "../support/free-port.ts";
import { hasS3Server, type S3Server, startS3Server } from "../support/s3-server.ts";
import { type Scene, setScene } from "../support/scene.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

type Service = { command?: string[]; environment?: Record<string, string> };
const FILE = join(import.meta.dirname, "../../deploy/compose.scale.yaml");
const { services } = parse(readFileSync(FILE, "utf8"), { merge: true }) as { services: Record<string, Service> };
const LARGE = `${"A body that is not kept in a row. ".repeat(10)}\n`.repeat(1_000);

describe("two nodes by role", { skip: hasS3Server() ? false : "versitygw is not installed" }, () => {
  let store: S3Server;
  let s: Scene;

  before(async () => {
    store = await startS3Server();
    s = await setScene();
    receiveAt(s.dns, "recipient.example");
    for (const name of ["front", "back"]) await startNode(name);
    await addVerifiedDomain(s, s.dns, "sender.example");
  });
  after(async () => {
    await s?.close();
    await store?.stop();
  });

  /** With the file's own settings, but for what is elsewhere here. */
  async function startNode(name: string): Promise<void> {
    const { command = [], environment = {} } = services[name] as Service;
    assert.deepEqual(command.slice(0, 2), ["start", "--roles"]);
    const given = Object.keys(environment).filter((setting) => setting.startsWith("POSTERN_S3_"));
    assert.equal(given.length, 5);
    await s.start(String(command[2]).split(","), {
      ...{ POSTERN_DATA: join(s.dir, name), POSTERN_MASTER_KEY: "7a".repeat(32) },
      ...{ POSTERN_S3_ENDPOINT: store.access.endpoint, POSTERN_S3_BUCKET: store.bucket },
      ...{ POSTERN_S3_REGION: store.access.region, POSTERN_INTERNAL: `127.0.0.1:${await freePort()}` },
      ...{ POSTERN_S3_ACCESS_KEY: store.access.access_key, POSTERN_S3_SECRET_KEY: store.access.secret_key },
    });
  }

  it("what one accepts the other sends, with a body that only the store has", async () => {
    const mail = { from: "a@sender.example", to: ["b@recipient.example"], subject: "Large", text_body: LARGE };
    const { status, body } = await s.ask("POST", "/v1/send", mail);
    assert.equal(status, 202, JSON.stringify(body));
    await emailWithStatus(s, String(body.id), ["delivered"]);
    const [arrived] = await s.sink.waitFor(1);
    assert.ok(Number(arrived?.bytes.length) > LARGE.length);
    const [put, got] = ["PUT", "GET"].map((method) => store.seen.filter((seen) => seen.startsWith(`${method} /kept/`)));
    assert.ok(put?.length && got?.length, JSON.stringify(store.seen));
  });
});
