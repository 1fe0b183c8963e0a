// Attacks on the person and by files, from classes by dice: each makes a reply that would tell who its author is.
import { readFileSync } from "node:fs";
import { deflateRawSync, gzipSync, zstdCompressSync } from "node:zlib";
import { makeZip } from "../../mail/dmarc-report/zip.fixture.ts";
import type { Dice } from "./random-tree.fixture.ts";
import { D, R } from "./reply-order.fixture.ts";
import { SPELLINGS, type Spelling } from "./spelling-attacks.fixture.ts";

/**
 * `telling` must stand nowhere in a reply that leaves; null: nothing may leave, because a file in it tells. `others` are the
 * author's other aliases, which are hidden only as far as the mail names them.
 */
export type Attack = { name: string; bytes: Buffer; mailbox: string; telling: RegExp | null; others?: string[] };

const NAME = "Lena Quokka";
const NAMED = /quokka/i;
const pick = <T>(dice: Dice, from: readonly T[]): T => from[dice(from.length)] as T;
const packed = JSON.parse(readFileSync(new URL("./gate/packed-files.json", import.meta.url), "utf8"));
/** Whom the packed files name. */
const PACKED_D = "anna@home.example";

function message(mailbox: string, body: string): Buffer {
  const head = `From: "${NAME}" <${mailbox}>\nTo: <${R}>\nSubject: Re: order\nMIME-Version: 1.0\n`;
  return Buffer.from(`${head}${body}`.replace(/\r?\n/g, "\r\n"));
}

function withFile(mailbox: string, file: Buffer): Buffer {
  const content = file.toString("base64").replace(/.{76}/g, "$&\n");
  return message(
    mailbox,
    `Content-Type: multipart/mixed; boundary=b\n\n--b\n\nsee\n--b\nContent-Type: application/octet-stream; name=x.bin\nContent-Transfer-Encoding: base64\n\n${content}\n--b--\n`,
  );
}

function beside(dice: Dice): Attack {
  const name = pick(dice, [NAME, NAME.toUpperCase(), "Quokka, Lena", "Lena\n> Quokka", "Lena  Quokka"]);
  const pair = pick(dice, [
    `${name} <${D}>`,
    `"${name}" <${D}>`,
    `${name} (${D})`,
    `${name} [mailto:${D}]`,
    `${name}\n> <${D}>`,
    `${D} (${name})`,
    `${name} <mailto:${D}>`,
  ]);
  const line = pick(dice, [
    (one: string) => `On Fri, Nov 20, 2026 at 8:30 PM ${one} wrote:`,
    (one: string) => `Am 20.11.26 um 20:30 schrieb ${one}:`,
    (one: string) => `Le 20 nov. 2026, ${one} a écrit :`,
    (one: string) => `To: ${one}`,
    (one: string) => `An: ${one}`,
    (one: string) => one,
  ])(pair);
  return {
    name: "beside",
    mailbox: D,
    telling: NAMED,
    bytes: message(D, `Content-Type: text/plain\n\nYes.\n\n> ${line}\n> hi\n`),
  };
}

function besideInHtml(dice: Dice): Attack {
  const name = pick(dice, ["Lena Quokka", "Lena&nbsp;Quokka", "Quokka, Lena"]);
  const pair = pick(dice, [
    `${name} &lt;<a href="mailto:${D}">${D}</a>&gt;`,
    `<b>${name}</b> &lt;${D}&gt;`,
    `<a href="mailto:${D}">${name}</a>`,
    `<strong class="gmail_sendername" dir="auto">${name}</strong> <span dir="auto">&lt;<a href="mailto:${D}">${D}</a>&gt;</span>`,
    `<span>${name}</span> [<a href='mailto:${D}'>mailto:${D}</a>]`,
  ]);
  const html = `<p>Yes.</p><blockquote><b>${pick(dice, ["To:", "An:", "À :", "Para:"])}</b> ${pair}<br>hi</blockquote>`;
  return {
    name: "beside in HTML",
    mailbox: D,
    telling: NAMED,
    bytes: message(D, `Content-Type: text/html\n\n${html}\n`),
  };
}

function invitation(dice: Dice): Attack {
  const more = [
    ...[`SUMMARY:${NAME}`, `COMMENT:${NAME} is away`, "URL:https://quokka.example/x", "X-QUOKKA:1"],
    ...["DESCRIPTION:by Lena\\, Quokka", `LOCATION:at ${NAME}'s`, `CONTACT:${NAME}`, "CONFERENCE:tel:+1-quokka"],
  ].filter(() => dice(2) === 0);
  const lines = [
    ...["BEGIN:VCALENDAR", "PRODID:-//Quokka Mail//EN", `METHOD:${pick(dice, ["REPLY", "REPLY", "COUNTER"])}`],
    ...["BEGIN:VEVENT", `UID:m${dice(1e6)}@example.com`, `ORGANIZER:mailto:${R}`, ...more],
    `ATTENDEE;CN="${NAME}";SENT-BY="mailto:quokka@x.example";PARTSTAT=${pick(dice, ["ACCEPTED", "DECLINED"])}:mailto:${D}`,
    ...["END:VEVENT", "END:VCALENDAR"],
  ].join("\n");
  const text = `--b\nContent-Type: text/plain\n\n${NAME} has accepted.\n`;
  const body = `Content-Type: multipart/alternative; boundary=b\n\n${text}--b\nContent-Type: text/calendar; method=REPLY\n\n${lines}\n--b--\n`;
  return { name: "invitation", mailbox: D, telling: NAMED, bytes: message(D, body) };
}

