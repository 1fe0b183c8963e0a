// Who sent a received message: SPF, DKIM, ARC and DMARC in one go, as the payload fields `spf`, `dkim` and `auth_results`
// have them, and as the field for the stored copy. Own code instead of mailauth's: see docs/decisions/0009-mail-auth.md.
// Decides nothing about the message; ARC is read and not trusted.
import { setImmediate as nextTurn } from "node:timers/promises";
import { type HeaderField, splitFields } from "../dkim/canonicalize.ts";
import { headersMax, headOctetsMax } from "../mime/parse-head.ts";
import { type ArcVerdict, readArcChain, verifyArc } from "./arc.ts";
import { type Author, findAuthor } from "./author.ts";
import { type DkimSignatureVerdict, readDkimSignatures, verifyDkim } from "./dkim.ts";
import { discoverPolicies, evaluateDmarc } from "./dmarc.ts";
import { createLookUps, type DnsResolver, type LookUpLimits, type LookUps } from "./look-ups.ts";
import { formatResults } from "./results-header.ts";
import type { Signature } from "./signature.ts";
import { checkSpf } from "./spf.ts";
import type { DkimVerdict, Verdicts } from "./verdicts.ts";
import { hashBodyFor } from "./verify-signature.ts";

export type Authentication = {
  bytes: Buffer;
  remote_ip: string;
  helo: string;
  /** The envelope sender without brackets; empty for the null sender. */
  mail_from: string;
  /** Our authserv-id. */
  host: string;
  resolver: DnsResolver;
  now_ms: number;
  limits?: LookUpLimits;
};

/** Authenticates a message; 20 s and 300 DNS questions at most. Throws only for bugs, never for what the message holds. */
export async function authenticate(given: Authentication): Promise<Verdicts> {
  const lookUps = createLookUps(given.resolver, given.limits);
  try {
    return await evaluate(given, lookUps);
  } finally {
    lookUps.end();
  }
}

async function evaluate(given: Authentication, lookUps: LookUps): Promise<Verdicts> {
  const message = openMessage(await withCrlf(given.bytes));
  const author = message === null ? tooLarge : findAuthor(fromFields(message.fields));
  const [spf, signed, policies] = await Promise.all([
    checkSpf(given, lookUps),
    verifySignatures(message, given.now_ms, lookUps),
    discoverPolicies(author, lookUps),
  ]);
  const signatures = author.reason === manyFrom ? signed.signatures.map(refusedForFrom) : signed.signatures;
  const { verdict: dmarc, aligned_signatures } = await evaluateDmarc({ author, spf, signatures }, policies, lookUps);
  const withAlignment = signatures.map((one, index) => ({ ...one, from_aligned: aligned_signatures[index]! }));
  const results = {
    spf: { ...spf, from_aligned: dmarc.spf_aligned },
    dkim: summarize(withAlignment, { ignored: signed.ignored, unreadable: message === null }),
    dmarc,
    arc: signed.arc,
  };
  return { ...results, header: formatResults(given.host, results), from_domains: author.domains };
}

const tooLarge: Author = {
  ...{ domain: null, domains: [], exceeds: true },
  reason: "the head of the message is too large",
};

type Message = { fields: HeaderField[]; body: Buffer };

/** The message cut into fields and body; null when its head is beyond the limits and is not looked into. */
function openMessage(bytes: Buffer): Message | null {
  const end = bytes.subarray(0, 2).toString() === "\r\n" ? 0 : bytes.indexOf("\r\n\r\n");
  if ((end === -1 ? bytes.length : end) > headOctetsMax) return null;
  const message = splitFields(bytes);
  return message.fields.length > headersMax ? null : message;
}

