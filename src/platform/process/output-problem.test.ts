// A log that cannot be written: what writes it goes on, and says afterwards what is missing.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import { after, test } from "node:test";
import { until } from "../../../test/support/until.ts";

const LOG = new URL("./log.ts", import.meta.url).href;
const dir = mkdtempSync(join(tmpdir(), "postern-log-"));
after(() => rmSync(dir, { recursive: true, force: true }));

const scriptOf = (work: string) => `const { createLog } = await import(${JSON.stringify(LOG)});
  const log = createLog({ level: "info", role: "api" });
  ${work}`;

/** `work` has a `log`, and says on standard error how far it is. The log may have 8 KiB in `file`. */
function run(work: string, file: string): ChildProcess {
  const shell = `ulimit -f 8; exec "$0" --input-type=module -e "$1" >> "$2"`;
  // Blocks of 1,024 bytes are bash's.
  return spawn("bash", ["-c", shell, process.execPath, scriptOf(work), file], { stdio: ["pipe", "ignore", "pipe"] });
}

const linesOf = (file: string) => readFileSync(file, "utf8").trimEnd().split("\n");

test("every line is there in its order when the process ends, however it ends", async () => {
  for (const [at, end] of ["", "process.exit(0)", "log.fatal({ n: 40 }, 'x'); process.exit(0)"].entries()) {
    const file = join(dir, `whole-${at}`);
    const [code] = await once(run(`for (let n = 0; n < 40; n += 1) log.info({ n }, "a line"); ${end}`, file), "close");
    const found = linesOf(file).map((line) => JSON.parse(line).n);
    assert.deepEqual([code, found.slice(0, 40)], [0, Array.from({ length: 40 }, (_, n) => n)]);
    assert.equal(found.length, end.includes("fatal") ? 41 : 40);
  }
});

test("a full disk ends nothing, and the first line behind it says how many are missing", async () => {
  const file = join(dir, "full");
  const work = `let n = 0;
    setInterval(() => { n += 1; log.info({ n, fill: "x".repeat(300) }, "a line"); process.stderr.write("."); }, 5);
    process.stdin.resume().on("end", () => process.exit(0));`;
  const child = run(work, file);
  let said = 0;
  child.stderr?.on("data", (piece: Buffer) => {
    said += piece.length;
  });
  await until("the disk is full, and the work goes on", () => said > 60);
  truncateSync(file);
  const linesBehind = () => linesOf(file).join("\n").split("are lost")[1]?.split("\n").length ?? 0;
  await until("there are lines again, behind the one that says what is missing", () => linesBehind() > 3);
  child.stdin?.end();
  const [code] = await once(child, "close");
  assert.equal(code, 0);
  const lines = linesOf(file).flatMap((line) => (line.startsWith("{") ? [JSON.parse(line)] : []));
  const found = lines.find(({ lost }) => lost !== undefined);
  assert.deepEqual([found.level, found.code, found.lost > 20], ["error", "EFBIG", true]);
});

test("a reader that stops is not waited for, and gets every line in its order once it reads again", async () => {
  const work = `process.stdin.once("data", () => process.exit(0));
    for (let n = 0; n < 1000; n += 1) log.info({ n, fill: "x".repeat(300) }, "a line");
    process.stderr.write("done");`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", scriptOf(work)]);
  // 330 KB are written, and a pipe holds 64 KiB of it.
  await once(child.stderr, "data");
  child.stdin.write("end");
  const lines: number[] = [];
  for await (const line of createInterface(child.stdout)) lines.push(JSON.parse(line).n);
  assert.deepEqual(
    lines,
    Array.from({ length: 1000 }, (_, n) => n),
  );
});

test("an end in the middle of a full disk is an end", async () => {
  const work = `for (let n = 0; n < 200; n += 1) log.info({ n, fill: "x".repeat(300) }, "a line"); process.exit(0)`;
  const child = run(work, join(dir, "end"));
  const [code] = await once(child, "close");
  assert.equal(code, 0);
});
