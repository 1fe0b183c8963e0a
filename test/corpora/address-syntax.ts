// isemail and flanker: what POST /v1/send takes as a recipient. A strict API refuses what is legal in a header only.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAddress } from "../../src/mail/address.ts";
import { type Corpus, createTally, type Tally } from "./tally.ts";

type IsemailCase = { set: string; id: string; address: string; category: string; diagnosis: string };

/** Why a legal address is refused all the same, by what stands in it. */
const POLICY: [RegExp, string][] = [
  [
    /\(.*\)|\s@|@\s|^\s|\s$/,
    "comments and white space are header syntax, not part of an address on the wire (RFC 5321 §4.1.2)",
  ],
  [/@\[[^\]]*\]$/, "an address literal is no public mailbox; an API recipient needs a domain"],
  [/@[^.]+$/, "no public mailbox has a dotless domain (RFC 7085)"],
  [/@(.*\.)?\d+$/, "a number is no top-level domain (RFC 3696 §2)"],
  [/^".*[<>].*"@/, "angle brackets inside quotes are refused at the door, as many servers cannot take them"],
];

/** Both suites through the check that every recipient passes. */
export const addressSyntax: Corpus = {
  name: "address-syntax",
  async run(dir) {
    const tally = createTally();
    for (const given of JSON.parse(readFileSync(join(dir, "isemail.json"), "utf8")) as IsemailCase[])
      judgeIsemail(tally, given);
    const lists = JSON.parse(readFileSync(join(dir, "flanker.json"), "utf8")) as Record<string, string[]>;
    judgeList(tally, "mailbox_valid", lists.mailbox_valid ?? [], true);
    judgeList(tally, "mailbox_invalid", lists.mailbox_invalid ?? [], false);
    const locals = (name: string): string[] => (lists[name] ?? []).map((local) => `${local}@example.com`);
    judgeList(tally, "abridged_localpart_valid", locals("abridged_localpart_valid"), true);
    judgeList(tally, "abridged_localpart_invalid", locals("abridged_localpart_invalid"), false);
    return tally;
  },
};

// ISEMAIL_ERR must be refused, plain valid must be accepted (the README's rule); the rest is policy: quoted strings are
// accepted, what is legal in a header only, literals and dotless domains are not.
function judgeIsemail(tally: Tally, given: IsemailCase): void {
  const { category, diagnosis, address } = given;
  const isQuoted = category === "ISEMAIL_RFC5321" && diagnosis === "ISEMAIL_RFC5321_QUOTEDSTRING";
  const expected = category === "ISEMAIL_VALID_CATEGORY" || category === "ISEMAIL_DNSWARN" || isQuoted;
  const mayDiffer = category !== "ISEMAIL_ERR" && category !== "ISEMAIL_VALID_CATEGORY";
  judge(tally, `isemail ${given.set} ${given.id} ${diagnosis}`, address, { expected, mayDiffer });
}

function judgeList(tally: Tally, list: string, addresses: string[], expected: boolean): void {
  for (const address of addresses) judge(tally, `flanker ${list}`, address, { expected, mayDiffer: true });
}

type Expectation = { expected: boolean; mayDiffer: boolean };

function judge(tally: Tally, source: string, address: string, { expected, mayDiffer }: Expectation): void {
  const result = parseAddress(address);
  const reason = !mayDiffer || result.ok === expected ? null : explain(address, result.ok);
  tally.judge(`${source}: ${JSON.stringify(address)}`, expected, result.ok, reason);
}

function explain(address: string, accepted: boolean): string | null {
  if (accepted) return "valid by RFC 5321 and RFC 6531; flanker's list holds narrower rules of one provider";
  return POLICY.find(([pattern]) => pattern.test(address))?.[1] ?? null;
}
