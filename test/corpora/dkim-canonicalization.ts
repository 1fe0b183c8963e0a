// flanker's canonicalization cases, byte for byte, headers and body, simple and relaxed (RFC 6376 §3.4).
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { canonicalizeBody, canonicalizeHeader, splitFields } from "../../src/mail/dkim/canonicalize.ts";
import { type Corpus, createTally } from "./tally.ts";

export const dkimCanonicalization: Corpus = {
  name: "dkim-canonicalization",
  async run(dir) {
    const tally = createTally();
    for (const file of readdirSync(dir).filter((name) => name.startsWith("email."))) {
      const number = file.slice("email.".length);
      const { fields, body } = splitFields(crlf(join(dir, file)));
      for (const mode of ["simple", "relaxed"] as const) {
        const header = fields.map((field) => canonicalizeHeader(field.bytes, mode));
        const got = Buffer.concat([...header, Buffer.from("\r\n"), canonicalizeBody(body, mode)]);
        const expected = crlf(join(dir, `${mode}.expected.${number}`));
        tally.judge(`${file} ${mode}`, expected.toString("latin1"), got.toString("latin1"));
      }
    }
    return tally;
  },
};

/** LF stands for CRLF in these files. */
function crlf(path: string): Buffer {
  return Buffer.from(readFileSync(path, "latin1").replace(/\r?\n/g, "\r\n"), "latin1");
}
