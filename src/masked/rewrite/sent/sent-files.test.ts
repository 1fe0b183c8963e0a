// A text file of a contact, forwarded and attached to the answer: it comes back byte for byte, whether what it guessed was the
// mailbox or not.
import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeTransfer } from "../../../mail/mime/decode-transfer.ts";
import { defaultParseLimits } from "../../../mail/mime/parse-message.ts";
import { type Part, parseStructure } from "../../../mail/mime/parse-structure.ts";
import { buildForward } from "../forward.ts";
import { buildReply } from "../reply.ts";
import { A, D, HEAD, order, R } from "../reply-order.fixture.ts";
import { fieldOf } from "../scrub/part-fields.ts";
import { createHider } from "./sent-content.ts";

const OTHER = "anna.reak@home.real.example";
const TOKEN = { reverse: `r.${"c".repeat(26)}@mask.example`, email: D };
const KEY = "00";

const fileOf = (bytes: Buffer): Part => parseStructure(bytes, defaultParseLimits).root.children?.[1] as Part;
const contentOf = (part: Part) => decodeTransfer(part.body, fieldOf(part, "content-transfer-encoding")).bytes;

const headOf = (type: string) => `Content-Type: ${type}\r\nContent-Transfer-Encoding: base64\r\n`;

function withFile(head: string, type: string, content: Buffer): Buffer {
  const text = `${head}Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nsee\r\n--b\r\n${headOf(type)}\r\n${content.toString("base64")}\r\n--b--\r\n`;
  return Buffer.from(text);
}

/** The file as the mailbox gets it, and what its owner's answer with it becomes. */
function roundTrip(type: string, content: Buffer, edit = (file: Buffer) => file) {
  const hider = createHider([TOKEN], KEY);
  const forward = buildForward(withFile("From: shop@example.com\r\nMIME-Version: 1.0\r\n", type, content), {
    ...{ from: { name: null, email: R }, to: [{ name: null, email: A }], cc: [], reply_to: [] },
    ...{ in_reply_to: [], references: [], message_id: "c1@example.com", received_ms: 1_795_000_000_000 },
    ...{ loop_mark: "x", authentication: null, unsubscribe_page: null, calendar: [], hider },
  });
  const got = fileOf(forward);
  const answer = withFile(HEAD.replace(/\r?\n/g, "\r\n"), fieldOf(got, "content-type"), edit(contentOf(got)));
  const sent = { key: KEY, digests: [...hider.digests, ...hider.linked], tokens: [TOKEN] };
  return { got: contentOf(got), reply: buildReply(answer, { ...order(), sent }) };
}

const CODES: ((guess: string) => string)[] = [
  (guess) => guess,
  (guess) => guess.replace("@", "&#64;"),
  (guess) => guess.replace("@", "=40"),
  (guess) => `${guess.slice(0, 3)}\u200b${guess.slice(3)}`,
  (guess) => Buffer.from(guess).toString("hex"),
  (guess) => `https://t.example/${Buffer.from(guess).toString("base64url")}/x`,
  (guess) => `${guess.slice(0, 12)}\r\n${guess.slice(12)}`,
  (guess) => `{"mail":"${guess.replace("@", "\\u0040")}"}`,
];

const filledIn = (file: Buffer) => Buffer.concat([file, Buffer.from(`yes, ${D}\r\n`)]);
const EDITS = [
  { edit: (file: Buffer) => file, more: "" },
  { edit: filledIn, more: `yes, ${A}\r\n` },
];

test("in whatever code the guess stands, also where its owner filled something in", () => {
  for (const code of CODES) {
    for (const guess of [D, OTHER]) {
      const content = Buffer.from(`name;mail\r\nyou;${code(guess)};x\r\n`);
      for (const { edit, more } of EDITS) {
        const { reply } = roundTrip("text/csv; charset=utf-8; name=a.csv", content, edit);
        assert.equal(reply.kind, "built", code(guess));
        const back = fileOf(reply.kind === "built" ? reply.bytes : Buffer.alloc(0));
        assert.equal(contentOf(back).toString(), content.toString() + more);
      }
    }
  }
});

test("in bytes that fit no charset, also where its owner filled something in", () => {
  const odd = Buffer.concat([Buffer.from("Grüße ".repeat(20)), Buffer.from([0xff, 0x81])]);
  for (const type of [
    "text/csv; charset=utf-8; name=a.csv",
    "text/csv; name=a.csv",
    "text/csv; charset=x-a; name=a.csv",
  ]) {
    for (const guess of [D, OTHER]) {
      const content = Buffer.concat([
        odd,
        Buffer.from(`${CODES.map((code) => ` you;${code(guess)};`).join("\r\n")}\r\n`),
      ]);
      for (const { edit, more } of EDITS) {
        const { got, reply } = roundTrip(type, content, edit);
        assert.ok(!got.includes(`;${D};`) && got.includes(odd));
        assert.equal(reply.kind, "built", type);
        const back = fileOf(reply.kind === "built" ? reply.bytes : Buffer.alloc(0));
        assert.deepEqual(contentOf(back), Buffer.concat([content, Buffer.from(more)]));
        assert.equal(back.parameters.get("charset"), /charset=([^;]+)/.exec(type)?.[1]);
      }
    }
  }
});
