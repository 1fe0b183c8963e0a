// DMARC (RFC 9989): finds the author's policy and whether a passed SPF or DKIM identifier is aligned with it. Without a
// record the alignment is still reported, by the public suffix list: other parts of the product ask whether an address was
// proven. ARC changes nothing here, and nothing is rejected here.
import { registrableDomain } from "../registrable-domain.ts";
import type { Author } from "./author.ts";
import type { DkimSignatureVerdict } from "./dkim.ts";
import { type DmarcRecord, organizationalDomain, type Policy, type Walk, walkTree } from "./dmarc-record.ts";
import type { LookUps } from "./look-ups.ts";
import type { SpfVerdict } from "./spf.ts";

export type DmarcResult = "none" | "pass" | "fail" | "temperror";

export type DmarcVerdict = {
  result: DmarcResult;
  reason: string;
  /** The author's domain; null when there is not exactly one. */
  from_domain: string | null;
  dkim_aligned: boolean;
  spf_aligned: boolean;
  /** What the domain's owner publishes for mail of this author; null without a usable record. */
  policy: Policy | null;
  /** What is asked for this message: none when it passed, one step weaker in test mode; null when it is not known. */
  applied: Policy | null;
  /** Where the record stands. */
  policy_domain: string | null;
};

/** `aligned_signatures` has one entry for each signature; only passed ones can be aligned. */
export type DmarcOutcome = { verdict: DmarcVerdict; aligned_signatures: boolean[] };

export type PolicyFound =
  | { kind: "none" }
  | { kind: "failed"; reason: string }
  | ({ kind: "found"; record: DmarcRecord; policy_domain: string; policy: Policy | "unknown" } & Organization);

/** `organization` is null when the walk ended early. `declared`: a record on the way says psd=, so its owner knows RFC 9989. */
type Organization = { organization: string | null; declared: boolean };

const weaker = { reject: "quarantine", quarantine: "none", none: "none" } as const;
/** How many domains are judged of a From that names more than one author. */
const NAMED_MAX = 5;
const STRICTEST_FIRST = ["reject", "quarantine", "none"];

/** What was found for each domain that From names, at most five. */
export type Policies = ReadonlyMap<string, PolicyFound>;

/** Policy discovery (§4.10.1); may run while signatures are verified. */
export async function discoverPolicies({ domain, domains }: Author, lookUps: LookUps): Promise<Policies> {
  const named = domain === null ? domains.slice(0, NAMED_MAX) : [domain];
  const found = await Promise.all(named.map(async (one) => [one, await discoverPolicy(one, lookUps)] as const));
  return new Map(found);
}

async function discoverPolicy(domain: string, lookUps: LookUps): Promise<PolicyFound> {
  if (domain.startsWith("[") || /^[\d.]+$/.test(domain)) return { kind: "none" };
  const walk = await walkTree(domain, lookUps);
  const own = walk.found[0]?.domain === domain ? walk.found[0] : null;
  if (walk.failed !== null && own === null) return { kind: "failed", reason: walk.failed };
  const organization = walk.failed === null ? organizationalDomain(domain, walk.found) : null;
  const entry = own ?? inherited(walk, organization!);
  if (!entry?.record.policies) return { kind: "none" };
  const policy = own === null ? await inheritedPolicy(domain, entry.record, lookUps) : entry.record.policies.p;
  const declared = declares(walk);
  return { kind: "found", record: entry.record, policy_domain: entry.domain, organization, declared, policy };
}

// The organizational domain's record, else that of the public suffix above it.
function inherited(walk: Walk, organization: string): Walk["found"][number] | null {
  const last = walk.found.at(-1);
  return walk.found.find(({ domain }) => domain === organization) ?? (last?.record.psd === "y" ? last : null);
}

// np= is for names that do not exist, sp= for those that do.
async function inheritedPolicy(domain: string, record: DmarcRecord, lookUps: LookUps): Promise<Policy | "unknown"> {
  const { p, sp, np } = record.policies!;
  const existing = sp ?? p;
  if (np === null || np === existing) return existing;
  const answer = await lookUps.a(domain);
  if (answer.kind === "failed") return "unknown";
  if (answer.kind === "found" || answer.reason === "nodata") return existing;
  // RFC 6604 §3: an alias to a name that is not there answers NXDOMAIN too, and yet exists.
  const alias = await lookUps.cname(domain);
  if (alias.kind === "failed") return "unknown";
  return alias.kind === "found" || alias.reason === "nodata" ? existing : np;
}

export type Identifiers = { author: Author; spf: SpfVerdict; signatures: DkimSignatureVerdict[] };
type OfDomain = Omit<Identifiers, "author"> & { author: string };

/**
 * Evaluates a message under the policies that were found. Where From names several domains, nobody knows which of them a reader
 * takes for the author: the message fails, and the strictest policy of those that fail counts (RFC 7489 §6.6.1). Where there are
 * more than are judged, one of them is taken for an author who asks for rejection: nobody writes so but to hide one.
 */
export async function evaluateDmarc(given: Identifiers, policies: Policies, lookUps: LookUps): Promise<DmarcOutcome> {
  const { author, signatures } = given;
  const all = await Promise.all(
    [...policies].map(([domain, policy]) => evaluateFor({ ...given, author: domain }, policy, lookUps)),
  );
  const [only] = all;
  if (author.domain !== null && only) return only;
  const rank = ({ applied }: DmarcVerdict) => STRICTEST_FIRST.indexOf(applied ?? "none");
  const failed = all.map(({ verdict }) => verdict).filter(({ result }) => result === "fail");
  const strictest = failed.toSorted((a, b) => rank(a) - rank(b))[0];
  const { policy = null, policy_domain = null } = strictest ?? {};
  const isHiding = author.exceeds || author.domains.length > NAMED_MAX;
  const applied = isHiding ? "reject" : (strictest?.applied ?? null);
  const none = { from_domain: null, dkim_aligned: false, spf_aligned: false };
  const verdict: DmarcVerdict = { ...none, policy, applied, policy_domain, result: "fail", reason: author.reason };
  return { verdict, aligned_signatures: signatures.map(() => false) };
}

