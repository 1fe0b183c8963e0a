// What a curious contact can do to find the mailbox behind an alias: it writes a list of guesses anywhere in a mail, the
// mailbox's program answers, and the two answers to a list with the mailbox and to one with somebody else in its place are
// compared. Without a server: the forward, a client, and the reply, each built as the service builds them.
import { createHash } from "node:crypto";
import { decodeText } from "../../mail/mime/decode-charset.ts";
import { decodeTransfer } from "../../mail/mime/decode-transfer.ts";
import { decodeEntities } from "../../mail/mime/html-entities.ts";
import { parseMessage } from "../../mail/mime/parse-message.ts";
import { type Part, parseStructure } from "../../mail/mime/parse-structure.ts";
import { fileHeader } from "../../mail/mime/part-headers.ts";
import { encodeBase64 } from "../../mail/mime/write/encode-body.ts";
import { encodeWords } from "../../mail/mime/write/encode-header.ts";
import { shownName } from "../carry/shown-name.ts";
import { carrier } from "./carriers.fixture.ts";
import { SHAPES } from "./client-shapes.fixture.ts";
import { buildForward } from "./forward.ts";
import { fieldReader } from "./header-fields.ts";
import { rewriteLinks } from "./link-rewriters.fixture.ts";
import { linkedAddresses } from "./mailto-links.ts";
import { type Dice, diceOf, disguise } from "./random-tree.fixture.ts";
import { type BuiltReply, buildReply } from "./reply.ts";
import { markupIn } from "./scrub/html-markup.ts";
import { fieldOf, filenameOf } from "./scrub/part-fields.ts";
import { shownAddress, shownReplacements } from "./scrub/shown-address.ts";
import { createHider, personDigest, type SentContent, withoutTokens } from "./sent/sent-content.ts";
import type { Token } from "./sent/tokens.ts";
import { isSameMailbox } from "./spellings.ts";

const A = "k3x@mask.example";
const C = "shop@example.com";
const R = "r.aaaaaaaaaaaaaaaaaaaaaaaaaa@mask.example";
const R_OWNER = "r.cccccccccccccccccccccccccc@mask.example";
const KEY = createHash("sha256").update("play").digest("hex");

const pick = <T>(dice: Dice, from: readonly T[]): T => from[dice(from.length)] as T;

/** The owner's mailbox, and somebody else of as many letters who differs in one. */
export const PAIRS: readonly (readonly [owner: string, other: string])[] = [
  ["lena.quokka@privat.example", "lena.quokkb@privat.example"],
  ["lena.quokka@gmail.com", "lena.quokkb@gmail.com"],
  ["l@q.example", "m@q.example"],
  ["info@kanzlei-okafor.example", "infp@kanzlei-okafor.example"],
  ["lena.quokka.long@dept.privat.example", "lena.quokka.lonh@dept.privat.example"],
];

/** Ways to write a guess into a mail, each in the place it is for. */
type Places = {
  subject: string;
  text: string[];
  html: string[];
  ids: string[];
  name: string;
  file: Buffer;
  calendar: string;
};

function placesOf(dice: Dice, guess: string): Places {
  const at = dice(1 << 30);
  const ways = (n: number) => Array.from({ length: 1 + dice(n) }, () => written(dice, guess));
  return {
    subject: dice(3) === 0 ? `account of ${guess}` : "your order",
    text: ways(4),
    html: [...ways(3), ...Array.from({ length: dice(3) }, () => inHtml(dice, guess))],
    ids: dice(3) === 0 ? [`<${guess}>`, `<${at}.${guess}>`, `<${at}@${guess.split("@")[1]}>`] : [],
    name: dice(6) === 0 ? guess : "Shop",
    file: dice(4) === 0 ? fileOf(diceOf(at), guess) : NO_FILE,
    calendar: dice(6) === 0 ? `for ${guess}` : "",
  };
}

const NO_FILE = Buffer.alloc(0);

