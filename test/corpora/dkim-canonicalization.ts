// flanker's canonicalization cases, byte for byte, headers and body, simple and relaxed (RFC 6376 §3.4).
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { canonicalizeHeader, canonicalSlices, splitFields } from "../../src/mail/dkim/canonicalize.ts";
import { caseFiles } from "./case-files.ts";
import type { Corpus } from "./tally.ts";

/** Of blanks behind the last line end the corpus keeps one, as dkimpy does; they end a line as soon as mail is sent. */
const BLANKS_AT_THE_END = "SMTP ends every message with CRLF: blanks before it end a line (RFC 6376 §3.4.4 a) and go";

export const dkimCanonicalization: Corpus = {
  name: "dkim-canonicalization",
  async run(dir, tally) {
    for (const file of caseFiles(dir, "email.*")) {
      const { fields, body } = splitFields(crlf(join(dir, file)));
      for (const mode of ["simple", "relaxed"] as const) {
        const header = fields.map((field) => canonicalizeHeader(field.bytes, mode));
        const canonical = Buffer.concat([...header, Buffer.from("\r\n"), ...canonicalSlices(body, mode)]);
        const got = canonical.toString("latin1");
        const wanted = join(dir, `${mode}.expected.${file.slice("email.".length)}`);
        if (existsSync(wanted)) {
          const expected = crlf(wanted).toString("latin1");
          const isAtTheEnd = /[ \t]$/.test(body.toString("latin1")) && got.trimEnd() === expected.trimEnd();
          tally.judge(`${file} ${mode}`, expected, got, mode === "relaxed" && isAtTheEnd ? BLANKS_AT_THE_END : null);
        } else tally.notes.push(`${file} ${mode}: without its expectation`);
      }
    }
  },
};

/** LF stands for CRLF in these files. */
function crlf(path: string): Buffer {
  return Buffer.from(readFileSync(path, "latin1").replace(/\r?\n/g, "\r\n"), "latin1");
}