function card(dice: Dice): Attack {
  const own = pick(dice, [
    `BEGIN:VCARD\nFN:${NAME}\nEMAIL:${D}\nEND:VCARD`,
    `BEGIN:VCARD\nN:Quokka;Lena\nitem1.EMAIL;TYPE=work:${D}\nEND:VCARD`,
    `BEGIN:VCARD\nFN:${NAME}\nTEL:+1\nEND:VCARD`,
  ]);
  const type = pick(dice, ["text/vcard", "text/x-vcard", 'application/octet-stream; name="lena.vcf"']);
  const body = `Content-Type: multipart/mixed; boundary=b\n\n--b\n\nsee\n--b\nContent-Type: ${type}\n\n${own}\n--b--\n`;
  return { name: "card", mailbox: D, telling: NAMED, bytes: message(D, body) };
}

/** In archives within archives, by every method that this machine can pack with. */
function archive(dice: Dice): Attack {
  const mark = Buffer.from(`<dc:creator>${D}</dc:creator>${"x".repeat(dice(4_000))}`);
  let file = makeZip([{ name: "docProps/core.xml", content: mark }]);
  for (let depth = dice(11); depth > 0; depth -= 1) {
    file = pick(dice, [
      () => makeZip([{ name: "in.zip", content: file }]),
      () => gzipSync(file),
      () => zstdCompressSync(file),
    ])();
  }
  return { name: "archive", mailbox: D, telling: null, bytes: withFile(D, file) };
}

/** An archive whose directory does not show the file, or says something else of it. */
function lyingArchive(dice: Dice): Attack {
  const hidden = Buffer.from(`secret of ${D}`.repeat(3));
  const shown = makeZip([{ name: "a.txt", content: Buffer.from("nobody") }]);
  const body = deflateRawSync(hidden);
  const local = Buffer.alloc(30);
  local.write("PK\x03\x04", "latin1");
  local.writeUInt16LE(8, 8);
  if (dice(2) === 0) local.writeUInt32LE(body.length, 18);
  local.writeUInt16LE(1, 26);
  const entry = Buffer.concat([local, Buffer.from("b"), body]);
  return { name: "lying archive", mailbox: D, telling: null, bytes: withFile(D, Buffer.concat([entry, shown])) };
}

function madeElsewhere(dice: Dice): Attack {
  const file = Buffer.from(packed[pick(dice, Object.keys(packed))], "base64");
  const wrapped = dice(2) === 0 ? file : makeZip([{ name: "x", content: file }]);
  return { name: "made elsewhere", mailbox: PACKED_D, telling: null, bytes: withFile(PACKED_D, wrapped) };
}

/** What a spelling leaves that tells, whatever stands around it. */
function spelled(dice: Dice): Attack {
  const { name, isHtml, write } = pick(dice, SPELLINGS);
  const written = write(dice, D);
  const [mark, type] = isHtml || dice(2) === 0 ? (["", "html"] as const) : (["> ", "plain"] as const);
  const text = `Yes.\n\n${mark}first@x.example, ${written}\n${mark}and so on\n`;
  const domain = D.slice(D.indexOf("@") + 1);
  const telling = [written, D, name === "a quote's id" ? domain : D].map((one) => one.replace(/[^a-z0-9]/gi, "\\$&"));
  return {
    name,
    mailbox: D,
    telling: new RegExp(telling.join("|"), "i"),
    bytes: message(D, `Content-Type: text/${type}\n\n${text}`),
  };
}

/** Nobody's folder is named by an alias, its domain tells nothing, and rare encodings are not looked through for aliases. */
const OF_ALIASES: readonly Spelling[] = [
  ...SPELLINGS.filter(({ name }) => !/OneDrive|quote's id|base|hash/.test(name)),
  {
    name: "base64 in a link",
    write: (dice, d) => `https://t.example/${Buffer.from(`${"x".repeat(dice(4))}&e=${d}`).toString("base64url")}/a`,
  },
];

/** Another alias of the mailbox, in all spellings of one, with anything glued to it. */
function sibling(dice: Dice): Attack {
  const other = pick(dice, ["lena.other@mask.example", "9kx2mq4zt7@mask.example", "amber-otter-004711@own.example"]);
  const glue = pick(dice, ["", "to", "x1", "ToTo", "a-b_", "Re:", "über"]);
  const { name, isHtml, write } = pick(dice, OF_ALIASES);
  const written = dice(2) === 0 ? `${glue}${other}` : write(dice, `${glue}${other}`);
  const [mark, type] = isHtml || dice(3) === 0 ? (["", "html"] as const) : (["> ", "plain"] as const);
  const text = `Yes.\n\n${mark}first@x.example, ${written}\n${mark}and so on\n`;
  return {
    name: `another alias: ${name}`,
    mailbox: D,
    others: [other],
    telling: new RegExp([written, other].map((one) => one.replace(/[^a-z0-9]/gi, "\\$&")).join("|"), "i"),
    bytes: message(D, `Content-Type: text/${type}\n\n${text}`),
  };
}

const CLASSES = [
  beside,
  besideInHtml,
  invitation,
  card,
  archive,
  lyingArchive,
  madeElsewhere,
  spelled,
  spelled,
  spelled,
  sibling,
  sibling,
];

/** The attack of this number. */
export function attackOf(number: number, dice: Dice): Attack {
  return (CLASSES[number % CLASSES.length] as (typeof CLASSES)[number])(dice);
}
