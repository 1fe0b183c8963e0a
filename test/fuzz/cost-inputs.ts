// Requests that may take much of the processor for each of their bytes: an operation, a field of it, and a piece that is
// repeated there. Small enough to be shown in a line; the bytes are made where they are sent.
import type { Chance } from "../faults/seeded.ts";

/** `#` in a piece is the number of its turn, so that names of members differ. */
export type CostInput = { path: string; field: string; piece: string; bytes: number };

type Place = { path: string; bytes_max: number; type?: string; fields: Record<string, [open: string, close: string]> };

const KIB = 1024;
const MIB = 1024 * KIB;
const SEND = '"from":"a@attacker.example","to":["b@recipient.example"],"subject":"x"';

/** What stands around the pieces: texts in quotes, lists, objects. */
const PLACES: readonly Place[] = [
  {
    path: "/v1/send",
    bytes_max: 24 * MIB,
    fields: {
      html_body: [`{${SEND},"html_body":"`, '"}'],
      text_body: [`{${SEND},"text_body":"`, '"}'],
      subject: ['{"from":"a@attacker.example","to":["b@recipient.example"],"text_body":"x","subject":"', '"}'],
      "from (name)": ['{"to":["b@recipient.example"],"subject":"x","text_body":"x","from":"', '"}'],
      headers: [`{${SEND},"text_body":"x","headers":{`, '"z":"z"}}'],
      metadata: [`{${SEND},"text_body":"x","metadata":{`, '"z":1}}'],
      variables: [`{${SEND},"template":"costs","variables":{`, '"z":1}}'],
      "variables.list": [
        '{"from":"a@attacker.example","to":["b@recipient.example"],"template":"costs","variables":{"list":[',
        "1]}}",
      ],
      to: ['{"from":"a@attacker.example","subject":"x","text_body":"x","to":[', '"b@recipient.example"]}'],
      tags: [`{${SEND},"text_body":"x","tags":[`, '"z"]}'],
      attachments: [`{${SEND},"text_body":"x","attachments":[`, '{"filename":"f","content":""}]}'],
      content: [`{${SEND},"text_body":"x","attachments":[{"filename":"f","content":"`, '"}]}'],
      body: ["{", '"z":1}'],
    },
  },
  {
    path: "/v1/send/batch",
    bytes_max: 24 * MIB,
    fields: {
      emails: ['{"emails":[', "{}]}"],
      body: ["[", "{}]"],
      html_body: [`[{${SEND},"html_body":"`, '"}]'],
      text_body: [`[{${SEND},"text_body":"`, '"}]'],
    },
  },
  {
    path: "/v1/templates",
    bytes_max: 4 * MIB,
    fields: {
      html_body: ['{"name":"x","subject":"x","html_body":"', '"}'],
      variables: ['{"name":"x","subject":"x","text_body":"x","variables":[', '{"name":"z"}]}'],
    },
  },
  {
    path: "/v1/templates/costs/preview",
    bytes_max: 4 * MIB,
    fields: { variables: ['{"variables":{', '"z":1}}'], "variables.list": ['{"variables":{"list":[', "1]}}"] },
  },
  {
    path: "/v1/inbound-emails/simulate",
    bytes_max: 8 * MIB,
    fields: {
      raw: ['{"to":"x@attacker.example","raw":"', '"}'],
      html: ['{"to":"x@attacker.example","from":"c@other.example","html":"', '"}'],
    },
  },
  { path: "/v1/inbound-rules", bytes_max: MIB, fields: { body: ["{", '"z":1}'], name: ['{"name":"', '"}'] } },
  {
    path: "/v1/webhooks",
    bytes_max: MIB,
    fields: { url: ['{"url":"https://', '"}'], events: ['{"events":[', '"z"]}'] },
  },
  { path: "/v1/suppressions", bytes_max: MIB, fields: { email: ['{"email":"', '"}'], body: ["{", '"z":1}'] } },
  { path: "/v1/domains", bytes_max: MIB, fields: { domain: ['{"domain":"', '"}'] } },
  {
    path: "/v1/imports/suppressions/preview",
    bytes_max: 24 * MIB,
    fields: { csv: ['{"csv":"email,reason\\n', '"}'], body: ["{", '"csv":""}'] },
  },
  {
    path: "/v1/dmarc/reports",
    bytes_max: 12 * MIB,
    type: "application/xml",
    fields: {
      xml: ['<?xml version="1.0"?><feedback>', "</feedback>"],
      text: ["<feedback><version>", "</version></feedback>"],
    },
  },
];

