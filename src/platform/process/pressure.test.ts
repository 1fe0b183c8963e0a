import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { mock, test } from "node:test";
import { testConfig } from "../../../test/support/api.ts";
import { createLog } from "./log.ts";
import { createMetrics } from "./metrics.ts";
import { foldersOnDisk, type Measured, watchPressure } from "./pressure.ts";

const MIB = 1024 * 1024;
const config = testConfig();
const log = createLog({ level: "silent", role: "test" });

async function watched(first: Measured) {
  mock.timers.enable({ apis: ["setInterval"] });
  const metrics = createMetrics();
  const now = { ...first };
  const pressure = await watchPressure({ config, metrics, log }, async () => now);
  const become = async (next: Partial<Measured>) => {
    Object.assign(now, next);
    mock.timers.tick(1_000);
    await new Promise((resolve) => setImmediate(resolve));
    return pressure.shortage();
  };
  return { pressure, metrics, become };
}

test("a disk that fills up is noticed within a second, and is free again only with some more room", async (t) => {
  const { pressure, metrics, become } = await watched({ free_bytes: 101 * MIB, memory_share: 0.1 });
  t.after(() => mock.timers.reset());
  assert.equal(pressure.shortage(), null);
  assert.deepEqual(pressure.room(), { bytes: MIB, looks: 1 });
  assert.equal(await become({ free_bytes: 99 * MIB }), "disk");
  assert.deepEqual(pressure.room(), { bytes: -MIB, looks: 2 });
  assert.match(await metrics.text(), /postern_short\{what="disk"\} 1/);
  assert.equal(await become({ free_bytes: 110 * MIB }), "disk");
  assert.equal(await become({ free_bytes: 121 * MIB }), null);
  assert.match(await metrics.text(), /postern_short\{what="disk"\} 0/);
});

test("memory is short above nine tenths until it falls below 85 hundredths", async (t) => {
  const { become } = await watched({ free_bytes: 10_000 * MIB, memory_share: 0.89 });
  t.after(() => mock.timers.reset());
  assert.equal(await become({ memory_share: 0.91 }), "memory");
  assert.equal(await become({ memory_share: 0.86 }), "memory");
  assert.equal(await become({ memory_share: 0.84 }), null);
});

test("every disk that we fill is looked at: of files, and of the embedded database where it lies", async () => {
  const { data_dir } = testConfig();
  const elsewhere = join(data_dir, "elsewhere");
  const [blobs, spool] = [join(data_dir, "blobs"), join(data_dir, "spool")];
  assert.deepEqual(await foldersOnDisk({ data_dir, database_url: "postgresql://far" }, elsewhere), [
    ...[data_dir, blobs, spool],
  ]);
  const name = "ab".repeat(16);
  const cluster = join(elsewhere, name, "cluster");
  mkdirSync(cluster, { recursive: true });
  writeFileSync(join(data_dir, "database-name"), `${name}\n`);
  assert.deepEqual(await foldersOnDisk({ data_dir, database_url: null }, elsewhere), [
    ...[data_dir, blobs, spool, cluster, join(cluster, "pg_wal")],
  ]);
});

test("this machine can be measured", async () => {
  const metrics = createMetrics();
  const pressure = await watchPressure({ config, metrics, log });
  pressure.stop();
  const text = await metrics.text();
  assert.match(text, /^postern_disk_free_bytes [1-9]\d+$/m);
  const share = Number(/^postern_memory_share ([\d.]+)$/m.exec(text)?.[1]);
  assert.ok(share > 0 && share < 1, `${share}`);
});
