// Lists in the DNS of addresses and domains that send spam (RFC 5782): the client is looked up in lists of addresses, the
// author and the links in lists of domains. Only 127.0.0.0/8 is an answer; 127.255.255.0/24 says that the question was not
// welcome (https://www.spamhaus.org/faqs/dnsbl-usage/). A list that names what must never be listed (§5) is dead or
// taken over, and counts for nothing. DNS comes in as a function. Not here: scores of other signs (spam.ts).
import ipaddr from "ipaddr.js";
import { domainOf, normalizeDomain } from "../address.ts";
import { decodeEntities } from "../mime/html-entities.ts";
import { registrableDomain } from "../registrable-domain.ts";
import type { Symptom } from "./suspect.ts";

export type BlockList = { zone: string; kind: "address" | "domain"; score: number };

/** The answer to a question for A records. */
export type AskA = (name: string) => Promise<{ kind: "found"; records: readonly string[] } | { kind: string }>;

const SCORE = 4;
const SCORE_MAX = 100;
const DOMAINS_MAX = 10;
const LINKS_MAX = 200;
const TEXT_CHARS_MAX = 256 * 1024;
/** As browsers and mail programs take them: any slashes, none before `www.`, or `//host` in quotes. */
const LINK = /(?:https?:[\\/]{1,8}|["'][\\/]{2}|(?<![\w.@-])(?=www\.))([^\s/"'<>?#\\]{1,255})/gi;

/** `zen.example`, `zen.example=5` (its score) or `domain:dbl.example=5` (a list of domains); null for anything else. */
export function readBlockList(word: string): BlockList | null {
  const [, domain, name = "", score] = /^(domain:)?([^=:]+)(?:=(\d{1,3}(?:\.\d)?))?$/.exec(word) ?? [];
  const zone = normalizeDomain(name);
  const points = score === undefined ? SCORE : Number(score);
  if (zone === null || !zone.includes(".") || points > SCORE_MAX) return null;
  return { zone, kind: domain ? "domain" : "address", score: points };
}

/** Who is looked up. `ip` is null when there is no client; this machine and private networks are not looked up. */
export type Looked = { ip: string | null; domains: readonly string[] };

/** One symptom for each list that has any of them. `refused`: the lists that would not answer us, or are broken. */
export async function askBlockLists(
  lists: readonly BlockList[],
  about: Looked,
  ask: AskA,
): Promise<{ symptoms: Symptom[]; refused: string[] }> {
  const answers = await Promise.all(lists.map((list) => askOne(list, about, ask)));
  return {
    symptoms: answers.flatMap((answer) => answer.symptom ?? []),
    refused: answers.flatMap((answer, index) => (answer.refused ? (lists[index] as BlockList).zone : [])),
  };
}

type OneAnswer = { symptom: Symptom | null; refused: boolean };

async function askOne(list: BlockList, about: Looked, ask: AskA): Promise<OneAnswer> {
  const names = list.kind === "address" ? addressNames(about.ip) : about.domains.slice(0, DOMAINS_MAX);
  if (names.length === 0) return { symptom: null, refused: false };
  // §5: 127.0.0.1 is in no list of addresses, INVALID in no list of domains.
  const never = list.kind === "address" ? "1.0.0.127" : "invalid";
  const [proof, ...answers] = await Promise.all([never, ...names].map((name) => listing(`${name}.${list.zone}`, ask)));
  const refused = proof?.kind !== "clean" || answers.some(({ kind }) => kind === "refused");
  const at = answers.findIndex(({ kind }) => kind === "listed");
  const answer = answers[at];
  if (proof?.kind !== "clean" || answer?.kind !== "listed") return { symptom: null, refused };
  const who = list.kind === "address" ? about.ip : names[at];
  const name = `DNSBL_${list.zone.toUpperCase().replace(/[^A-Z0-9]/g, "_")}`;
  const description = `${who} is listed by ${list.zone} (${answer.code})`;
  return { symptom: { name, score: list.score, description }, refused };
}

type Listing = { kind: "clean" } | { kind: "refused" } | { kind: "listed"; code: string };

async function listing(name: string, ask: AskA): Promise<Listing> {
  const answer = await ask(name);
  if (!("records" in answer)) return { kind: "clean" };
  const codes = answer.records.filter((record) => record.startsWith("127.") && record !== "127.0.0.1");
  const code = codes.find((record) => !record.startsWith("127.255.255."));
  if (code !== undefined) return { kind: "listed", code };
  return { kind: codes.length > 0 ? "refused" : "clean" };
}

const NOBODYS = new Set(["private", "linkLocal", "uniqueLocal", "carrierGradeNat", "unspecified"]);
/** This machine itself. The rest of its network is not: 127.0.0.2 is the test entry of every list (§5). */
const OWN = new Set(["127.0.0.1", "::1"]);

/** §2.1 and §2.4: octets of IPv4, nibbles of IPv6, the last first. No list knows private networks. */
function addressNames(ip: string | null): string[] {
  if (ip === null || !ipaddr.isValid(ip)) return [];
  const address = ipaddr.process(ip);
  if (NOBODYS.has(address.range()) || OWN.has(address.toString())) return [];
  if (address.kind() === "ipv4") return [address.toByteArray().reverse().join(".")];
  const nibbles = address.toByteArray().flatMap((byte) => [byte >> 4, byte & 15]);
  return [
    nibbles
      .reverse()
      .map((nibble) => nibble.toString(16))
      .join("."),
  ];
}

/** The registrable domains of the author and of the links in these texts, each once, at most ten. Nothing is followed. */
export function domainsIn(emails: readonly (string | null)[], texts: readonly (string | null)[]): string[] {
  const hosts = emails.flatMap((email) => (email ? domainOf(email) : []));
  for (const text of texts) {
    let links = 0;
    for (const [, authority = ""] of decodeEntities(text?.slice(0, TEXT_CHARS_MAX) ?? "").matchAll(LINK)) {
      hosts.push(domainOf(authority).replace(/:\d*$/, ""));
      links += 1;
      if (links === LINKS_MAX) break;
    }
  }
  const found = new Set<string>();
  for (const host of hosts) {
    const domain = registrableDomain(host);
    if (domain !== null) found.add(domain);
    if (found.size === DOMAINS_MAX) break;
  }
  return [...found];
}
