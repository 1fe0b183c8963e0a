// In a process of its own: what V8 was given holds for all that runs in it.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { it } from "node:test";

const TUNE = `(await import(${JSON.stringify(new URL("./tune-v8.ts", import.meta.url).href)})).tuneV8();`;

/** What V8 writes down, with these flags, while it runs this. */
function written(flags: string[], script: string): string {
  const { stdout, status } = spawnSync(process.execPath, [...flags, "--input-type=module", "-e", script], {
    encoding: "utf8",
  });
  assert.equal(status, 0);
  return stdout;
}

/** Collections of everything while 2,000 buffers of 1 MiB come and go beside a heap of some MB, as V8 writes them down. */
function collections(before: string): number {
  const work = `${before}
    const kept = Array.from({ length: 200_000 }, (_, n) => ({ n }));
    for (let n = 0; n < 2_000; n += 1) { Buffer.alloc(1 << 20); if (n % 20 === 0) await new Promise(setImmediate); }
    if (kept.length === 0) throw new Error();`;
  return [...written(["--trace-gc"], work).matchAll(/Mark-Compact/g)].length;
}

it("everything is collected less often than V8 would, and still collected", () => {
  const usual = collections("");
  const less = collections(TUNE);
  assert.ok(less > 0 && less <= usual / 1.5, `${usual} collections before, ${less} now`);
});

/** Whether V8 has compiled a function as well as it can after 20,000 calls. */
function isCompiled(before: string): boolean {
  const work = `${before}
    const words = Array.from({ length: 20 }, (_, n) => String(n));
    const calledOnceAMessage = (n) => words.map((word) => word + n).join(" ").length;
    let sum = 0;
    for (let n = 0; n < 20_000; n += 1) { sum += calledOnceAMessage(n); if (n % 20 === 0) await new Promise(setImmediate); }
    if (sum === 0) throw new Error();`;
  return /completed compiling .*calledOnceAMessage.*TURBOFAN/.test(
    written(["--trace-opt", "--no-concurrent-recompilation"], work),
  );
}

it("what is called once a message is compiled within fewer messages than V8 would wait for", () => {
  assert.equal(isCompiled(""), false);
  assert.equal(isCompiled(TUNE), true);
});
