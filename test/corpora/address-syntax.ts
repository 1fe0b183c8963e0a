// isemail and flanker: what POST /v1/send takes as a recipient. A strict API refuses what is legal in a header only.
import { join } from "node:path";
import { parseAddress } from "../../src/mail/address.ts";
import { readSide } from "./case-files.ts";
import type { Corpus, Tally } from "./tally.ts";

type IsemailCase = { set: string; id: string; address: string; category: string; diagnosis: string };

/** Why a legal address is refused all the same, by what stands in it. */
const POLICY: [RegExp, string][] = [
  [/^".*[<>].*"@/, "angle brackets inside quotes are refused at the door, as many servers cannot take them"],
  [
    /\(.*\)|\s@|@\s|^\s|\s$/,
    "comments and white space are header syntax, not part of an address on the wire (RFC 5321 §4.1.2)",
  ],
  [/@\[[^\]]*\]$/, "an address literal is no public mailbox; an API recipient needs a domain"],
  [/@[^.]+$/, "no public mailbox has a dotless domain (RFC 7085)"],
  [/@(.*\.)?\d+$/, "a number is no top-level domain (RFC 3696 §2)"],
];

/** RFC 5321 §4.1.2 with RFC 6531: Dot-string or Quoted-string without angle brackets, and a name in the DNS. */
const VALID =
  /^(?:[\w!#$%&'*+/=?^`{|}~\u0080-\uffff-]+(?:\.[\w!#$%&'*+/=?^`{|}~\u0080-\uffff-]+)*|"(?:[^"\\<>\p{Cc}]|\\[ -;=?-~])+")@(?:[a-z0-9\u0080-\uffff][a-z0-9\u0080-\uffff-]*\.)+[a-z\u0080-\uffff][a-z0-9\u0080-\uffff-]*$/iu;

/** Both suites through the check that every recipient passes. */
export const addressSyntax: Corpus = {
  name: "address-syntax",
  run(dir, tally) {
    for (const given of readSide<IsemailCase[]>(tally, join(dir, "isemail.json")) ?? []) judgeIsemail(tally, given);
    const lists = readSide<Record<string, string[]>>(tally, join(dir, "flanker.json")) ?? {};
    judgeList(tally, "mailbox_valid", lists.mailbox_valid ?? [], true);
    judgeList(tally, "mailbox_invalid", lists.mailbox_invalid ?? [], false);
    const locals = (name: string): string[] => (lists[name] ?? []).map((local) => `${local}@example.com`);
    judgeList(tally, "abridged_localpart_valid", locals("abridged_localpart_valid"), true);
    judgeList(tally, "abridged_localpart_invalid", locals("abridged_localpart_invalid"), false);
  },
};

// ISEMAIL_ERR must be refused, plain valid must be accepted (the README's rule); the rest is policy: quoted strings are
// accepted, what is legal in a header only, literals and dotless domains are not.
function judgeIsemail(tally: Tally, { set, id, category, diagnosis, address }: IsemailCase): void {
  const isQuoted = category === "ISEMAIL_RFC5321" && diagnosis === "ISEMAIL_RFC5321_QUOTEDSTRING";
  const expected = category === "ISEMAIL_VALID_CATEGORY" || category === "ISEMAIL_DNSWARN" || isQuoted;
  const { ok } = parseAddress(address);
  // Nothing that the suite calls plain may be refused, nothing else accepted.
  const reason = ok || category === "ISEMAIL_VALID_CATEGORY" ? null : policyOf(address);
  tally.judge(`isemail ${set} ${id} ${diagnosis}: ${JSON.stringify(address)}`, expected, ok, reason);
}

function judgeList(tally: Tally, list: string, addresses: readonly string[], expected: boolean): void {
  for (const address of addresses) {
    const { ok } = parseAddress(address);
    const reason = ok ? narrownessOf(address) : policyOf(address);
    tally.judge(`flanker ${list}: ${JSON.stringify(address)}`, expected, ok, reason);
  }
}

function policyOf(address: string): string | null {
  return POLICY.find(([pattern]) => pattern.test(address))?.[1] ?? null;
}

function narrownessOf(address: string): string | null {
  return VALID.test(address)
    ? "valid by RFC 5321 and RFC 6531; flanker's list holds narrower rules of one provider"
    : null;
}