/** A list with a guess on it as it is or in any other way, in a charset or in none. */
function fileOf(dice: Dice, guess: string): Buffer {
  const way = dice(2) === 0 ? guess : written(dice, guess);
  const file = `name;mail\r\nfirst;first@x.example\r\nyou;${way}\r\n`;
  const none = Buffer.from(`${"Grüße ".repeat(20)}\r\n`);
  if (dice(4) === 0) return Buffer.concat([none, Buffer.from([0xff, 0x81]), Buffer.from(file)]);
  return dice(3) === 0 ? Buffer.from(file.replace("name", "n\xe4me"), "latin1") : Buffer.from(file);
}

function written(dice: Dice, guess: string): string {
  const upper = [...guess].map((char) => (dice(3) === 0 ? char.toUpperCase() : char)).join("");
  return pick(dice, [
    () => guess,
    () => guess,
    () => upper,
    () => disguise(dice, guess),
    () => disguise(dice, guess),
    () => shownAddress(guess),
    () => shownAddress(guess).replace(/ /g, "  "),
    () => guess.replace("@", pick(dice, ["  @", " @ ", "<!-- > -->@", "<!-- -->@"])),
    () => guess.replace("@", " [at] "),
    () => guess.replace("@", "=").replace(/^/, "bounce-"),
    () => `https://evil.example/?e=${guess}`,
    () => `https://evil.example/?e=${encodeURIComponent(guess)}&x=1`,
    () => `https://evil.example/i/${Buffer.from(guess).toString("base64url")}.gif`,
    () => `<${guess}>,`,
    () => `mailto:${guess}?subject=x`,
    () => carrier(dice, guess).replace(/BEGIN PGP/g, "BEGIN XXX"),
  ])();
}

/** Names of files with a guess in them. */
function namesOf(dice: Dice, guess: string): string[] {
  const ways = [
    guess,
    `${guess}.png`,
    `for ${guess.toUpperCase()}, Müller.png`,
    `x${guess}.png`,
    `${written(dice, guess)}.png`,
    `${"long ".repeat(30)}${guess} and ${guess.replace("@", " [at] ")}.png`,
    `${Buffer.from(`for ${guess} alone`).toString("base64url")}.png`,
    `first@x.example, ${guess}, second@y.example.png`,
  ];
  return Array.from({ length: 1 + dice(3) }, () => pick(dice, ways).replace(/[\r\n]/g, " "));
}