/** Evaluates it as mail of one domain. */
async function evaluateFor(given: OfDomain, policy: PolicyFound, lookUps: LookUps): Promise<DmarcOutcome> {
  const { author, spf, signatures } = given;
  const alignments = createAlignments(author, policy, lookUps);
  const spfAlignment = isTrusted(spf.result) ? await alignments.of(spf.domain, "spf") : "no";
  const dkimAlignments: Alignment[] = [];
  for (const signature of signatures) {
    // A body that goes on behind l= is anybody's: such a signature proves nothing about the message.
    const mayAlign = isTrusted(signature.result) && !signature.partial_body && signature.domain !== "";
    dkimAlignments.push(mayAlign ? await alignments.of(signature.domain, "dkim") : "no");
  }
  const isPassed = (alignment: Alignment, result: string) => alignment === "yes" && result === "pass";
  const alignedSignatures = signatures.map(({ result }, index) => isPassed(dkimAlignments[index]!, result));
  const facts = {
    spf_aligned: isPassed(spfAlignment, spf.result),
    dkim_aligned: alignedSignatures.includes(true),
    // What might have passed if DNS had answered.
    in_doubt: [spfAlignment, ...dkimAlignments].some((alignment) => alignment !== "no"),
  };
  return { verdict: decide(author, policy, facts), aligned_signatures: alignedSignatures };
}

// A temporary error may hide a pass.
function isTrusted(result: string): boolean {
  return result === "pass" || result === "temperror";
}

type Facts = { spf_aligned: boolean; dkim_aligned: boolean; in_doubt: boolean };

function decide(author: string, policy: PolicyFound, facts: Facts): DmarcVerdict {
  const { spf_aligned, dkim_aligned } = facts;
  const about = {
    from_domain: author,
    dkim_aligned,
    spf_aligned,
    policy: null,
    applied: null,
    policy_domain: null,
  };
  if (policy.kind === "failed")
    return { ...about, result: "temperror", reason: `no answer for the policy: ${policy.reason}` };
  if (policy.kind === "none") return { ...about, result: "none", reason: "no policy" };
  const found = { ...about, ...asked(policy) };
  if (spf_aligned || dkim_aligned) return { ...found, result: "pass", reason: "", applied: "none" };
  if (facts.in_doubt || found.policy === null)
    return { ...found, applied: null, result: "temperror", reason: "DNS did not answer" };
  return { ...found, result: "fail", reason: "nothing that passed is aligned" };
}

/** What the owner of the record asks for where the message fails. */
function asked(policy: PolicyFound): Pick<DmarcVerdict, "policy" | "applied" | "policy_domain"> {
  if (policy.kind !== "found") return { policy: null, applied: null, policy_domain: null };
  const published = policy.policy === "unknown" ? null : policy.policy;
  const applied = published !== null && policy.record.testing ? weaker[published] : published;
  return { policy: published, applied, policy_domain: policy.policy_domain };
}

type Alignment = "yes" | "no" | "unknown";
type Alignments = { of(domain: string, mechanism: "spf" | "dkim"): Promise<Alignment> };

function createAlignments(author: string, policy: PolicyFound, lookUps: LookUps): Alignments {
  const of = async (domain: string, mechanism: "spf" | "dkim"): Promise<Alignment> => {
    if (domain === author) return "yes";
    if (policy.kind !== "found") return registrable(domain) === registrable(author) ? "yes" : "no";
    if (mechanism === "spf" ? policy.record.strict_spf : policy.record.strict_dkim) return "no";
    return alignRelaxed(domain, author, { policy, look_ups: lookUps });
  };
  return { of };
}

// The owner's domain by the public suffix list.
function registrable(domain: string): string {
  return registrableDomain(domain) ?? domain;
}

function declares(walk: Walk): boolean {
  return walk.found.some(({ record }) => record.psd !== null);
}

// §4.10.2: two names with one organizational domain, which is the name itself or one above it. Deliberate: also the author's
// domain and one above it that has the same owner by the public suffix list, as RFC 7489 §3.2 had it, unless a record on the
// way says psd=. Domains whose only record stands on a subdomain and who sign as the domain above are aligned by the old rule
// and not by the new one; until senders know that, refusing their mail would be our mistake in their eyes. Whoever owns the
// name above could change that record anyway; a name beside it may be somebody else's, and is not aligned
// (docs/decisions/0009-mail-auth.md).
async function alignRelaxed(
  domain: string,
  author: string,
  by: { policy: Organization; look_ups: LookUps },
): Promise<Alignment> {
  const { organization, declared } = by.policy;
  const sameTop = domain.split(".").at(-1) === author.split(".").at(-1);
  if (organization === null) return sameTop ? "unknown" : "no";
  const below = domain === organization || domain.endsWith(`.${organization}`);
  const above = !declared && author.endsWith(`.${domain}`) && registrable(domain) === registrable(author);
  if (!below && !above) return "no";
  const walk = await walkTree(domain, by.look_ups);
  if (walk.failed !== null) return "unknown";
  if (organizationalDomain(domain, walk.found) === organization) return "yes";
  return above && !declares(walk) ? "yes" : "no";
}