const TEXTS = [
  "<",
  "&amp;",
  "&",
  "<b>",
  "<a href=x>",
  "<p style=display:none>",
  "{{a}}",
  "{{#each list}}",
  "{{",
  "\\n",
  "\\r\\n",
  "\\\\",
];
const MORE_TEXTS = [
  "\\u0041",
  "\\ud83d\\ude00",
  "é",
  "😀",
  " ",
  "=",
  "x",
  "x ",
  "aaaa@b.example\\n",
  "a,",
  "<!--",
  "<li>",
  "QUJD",
  ".",
  "@",
];
const MEMBERS = [
  '"#":1,',
  '"k#":"",',
  '"a":1,',
  '"#":{},',
  '"#":[[]],',
  '"#":1e99,',
  '"#":12345678901234567890,',
  '"\\u0041#":1,',
];
const ELEMENTS = [
  "1,",
  "[],",
  "{},",
  '"",',
  '"b#@recipient.example",',
  "[[[[1]]]],",
  "1e400,",
  '{"a":1},',
  '{"filename":"f","content":""},',
];
const XML = [
  "<a/>",
  "<a>",
  "&amp;",
  "<record></record>",
  "<!-- -->",
  "x",
  "<row><source_ip>1.2.3.4</source_ip></row>",
  "]]>",
];
const SIZES = [2 * KIB, 16 * KIB, 64 * KIB, 200 * KIB, 255 * KIB, 510 * KIB, MIB, 8 * MIB, 24 * MIB];

/** The worst that was known before the search, to begin with. */
export const KNOWN: readonly CostInput[] = [
  ...["headers", "metadata", "variables"].map((field) => ({
    path: "/v1/send",
    field,
    piece: '"k#":1,',
    bytes: 23 * MIB,
  })),
  // Each is compared with the fields that are known.
  { path: "/v1/send", field: "body", piece: '"#":1,', bytes: 40 * KIB },
  { path: "/v1/send", field: "html_body", piece: "<", bytes: 20 * MIB },
  { path: "/v1/send", field: "html_body", piece: "&amp;", bytes: 20 * MIB },
  { path: "/v1/send/batch", field: "emails", piece: "{},", bytes: 8 * MIB },
  { path: "/v1/send/batch", field: "html_body", piece: "é", bytes: 510 * KIB },
  { path: "/v1/send/batch", field: "text_body", piece: "=", bytes: 510 * KIB },
];

/** Another input: one that is new, or a known one with a change. */
export function drawInput(chance: Chance, best: readonly CostInput[]): CostInput {
  const base = best.length > 0 && chance.float() < 0.5 ? chance.pick(best) : null;
  const place = base ? placeOf(base.path) : chance.pick(PLACES);
  const field = base && chance.float() < 0.7 ? base.field : chance.pick(Object.keys(place.fields));
  const keepsPiece = base !== null && field === base.field && chance.float() < 0.5;
  const piece = keepsPiece ? base.piece : drawPiece(chance, place, field);
  return { path: place.path, field, piece, bytes: Math.min(place.bytes_max, chance.pick(SIZES)) };
}

function drawPiece(chance: Chance, place: Place, field: string): string {
  const open = place.fields[field]?.[0] ?? "";
  const words = place.type
    ? XML
    : open.endsWith("{")
      ? MEMBERS
      : open.endsWith("[")
        ? ELEMENTS
        : [...TEXTS, ...MORE_TEXTS];
  return chance.float() < 0.7 ? chance.pick(words) : chance.pick(words) + chance.pick(words);
}

function placeOf(path: string): Place {
  return PLACES.find((place) => place.path === path) as Place;
}

/** The body and its media type, for an organization with that domain. */
export function bodyOf({ path, field, piece, bytes }: CostInput, domain: string): { body: Buffer; type: string } {
  const place = placeOf(path);
  const [open, close] = place.fields[field] as [string, string];
  const turns = Math.max(
    1,
    Math.floor((bytes - open.length - close.length) / Buffer.byteLength(piece.replaceAll("#", "123456"))),
  );
  const pieces = piece.includes("#")
    ? Array.from({ length: turns }, (_none, n) => piece.replaceAll("#", n.toString(36))).join("")
    : piece.repeat(turns);
  const head = open.replaceAll("attacker.example", domain);
  return { body: Buffer.from(head + pieces + close), type: place.type ?? "application/json" };
}

/** For people: `/v1/send headers "k#":1, × 23.0 MiB`. */
export function describeInput({ path, field, piece, bytes }: CostInput): string {
  const size = bytes >= MIB ? `${(bytes / MIB).toFixed(1)} MiB` : `${Math.round(bytes / KIB)} KiB`;
  return `${path} ${field} ${piece} × ${size}`;
}