function inHtml(dice: Dice, guess: string): string {
  const plain = guess.replace(/[<>"]/g, "");
  const pixel = Buffer.from(`x${plain},nobody@x.example`).toString("base64");
  return pick(dice, [
    () => `<div style="display:none">${plain} ${plain.toUpperCase()}</div>`,
    () => `<img src="https://evil.example/p?u=${plain}">`,
    () => `<img src="https://evil.example/p/${pixel}" alt="x">`,
    () => `<a href="https://evil.example/?a=1&amp;e=${encodeURIComponent(plain)}">x</a>`,
    () => `<a href="mailto:${plain}">x</a>`,
    () => `<a href='mailto:first@x.example,${encodeURIComponent(plain)}?subject=a&amp;cc=${plain.toUpperCase()}'>x</a>`,
    () => `<a href="mailto:${plain}">${shownAddress(plain)}</a> ${shownAddress(plain)}`,
    () => `<p title="${plain}">x</p>`,
    () => `<p data-x="${plain.replace("@", "&#64;")}">x</p>`,
    () => `<b>${plain.slice(0, 3)}</b>${plain.slice(3)}`,
    () => `<p style="background:url(https://evil.example/${plain})">x</p>`,
    () => `<p>${plain.replace(/./g, (char) => `&#${char.charCodeAt(0)};`)}</p>`,
    () => `<p>${plain.replace("@", "<wbr>@")}</p>`,
  ])();
}

/** Tokens are written in a text. Any other file goes and comes back as it is. */
const FILES = ['text/csv; charset=utf-8; name="list.csv"', 'application/json; name="l.json"', "audio/x-none; name=l"];

/** The contact's mail; `guess` is on its lists beside others. */
function contactMail(
  dice: Dice,
  guess: string,
  kind: PlayKind,
): { bytes: Buffer; message_id: string; references: string[]; name: string } {
  const places = placesOf(dice, guess);
  const others = ["first@x.example", "second@y.example"];
  const boundary = `b${dice(1e9)}`;
  const lines = [others[0], ...places.text, others[1]].join(pick(dice, ["\r\n", " ", "\r\n\r\n", "; "]));
  const html = `<html><body><p>Hello</p>${[others[0], ...places.html, others[1]].join(pick(dice, ["<br>", " ", "</p><p>"]))}</body></html>`;
  const part = (type: string, content: string | Buffer) =>
    Buffer.concat([
      Buffer.from(`--${boundary}\r\nContent-Type: ${type}\r\nContent-Transfer-Encoding: base64\r\n\r\n`),
      encodeBase64(Buffer.isBuffer(content) ? content : Buffer.from(content)),
      Buffer.from("\r\n"),
    ]);
  const parts = [part("text/plain; charset=utf-8", `Hello,\r\n${lines}\r\n`)];
  if (dice(3) > 0) parts.push(part("text/html; charset=utf-8", html));
  if (places.file.length > 0) parts.push(part(pick(dice, FILES), places.file));
  if (places.calendar !== "")
    parts.push(part("text/calendar; charset=utf-8; method=PUBLISH", calendarOf(places.calendar)));
  for (const name of kind === "names" ? namesOf(dice, guess) : []) {
    const fields = fileHeader("Content-Disposition: attachment", "filename", name);
    const type = fileHeader("Content-Type: image/png", "name", name);
    parts.push(
      Buffer.from(`--${boundary}\r\n${type}${fields}Content-Transfer-Encoding: base64\r\n\r\niVBORw0KGgo=\r\n`),
    );
  }
  const message_id = places.ids[0] ?? `<c1.${dice(1000)}@example.com>`;
  const references = places.ids.slice(1);
  const head = `From: ${encodeWords(places.name, 6)} <${C}>\r\nTo: ${A}\r\nSubject: ${encodeWords(places.subject, 9)}\r\nMessage-ID: ${message_id}\r\nMIME-Version: 1.0\r\nContent-Type: multipart/${parts.length === 2 ? "alternative" : "mixed"}; boundary=${boundary}\r\n\r\n`;
  const bytes = Buffer.concat([Buffer.from(head), ...parts, Buffer.from(`--${boundary}--\r\n`)]);
  return { bytes, message_id, references, name: places.name };
}

function calendarOf(description: string): string {
  return `BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:1@example.com\r\nORGANIZER:mailto:${C}\r\nDESCRIPTION:${description}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n`;
}

/** What happens to the mail on its way, beside what its program does: `rewritten` links, files' `names`, `wrapped` quotes. */
export const KINDS = ["as it came", "rewritten", "names", "wrapped"] as const;
export type PlayKind = (typeof KINDS)[number];

export type Answer = { forward: Buffer; reply: BuiltReply };

type How = { redact: "all" | "quoted" | "off"; kind: PlayKind };

/** The way of a mail that names `guess` to the mailbox `owner` and back, by the program that the dice choose. */
export function play(seed: () => Dice, owner: string, guess: string, how: How): Answer {
  const dice = seed();
  const { redact, kind } = how;
  const { bytes, message_id, references, name } = contactMail(dice, guess, kind);
  const linked = linkedIn(bytes, owner);
  const hider = createHider([{ reverse: R_OWNER, email: owner }], KEY, linked);
  const hidden = (text: string) => hider.text(text).text;
  const hiddenId = (id: string) => hider.id(id).text;
  const forward = buildForward(bytes, {
    from: { name: hidden(shownName({ name, email: C })), email: R },
    ...{ to: [{ name: null, email: A }], cc: [], reply_to: [] },
    ...{ in_reply_to: [], references: references.map(hiddenId), message_id: hiddenId(message_id).slice(1, -1) },
    ...{ received_ms: 1_795_000_000_000, loop_mark: "x", authentication: null, unsubscribe_page: null },
    calendar: [
      { from: A, to: owner },
      { from: C, to: R },
    ],
    hider,
  });
  const sent: SentContent = {
    key: KEY,
    digests: [...hider.digests, ...hider.linked, ...hider.lines],
    tokens: [{ reverse: R_OWNER, email: owner, shown: hider.linked.has(personDigest(KEY, owner)) }],
    linked,
  };
  const restored = withoutTokens(sent.tokens);
  const answer = client(dice, forward, owner, kind);
  const reply = buildReply(answer, {
    from: { name: "Anna", email: A },
    ...{ to: [{ name: null, email: C }], cc: [], date_ms: 1_795_000_000_000, message_id: "m1@mask.example" },
    in_reply_to: [restored(hiddenId(message_id))],
    references: references.map((id) => restored(hiddenId(id))),
    hidden: [{ from: owner, to: A }],
    restored: [
      { from: R, to: C },
      { from: " (shop at example.com)", to: "" },
      { from: "shop at example.com", to: C },
      { from: R_OWNER, to: A },
      ...linked.flatMap(({ reverse, email }) => [{ from: reverse, to: email }, ...shownReplacements(email, email)]),
    ],
    unopened_files: "hold",
    own_name: "leave",
    ...{ redact, names: [R], sent, token_seed: "tokentokentoken" },
  });
  return { forward, reply };
}

/** Whom its links name; the owner's mailbox has its token anyhow. */
function linkedIn(bytes: Buffer, owner: string): Token[] {
  const named = linkedAddresses(parseMessage(bytes).html ?? "");
  return named.flatMap((email, at) =>
    isSameMailbox(email, owner) ? [] : { reverse: `r.${"qrstuvwxyz"[at]?.repeat(26)}@mask.example`, email },
  );
}

/** What mail programs write above a quote, in their languages; `{f}` is From, `{r}` its address. */
const ATTRIBUTIONS = [
  "On Fri, Nov 20, 2026 at 8:30 PM {f} <{r}> wrote:",
  "Am 20.11.26 um 20:30 schrieb {f} <{r}>:",
  "Le ven. 20 nov. 2026 à 20:30, {f} <{r}> a écrit :",
  "El vie, 20 nov 2026 a las 20:30, {f} (<{r}>) escribió:",
  "Il giorno ven 20 nov 2026 alle ore 20:30 {f} <{r}> ha scritto:",
  "Em sex., 20 de nov. de 2026 às 20:30, {f} <{r}> escreveu:",
  "Op vr 20 nov 2026 om 20:30 schreef {f} <{r}>:",
  "W dniu 20.11.2026 o 20:30, {f} pisze:",
  "пт, 20 нояб. 2026 г. в 20:30, {f} <{r}>:",
  "2026年11月20日(金) 20:30 {f} <{r}>:",
  "-----Ursprüngliche Nachricht-----\r\nVon: {f} <{r}>\r\nGesendet: Freitag\r\nAn: {a}\r\nBetreff: {s}\r\n",
  "________________________________\r\nFrom: {f} <{r}>\r\nSent: Friday\r\nTo: {a}\r\nSubject: {s}\r\n",
];

type Seen = { from: string; subject: string; text: string; html: string };

/** An answer as some program writes it, from the mailbox, with whatever that says of itself. */
function client(dice: Dice, forward: Buffer, owner: string, kind: PlayKind): Buffer {
  const value = fieldReader(forward);
  const mail = parseMessage(forward);
  const breaking = { width: pick(dice, [65, 72, 74, 76, 78, 80]), isMarked: dice(3) > 0 };
  const incoming = (text: string, isHtml: boolean) =>
    kind === "rewritten" ? rewriteLinks(dice, { text, isHtml, owner }) : text;
  const text = incoming(mail.text ?? "", false);
  const seen: Seen = {
    from: mail.from[0]?.name ?? "",
    subject: value("subject"),
    text,
    html: mail.html
      ? incoming(mail.html, true)
      : `<pre>${text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;")}</pre>`,
  };
  const attribution = pick(dice, ATTRIBUTIONS)
    .replace("{f}", () => seen.from)
    .replace("{r}", R)
    .replace("{a}", A)
    .replace("{s}", () => seen.subject);
  const broken = (given: string) => (kind === "wrapped" ? wrapped(given, breaking) : given);
  const plain = (dice(3) === 0 && mail.html ? toText(seen.html) : seen.text).replace(/\r\n?/g, "\n");
  const quote = pick(dice, [() => plain.replace(/^/gm, "> "), () => plain, () => plain.replace(/^/gm, "| ")])();
  const whole = dice(2) === 0 ? serialized(seen.html) : seen.html;
  const body = kind === "wrapped" ? wrappedHtml(whole, breaking) : whole;
  const shape = pick(dice, SHAPES);
  const message = shape.message({ d: owner, r: R, a: A }).replace(/\r?\n/g, "\r\n");
  const head = /\r\n\r\n/.exec(message)?.index ?? 0;
  const subject = `Subject: Re: ${encodeWords(seen.subject, 12)}`;
  const answered = message.slice(0, head).replace(/^Subject:.*(?:\r\n[ \t].*)*/im, () => subject) + message.slice(head);
  const html = `<div>${attribution.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\r\n/g, "<br>")}</div><blockquote>${body}</blockquote>`;
  const files =
    dice(3) === 0 || kind === "names"
      ? parseStructure(forward, LIMITS).root.children?.filter((part) => filenameOf(part) !== "")
      : [];
  const attached = dice(5) === 0 ? forward : null;
  const answer = withQuote(Buffer.from(answered), { text: broken(`${attribution}\r\n${quote}`), html });
  return withFiles(answer, files ?? [], attached);
}

type Breaking = { width: number; isMarked: boolean };

/** As programs break the lines of a quote, with or without its mark before what goes on. */
function wrapped(text: string, { width, isMarked }: Breaking): string {
  return text
    .split(/\r?\n/)
    .map((line) => {
      const [marks = ""] = /^[>|] /.exec(line) ?? [];
      const lines = [""];
      for (const word of line.slice(marks.length).trimEnd().split(/ +/)) {
        const last = lines.at(-1) as string;
        if (last !== "" && marks.length + last.length + 1 + word.length > width) lines.push(word);
        else lines[lines.length - 1] = last === "" ? word : `${last} ${word}`;
      }
      return lines.map((one, at) => (at === 0 || isMarked ? marks : "") + one).join("\n");
    })
    .join("\n");
}

/** As some write HTML: its source in short lines. */
function wrappedHtml(html: string, breaking: Breaking): string {
  return html.includes("<pre")
    ? html
    : html.replace(/>[^<>]{40,}</g, (text) => wrapped(text, { ...breaking, isMarked: false }).replace(/^\s|\s$/g, ""));
}

const LIMITS = { parts_max: 300, depth_max: 20 };

/** As programs write HTML that they parsed. */
function serialized(html: string): string {
  return html
    .replace(/&(?!amp;|lt;|gt;|quot;|nbsp;)[#a-z0-9]{1,31};/gi, (one) => {
      const char = decodeEntities(one);
      return /^[<>&"]$/.test(char) ? one : char;
    })
    .replace(/<!--[\s\S]*?-->/g, "");
}

function toText(html: string): string {
  let text = "";
  let from = 0;
  for (const { start, end } of markupIn(html)) {
    text += html.slice(from, start) + (/^<\/?(?:br|p|div)\b/i.test(html.slice(start, end)) ? "\r\n" : "");
    from = end;
  }
  return decodeEntities(text + html.slice(from));
}

/** The message with more in its texts. */
function withQuote(message: Buffer, quote: { text: string; html: string }): Buffer {
  return rebuilt(parseStructure(message, LIMITS).root, (part) => {
    if (filenameOf(part) !== "" || !/^text\/(?:plain|html)$/.test(part.type)) return null;
    const { bytes } = decodeTransfer(part.body, fieldOf(part, "content-transfer-encoding"));
    const { text } = decodeText(bytes, part.parameters.get("charset") ?? "");
    if (part.type === "text/plain") return `${text}\r\n${quote.text}\r\n`;
    const end = text.search(/<\/body>|$(?![\s\S])/i);
    return text.slice(0, end) + quote.html + text.slice(end);
  });
}

function rebuilt(part: Part, write: (part: Part) => string | null): Buffer {
  const text = part.children ? null : write(part);
  const type = `${part.type}; charset=utf-8`;
  const fields = part.headers.filter(
    ({ name }) => text === null || !/^content-(?:type|transfer-encoding)$/i.test(name),
  );
  const head = Buffer.concat(
    fields.map(({ raw }) =>
      Buffer.concat([Buffer.from(raw.toString("latin1").trimEnd(), "latin1"), Buffer.from("\r\n")]),
    ),
  );
  if (text !== null) {
    const more = Buffer.from(`Content-Type: ${type}\r\nContent-Transfer-Encoding: base64\r\n\r\n`);
    return Buffer.concat([head, more, encodeBase64(Buffer.from(text))]);
  }
  if (!part.children) return Buffer.concat([head, Buffer.from("\r\n"), part.body]);
  const boundary = part.parameters.get("boundary") ?? "b";
  const pieces = part.children.flatMap((child) => [Buffer.from(`\r\n--${boundary}\r\n`), rebuilt(child, write)]);
  return Buffer.concat([head, Buffer.from("\r\n"), ...pieces, Buffer.from(`\r\n--${boundary}--\r\n`)]);
}

/** The message with files of the mail it answers, and with that mail. */
function withFiles(message: Buffer, files: readonly Part[], attached: Buffer | null): Buffer {
  if (files.length === 0 && attached === null) return message;
  const gap = message.indexOf("\r\n\r\n");
  const head = message
    .toString("latin1", 0, gap)
    .replace(/\r\n[ \t]/g, " ")
    .split("\r\n");
  const [own, rest] = [head.filter((line) => /^content-/i.test(line)), head.filter((line) => !/^content-/i.test(line))];
  const pieces = [
    Buffer.concat([Buffer.from(`${own.join("\r\n")}\r\n\r\n`, "latin1"), message.subarray(gap + 4)]),
    ...files.map((part) => rebuilt(part, () => null)),
    ...(attached === null ? [] : [Buffer.concat([Buffer.from("Content-Type: message/rfc822\r\n\r\n"), attached])]),
  ];
  const body = pieces.flatMap((piece) => [Buffer.from("\r\n--outermost\r\n"), piece]);
  const top = `${rest.join("\r\n")}\r\nContent-Type: multipart/mixed; boundary=outermost\r\n\r\n`;
  return Buffer.concat([Buffer.from(top, "latin1"), ...body, Buffer.from("\r\n--outermost--\r\n")]);
}

/** What two answers differ in beyond the letters of the guess; null when in nothing. */
export function differenceOf(one: BuiltReply, other: BuiltReply): string | null {
  if (one.kind !== "built" || other.kind !== "built") {
    const [a, b] = [one, other].map(reported);
    return a === b ? null : `${a} / ${b}`;
  }
  const [a, b] = [texts(one.bytes), texts(other.bytes)];
  if (a.length !== b.length) return `${a.length} / ${b.length} texts`;
  for (const [at, text] of a.entries()) {
    const found = lettersApart(text, b[at] as string);
    if (found !== null) return found;
  }
  return null;
}

/** All but its bytes: nobody sees them. */
function reported(reply: BuiltReply): string {
  return reply.kind === "built" ? "built" : JSON.stringify({ ...reply, bytes: "" });
}

/** The head and every decoded text. */
function texts(message: Buffer): string[] {
  const { root } = parseStructure(message, LIMITS);
  const leaves = (part: Part): string[] => {
    const head = part.headers
      .map(({ name, value }) => (/^content-transfer/i.test(name) ? "" : `${name}: ${value}`))
      .join("\n");
    if (part.children) return [head, ...part.children.flatMap(leaves)];
    const { bytes } = decodeTransfer(part.body, fieldOf(part, "content-transfer-encoding"));
    return part.type === "message/rfc822"
      ? [head, ...texts(bytes)]
      : [head, decodeText(bytes, part.parameters.get("charset") ?? "utf-8").text];
  };
  return leaves(root);
}

const APART_MAX = 4;

/** One letter of the guess differs; encoded it makes a few differ. */
function lettersApart(one: string, other: string): string | null {
  const around = (at: number) =>
    `${JSON.stringify(one.slice(Math.max(0, at - 60), at + 60))} / ${JSON.stringify(other.slice(Math.max(0, at - 60), at + 60))}`;
  let apart = 0;
  for (let at = 0; at < Math.max(one.length, other.length); at += 1) {
    apart = one[at] === other[at] ? 0 : apart + 1;
    if (apart > APART_MAX) return around(at);
  }
  return one.length === other.length ? null : around(Math.min(one.length, other.length));
}
