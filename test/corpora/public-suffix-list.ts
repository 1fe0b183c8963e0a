// Registrable domains as DMARC, block lists and domain settings ask for them. Names are compared as the DNS has them.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { domainToASCII } from "node:url";
import { parse } from "tldts";
import { registrableDomain } from "../../src/mail/registrable-domain.ts";
import { type Corpus, createTally } from "./tally.ts";

type Case = { input: string | null; registrable_domain: string | null };

const DEFAULT_RULE =
  "the suffix is not in the list: there its algorithm's default rule * applies (publicsuffix.org/list, step 2); the " +
  "source has this case commented out";

export const publicSuffixList: Corpus = {
  name: "public-suffix-list",
  async run(dir) {
    const tally = createTally();
    for (const { input: given, registrable_domain } of JSON.parse(
      readFileSync(join(dir, "cases.json"), "utf8"),
    ) as Case[]) {
      const input = given ?? "";
      const expected = registrable_domain === null ? null : domainToASCII(registrable_domain);
      const { isIcann, isPrivate } = parse(input, { allowPrivateDomains: true });
      const reason = expected === null && !isIcann && !isPrivate ? DEFAULT_RULE : null;
      tally.judge(input, expected, registrableDomain(input), reason);
    }
    return tally;
  },
};
