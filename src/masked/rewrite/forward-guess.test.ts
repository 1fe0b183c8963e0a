// A forward of a mail with the mailbox in it is that of a mail with another address there, but for the token: over random trees
// of parts, with attached mails, parts without fields, charsets and encodings.
import assert from "node:assert/strict";
import { test } from "node:test";
import { rounds } from "../../../test/support/rounds.ts";
import { decodeTransfer } from "../../mail/mime/decode-transfer.ts";
import { defaultParseLimits } from "../../mail/mime/parse-message.ts";
import { type Part, parseStructure } from "../../mail/mime/parse-structure.ts";
import { buildForward, type ForwardParts } from "./forward.ts";
import { type Dice, diceOf } from "./random-tree.fixture.ts";
import { fieldOf } from "./scrub/part-fields.ts";
import { createHider } from "./sent/sent-content.ts";

const MAILBOX = "anna.real@home.example";
const OTHER = "otto.walross@home.example";
const TOKEN = `r.${"c".repeat(26)}@mask.example`;
const PARTS: ForwardParts = {
  ...{ from: { name: null, email: `r.${"a".repeat(26)}@mask.example` }, to: [], cc: [], reply_to: [] },
  ...{ in_reply_to: [], references: [], message_id: "c1@example.com", received_ms: 1_795_000_000_000 },
  ...{ loop_mark: "mark", authentication: null, unsubscribe_page: null, calendar: [] },
  hider: null,
};
const DEPTH_MAX = 3;
const TYPES = [
  "",
  "plain",
  "html; charset=utf-8",
  "csv; name=a.csv",
  "plain; charset=iso-8859-1",
  "plain; format=flowed",
];
const FIELDS = ["", "X-A: 1\n", "Content-ID: <a@b>\n", "Content-Disposition: attachment; filename=a.txt\n"];

type Piece = { head: string; body: string };

function randomPart(dice: Dice, guess: string, depth = 0): Piece {
  const kind = depth > DEPTH_MAX ? 0 : dice(5);
  if (kind < 3) return randomText(dice, guess);
  if (kind === 3) {
    const { head, body } = randomPart(dice, guess, depth + 1);
    const fields = [`From: ${guess}\nSubject: s\n`, `Subject: ${guess}\n`, `To: x@y.example\nFrom: ${guess}\n`, ""][
      dice(4)
    ];
    return { head: "Content-Type: message/rfc822\n", body: `${fields}${head}\n${body}` };
  }
  const boundary = `b${depth}${dice(1e6)}b`;
  const parts = Array.from({ length: 1 + dice(3) }, () => {
    const { head, body } = randomPart(dice, guess, depth + 1);
    // Without an empty line, as some programs write a part that has no fields.
    return `--${boundary}\n${head}${head === "" && dice(3) === 0 ? "" : "\n"}${body}\n`;
  });
  const type = ["mixed", "alternative", "related"][dice(3)];
  return {
    head: `Content-Type: multipart/${type}; boundary=${boundary}\n`,
    body: `${parts.join("")}--${boundary}--\n`,
  };
}

function randomText(dice: Dice, guess: string): Piece {
  const type = TYPES[dice(TYPES.length)] as string;
  const fields = [type === "" ? "" : `Content-Type: text/${type}\n`, FIELDS[dice(FIELDS.length)]];
  const head = (dice(2) === 0 ? fields : fields.reverse()).join("");
  const text = [`hi ${guess} there`, guess, "nothing", `a\n\n${guess}\n`][dice(4)] as string;
  const encoding = dice(3);
  if (encoding === 0) return { head, body: text };
  return encoding === 1
    ? { head: `${head}Content-Transfer-Encoding: base64\n`, body: Buffer.from(text).toString("base64") }
    : { head: `Content-Transfer-Encoding: quoted-printable\n${head}`, body: text.replace("@", "=40") };
}

/** What a reader sees of each part, in its order. */
function readParts(bytes: Buffer): string[] {
  const read = (part: Part): string[] => {
    const parameters = [...part.parameters].map(([name, value]) => `${name}=${value}`).sort();
    const shown = `${part.type} ${parameters.join("; ")}`;
    if (part.children) return [shown, ...part.children.flatMap(read)];
    const content = decodeTransfer(part.body, fieldOf(part, "content-transfer-encoding")).bytes;
    if (!part.type.startsWith("message/")) return [shown, content.toString("latin1").replace(/\r\n/g, "\n").trimEnd()];
    const { headers } = parseStructure(content, defaultParseLimits).root;
    const fields = headers.filter(({ name }) => !/^content-transfer-encoding$/i.test(name));
    return [shown, ...fields.map(({ name, value }) => `${name}: ${value}`), ...readParts(content)];
  };
  return read(parseStructure(bytes, defaultParseLimits).root);
}

test("over random mails, what the mailbox gets is the same with its address as with any other", () => {
  const count = rounds(300, 3_000);
  const different: number[] = [];
  let held = 0;
  for (let seed = 1; seed <= count; seed += 1) {
    const [right = "", wrong = ""] = [MAILBOX, OTHER].map((guess) => {
      const { head, body } = randomPart(diceOf(seed), guess);
      const raw = `From: a@b.example\nSubject: x\nMIME-Version: 1.0\n${head}\n${body}`.replace(/\n/g, "\r\n");
      const hider = createHider([{ reverse: TOKEN, email: MAILBOX }], "00");
      return readParts(buildForward(Buffer.from(raw), { ...PARTS, hider })).join("\n");
    });
    if (right.includes(TOKEN)) held += 1;
    if (right !== wrong.replaceAll(OTHER, TOKEN)) different.push(seed);
  }
  assert.deepEqual(different.slice(0, 12), []);
  assert.ok(held > count / 3, "the mailbox stands in them");
});

test("lines of DelSp=yes go on as one, whatever stands where they were broken: not every program joins them", () => {
  for (const guess of [MAILBOX, OTHER]) {
    const text = `Hello ${guess.replace("real", "re \nal").replace("walross", "wal \nross")} and \nmore\n> quo \n> ted\n`;
    for (const head of ["Content-Type: text/plain; format=flowed; delsp=yes\n", ""]) {
      const given = `From: shop@example.com\n${head}\n${text}`.replaceAll("\n", "\r\n");
      const hider = createHider([{ reverse: TOKEN, email: MAILBOX }], "00");
      const { root } = parseStructure(buildForward(Buffer.from(given), { ...PARTS, hider }), defaultParseLimits);
      const { type, parameters, body } = root;
      const read = decodeTransfer(body, fieldOf(root, "content-transfer-encoding")).bytes.toString();
      if (head === "") {
        assert.match(read, /and \r\nmore/, "a mail in another format keeps its lines");
        continue;
      }
      assert.deepEqual([type, parameters.get("format"), parameters.get("delsp")], ["text/plain", undefined, undefined]);
      assert.equal(read.replace(TOKEN, guess), `Hello ${guess} andmore\r\n> quoted\r\n`);
    }
  }
});
