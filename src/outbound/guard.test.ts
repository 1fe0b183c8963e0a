// When sending may begin without knowing whether the database was restored: never for want of an answer.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, it } from "node:test";
import { guardSending } from "./guard.ts";

const dir = mkdtempSync(join(tmpdir(), "postern-guard-"));
after(() => rmSync(dir, { recursive: true, force: true }));

/** A world whose database refuses to say which cluster it is, for the reason with this code. */
function worldOf(code: string, data_dir = dir) {
  const refuse = Object.assign(new Error("no answer"), { code });
  const query = async (text: string) => {
    if (text.includes("pg_control_system")) throw refuse;
    return [{ identity: "unknown", beats: 1, paused_at: null, reason: null }];
  };
  const quiet = () => undefined;
  return {
    db: { query, execute: async () => 1 },
    config: { database_url: "postgres://elsewhere", data_dir },
    log: { error: quiet, info: quiet, warn: quiet },
    metrics: { gauge: () => ({ set: quiet }) },
  } as unknown as Parameters<typeof guardSending>[0];
}

async function startUnder(world: Parameters<typeof guardSending>[0]): Promise<boolean> {
  let started = false;
  const { stop } = await guardSending(world, async () => {
    started = true;
    return async () => undefined;
  });
  await stop();
  return started;
}

it("begins where the provider lets nobody ask which cluster it is", async () => {
  for (const code of ["42501", "42883"]) assert.equal(await startUnder(worldOf(code)), true, code);
});

it("does not begin because the connection was lost while it asked", async () => {
  for (const code of ["57P01", "ECONNRESET", "08006"]) {
    await assert.rejects(startUnder(worldOf(code)), /no answer/, code);
  }
});

it("does not begin because its own mark cannot be read", async () => {
  const broken = join(dir, "broken");
  mkdirSync(join(broken, "sending.mark"), { recursive: true });
  await assert.rejects(startUnder(worldOf("42501", broken)), /EISDIR/);
});
