// In a process of its own: what V8 was given holds for all that runs in it.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { it } from "node:test";

/** Collections of everything while 2,000 buffers of 1 MiB come and go beside a heap of some MB, as V8 writes them down. */
function collections(before: string): number {
  const work = `${before}
    const kept = Array.from({ length: 200_000 }, (_, n) => ({ n }));
    for (let n = 0; n < 2_000; n += 1) { Buffer.alloc(1 << 20); if (n % 20 === 0) await new Promise(setImmediate); }
    if (kept.length === 0) throw new Error();`;
  const { stdout, status } = spawnSync(process.execPath, ["--trace-gc", "--input-type=module", "-e", work], {
    encoding: "utf8",
  });
  assert.equal(status, 0);
  return [...stdout.matchAll(/Mark-Compact/g)].length;
}

it("everything is collected less often than V8 would, and still collected", () => {
  const own = new URL("./collect-less-often.ts", import.meta.url).href;
  const usual = collections("");
  const less = collections(`(await import(${JSON.stringify(own)})).collectLessOften();`);
  assert.ok(less > 0 && less <= usual / 1.5, `${usual} collections before, ${less} now`);
});
