import assert from "node:assert/strict";
import { it } from "node:test";
import { createSevenBitWriter } from "./seven-bit.ts";

it("writes a large mail in 7 bits while other work goes on", async () => {
  const line = `${"Grüße ".repeat(10)}\r\n`;
  const mime = Buffer.from(`Subject: hello\r\n\r\n${line.repeat(40_000)}`);
  const writer = createSevenBitWriter();
  let turns = 0;
  const other = setInterval(() => {
    turns += 1;
  }, 1);
  const written = await writer.write(mime);
  clearInterval(other);
  await writer.stop();
  assert.ok(turns >= 10, `${turns} turns of other work`);
  assert.equal(written.kind, "written");
  if (written.kind === "written") assert.match(written.bytes.toString(), /\r\n(?:Gr=C3=BC=C3=9Fe ){3}/);
});
