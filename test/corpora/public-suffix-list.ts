// Registrable domains as DMARC, block lists and domain settings ask for them. Names are compared as the DNS has them.
import { join } from "node:path";
import { domainToASCII } from "node:url";
import { parse } from "tldts";
import { registrableDomain } from "../../src/mail/registrable-domain.ts";
import { readSide } from "./case-files.ts";
import type { Corpus } from "./tally.ts";

type Case = { input: string | null; registrable_domain: string | null };

const DEFAULT_RULE =
  "the suffix is not in the list: there its algorithm's default rule * applies (publicsuffix.org/list, step 2); the " +
  "source has this case commented out";

export const publicSuffixList: Corpus = {
  name: "public-suffix-list",
  run(dir, tally) {
    for (const { input: given, registrable_domain } of readSide<Case[]>(tally, join(dir, "cases.json")) ?? []) {
      const input = given ?? "";
      const expected = registrable_domain === null ? null : domainToASCII(registrable_domain);
      const { isIcann, isPrivate } = parse(input, { allowPrivateDomains: true });
      const got = registrableDomain(input);
      const byDefault = domainToASCII(input).split(".").slice(-2).join(".");
      const isDefault = expected === null && !isIcann && !isPrivate && got === byDefault;
      tally.judge(input, expected, got, isDefault ? DEFAULT_RULE : null);
    }
  },
};