// The door refuses bare LF; raw messages that come by HTTP may have them. Byte loops: searching line by line, or with a
// regular expression, takes seconds for 35 MB of short lines. In slices, between which others have a turn.
async function withCrlf(bytes: Buffer): Promise<Buffer> {
  let bare = 0;
  await inSlices(bytes, (at) => {
    if (isBareLf(bytes, at)) bare += 1;
  });
  if (bare === 0) return bytes;
  const out = Buffer.allocUnsafe(bytes.length + bare);
  let length = 0;
  await inSlices(bytes, (at) => {
    if (isBareLf(bytes, at)) out[length++] = 0x0d;
    out[length++] = bytes[at]!;
  });
  return out;
}

const sliceOctets = 1 << 20;

async function inSlices(bytes: Buffer, visit: (at: number) => void): Promise<void> {
  for (let from = 0; from < bytes.length; from += sliceOctets) {
    if (from > 0) await nextTurn();
    const to = Math.min(from + sliceOctets, bytes.length);
    for (let at = from; at < to; at++) visit(at);
  }
}

function isBareLf(bytes: Buffer, at: number): boolean {
  return bytes[at] === 0x0a && (at === 0 || bytes[at - 1] !== 0x0d);
}

/** The From fields that a reader sees: readers pass over a byte order mark at the very beginning, which is in no name. */
export function fromFields(fields: HeaderField[]): Buffer[] {
  const nameOf = ({ name }: HeaderField, at: number) => (at === 0 ? name.replace(/^\xef\xbb\xbf/, "") : name);
  return fields.filter((field, at) => nameOf(field, at).toLowerCase() === "from").map(({ bytes }) => bytes);
}

type Signed = { signatures: DkimSignatureVerdict[]; ignored: number; arc: ArcVerdict };

const noArc: ArcVerdict = { result: "none", reason: "", instances: 0, sealers: [] };

async function verifySignatures(message: Message | null, nowMs: number, lookUps: LookUps): Promise<Signed> {
  if (message === null)
    return { signatures: [], ignored: 0, arc: { ...noArc, result: "fail", reason: tooLarge.reason } };
  const { signatures, ignored } = readDkimSignatures(message.fields);
  const chain = readArcChain(message.fields);
  const sealed = chain !== null && "sets" in chain ? chain : null;
  const readable = signatures.filter((one): one is Signature => !("defect" in one));
  const bodyHashes = await hashBodyFor(message.body, sealed ? [...readable, ...sealed.newest] : readable);
  const verification = { message, body_hashes: bodyHashes, look_ups: lookUps, now_s: Math.floor(nowMs / 1000) };
  const [verdicts, arc] = await Promise.all([
    verifyDkim(signatures, verification),
    sealed ? verifyArc(sealed, verification) : ((chain as ArcVerdict | null) ?? noArc),
  ]);
  return { signatures: verdicts, ignored, arc };
}

const manyFrom = "more than one From field";

// RFC 6376 §8.15: the signature covers one of them, a reader sees another.
function refusedForFrom(signature: DkimSignatureVerdict): DkimSignatureVerdict {
  return signature.result === "pass" ? { ...signature, result: "permerror", reason: manyFrom } : signature;
}

function summarize(
  signatures: DkimVerdict["signatures"],
  { ignored, unreadable }: { ignored: number; unreadable: boolean },
): DkimVerdict {
  const best = signatures.toSorted((a, b) => rank(a) - rank(b))[0];
  const passed = signatures.filter((one) => one.result === "pass" && !one.partial_body);
  return {
    result: best?.result ?? (unreadable ? "permerror" : "none"),
    reason: best?.reason ?? (unreadable ? tooLarge.reason : ""),
    domain: best?.domain || null,
    selector: best?.selector || null,
    passed_domains: [...new Set(passed.map((one) => one.domain))],
    from_aligned: signatures.some((one) => one.from_aligned),
    signatures,
    ignored_signatures: ignored,
  };
}

function rank(signature: DkimVerdict["signatures"][number]): number {
  if (signature.result === "pass") return signature.from_aligned ? 0 : signature.partial_body ? 2 : 1;
  return signature.result === "temperror" ? 3 : 4;
}
