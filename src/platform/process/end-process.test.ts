import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";

test("the process ends, although whoever asked catches the failure and goes on", async () => {
  const script = `
    const { processEnder } = await import(${JSON.stringify(new URL("./end-process.ts", import.meta.url).href)});
    const endProcess = processEnder({ fatal: (fields, text) => console.log(text + " " + fields.err.message) });
    setInterval(() => {}, 1_000);
    const failing = async () => { const failure = new Error("fsync failed"); endProcess(failure); throw failure; };
    await failing().catch(() => console.log("caught"));`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "ignore"] });
  let said = "";
  child.stdout.on("data", (piece) => {
    said += piece;
  });
  const [code] = await once(child, "close");
  assert.equal(said, "nobody knows what is stored: the process ends fsync failed\ncaught\n");
  assert.equal(code, 1);
});
