// Long, as scrypt is made to be: some seconds of a processor for each passphrase.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { describe, it } from "node:test";
import { open, seal } from "./envelope.ts";
import { all, chunks } from "./streams.fixture.ts";

describe("the envelope of a backup", () => {
  it("opens with its passphrase and with no other", async () => {
    const content = randomBytes(300_000);
    const sealed = await all(await seal(chunks(content, 70_000), { passphrase: "four words of mine", recipients: [] }));
    const openWith = (passphrase: string) =>
      open(Readable.from([sealed], { objectMode: false }), { passphrase, identities: [] });
    assert.ok((await all(openWith("four words of mine"))).equals(content));
    const other = openWith("four words of yours");
    await assert.rejects(all(other), /does not open with this passphrase/);
  });
});
