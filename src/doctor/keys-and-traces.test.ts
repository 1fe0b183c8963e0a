// What the doctor says of a key file that is not in force, and of the collector of traces.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { findConfig } from "../config.ts";
import { examine } from "../doctor.ts";
import type { Check } from "./check.ts";

let dir: string;

before(() => {
  dir = mkdtempSync(join(tmpdir(), "postern-doctor-"));
});
after(() => rmSync(dir, { recursive: true, force: true }));

async function look(name: string, set: Record<string, string>): Promise<Check[]> {
  const places = Object.fromEntries(
    ["HTTP", "INTERNAL", "MX", "SUBMISSION"].map((place) => [`POSTERN_${place}`, "127.0.0.1:0"]),
  );
  const env = { ...places, POSTERN_DATA: dir, POSTERN_DNS: "127.0.0.1:1", ...set };
  return (await examine({ try_smtp: null }, () => findConfig(env))).filter((check) => check.name === name);
}

test("a key file of the data folder that is not the master key in force is no key to keep a copy of", async () => {
  const path = join(dir, "master.key");
  writeFileSync(path, `${"ab".repeat(32)}\n`, { mode: 0o600 });
  const found = async (key: string) => (await look("master key", { POSTERN_MASTER_KEY: key }))[0];
  assert.equal((await found("AB".repeat(32)))?.status, "ok");
  const other = await found("cd".repeat(32));
  assert.equal(other?.status, "warning");
  assert.equal(other?.remedy, `Keep a copy of the key in POSTERN_MASTER_KEY; then remove ${path}.`);
});

test("the collector of traces is asked with its headers, and no password of its address is shown", async () => {
  const collector = createServer(({ headers, method, url }, response) => {
    const isGood = method === "POST" && url === "/v1/traces" && headers["x-tenant"] === "ours";
    response.writeHead(isGood ? 200 : 401).end();
  }).listen(0, "127.0.0.1");
  await once(collector, "listening");
  const place = `127.0.0.1:${(collector.address() as AddressInfo).port}`;
  const found = async (tenant: string) => {
    const set = {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://name:hidden@${place}`,
      OTEL_EXPORTER_OTLP_HEADERS: `x-tenant=${tenant}`,
    };
    return (await look("traces", set)).map(({ status, says }) => `${status}: ${says}`).join("; ");
  };
  try {
    const at = `The collector at http://…@${place}/v1/traces`;
    assert.equal(await found("ours"), `ok: ${at} takes traces.`);
    assert.equal(await found("another"), `warning: ${at} takes no traces: it answers 401.`);
    collector.close();
    collector.closeAllConnections();
    assert.ok((await found("ours")).startsWith(`warning: ${at} takes no traces: connect ECONNREFUSED`));
    assert.deepEqual(await look("traces", {}), []);
  } finally {
    collector.close();
  }
});
