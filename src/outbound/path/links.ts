// Sessions under terms: opening one to a hop as its policy demands, and whether one that is open already will do for
// another domain's mail. A session remembers what was proven of its server when it was opened.
import { NO_STARTTLS, type PeerTls, type SessionTls } from "../../mail/smtp/session.ts";
import type { World } from "../../platform/world.ts";
import type { MailSession, OpenSession } from "../outside.ts";
import type { Hop } from "../route/route.ts";
import {
  judgeChain,
  judgeDane,
  judgePkix,
  type Plan,
  type PlannedHop,
  type Terms,
  type Verdict,
} from "../route/tls-policy.ts";
import type { PolicySeen, TlsResult, TlsResults } from "../route/tls-results.ts";
import { type Job, type Lane, type Outcome, TLS_REPORT_ORIGIN } from "../types.ts";
import { type AttemptResult, deferredLocally, unreachable } from "./attempt.ts";
import type { Link } from "./link.ts";

export type LinkWorld = Pick<World, "clock" | "config"> & { open: OpenSession };

/** A sending address: null is the machine's default one. */
export type Source = { id: string; ip: string | null; ehlo: string };

/**
 * `by_policy`: a server may well have answered, but not on the terms this mail demands. `unreachable`: no connection at
 * all, through no fault of our own address. `path_action`: what the server asks of the path.
 */
export type Unopened = {
  outcome: Outcome;
  by_policy: boolean;
  unreachable: boolean;
  path_action: AttemptResult["path_action"];
};

/** `since_ms`: since when it waits for its turn, by the monotonic clock. */
export type Delivery = { lane: Lane; job: Job; plan: Plan; since_ms?: number };

export type Opening = { source: Source; hop: PlannedHop; delivery: Delivery; startedAtMs: number };

type Results = Pick<TlsResults, "note">;

const NO_TERMS: Terms = { kind: "opportunistic", testing: false };

/**
 * A report on TLS must arrive although TLS fails, as that may be what it says, and is not counted for the next one (RFC 8460 §3). A
 * relay's terms hold for it too.
 */
function isTlsReport({ job }: Pick<Delivery, "job">): boolean {
  return job.about.origin === TLS_REPORT_ORIGIN;
}

function hopFor(hop: PlannedHop, delivery: Pick<Delivery, "job">): PlannedHop {
  return isTlsReport(delivery) && hop.terms.kind !== "relay" ? { ...hop, terms: NO_TERMS } : hop;
}

const CONNECT_TIMEOUT_MS = 30_000;

/** Opens a session to one hop on the terms of the delivery, stepping down only as far as they let it. */
export async function openLink(world: LinkWorld, results: Results, planned: Opening): Promise<Link | Unopened> {
  const { delivery } = planned;
  const opening = { ...planned, hop: hopFor(planned.hop, delivery) };
  const { terms } = opening.hop;
  noteTrouble(results, delivery);
  const mustEncrypt = delivery.job.about.require_tls;
  if (terms.kind === "closed") return closed(world, results, opening, terms);
  let trouble: Verdict = null;
  let failure: Unopened | null = null;
  for (const mode of modesOf(terms, mustEncrypt)) {
    const judged = judging(world, terms, mode);
    const opened = await world.open({ ...sessionOptions(world, opening), tls: judged.tls });
    trouble ??= judged.said.verdict;
    if (opened.kind === "session") return makeLink(opening, opened, { trouble, said: judged.said });
    if (opened.tls_failed) trouble ??= { result: failureOf(opened.detail), detail: opened.detail };
    failure = notOpened(world, opening, opened.tls_failed && trouble ? { ...opened, detail: trouble.detail } : opened);
    if (!opened.tls_failed) break;
  }
  if (failure?.by_policy) noteFailure(results, opening, trouble);
  return failure as Unopened;
}

function failureOf(detail: string): TlsResult {
  return detail === NO_STARTTLS ? "starttls-not-supported" : "validation-failure";
}

/** What to try in turn. The last resort of mail without a policy is clear text (RFC 7435). */
function modesOf(terms: Terms, mustEncrypt: boolean): SessionTls["mode"][] {
  switch (terms.kind) {
    case "dane":
    case "pkix":
      return ["verify"];
    case "encrypted":
      return ["require"];
    case "relay":
      if (terms.tls === "none") return mustEncrypt ? ["require"] : ["none"];
      return ["verify"];
    default: {
      const usual: SessionTls["mode"][] = mustEncrypt ? ["require"] : ["opportunistic", "none"];
      // Under a policy that is only tested the certificate is looked at, and its faults are reported, nothing more.
      return terms.kind === "opportunistic" && terms.testing ? ["verify", ...usual] : usual;
    }
  }
}

type Said = { verdict: Verdict; pkix: boolean };

function judging(world: LinkWorld, terms: Terms, mode: SessionTls["mode"]): { tls: SessionTls; said: Said } {
  const said: Said = { verdict: null, pkix: false };
  if (mode !== "verify") return { tls: { mode }, said };
  const check = (peer: PeerTls): string | null => {
    said.pkix = judgePkix(peer) === null;
    said.verdict = judge(world, terms, peer);
    const counts = terms.kind !== "opportunistic";
    return counts && said.verdict ? said.verdict.detail : null;
  };
  const implicit = terms.kind === "relay" && terms.tls === "implicit";
  return { tls: { mode, check, implicit }, said };
}

function judge(world: LinkWorld, terms: Terms, peer: PeerTls): Verdict {
  if (terms.kind === "dane") return judgeDane(terms, peer, world.clock.now());
  return terms.kind === "relay" ? judgeChain(peer) : judgePkix(peer);
}

function sessionOptions(world: LinkWorld, { source, hop, delivery }: Opening) {
  const { via } = delivery.plan;
  return {
    // RFC 7672 §8.1: the server is asked for the certificate of the name its records stand under.
    host: hop.terms.kind === "dane" ? hop.terms.base : hop.host,
    address: hop.address,
    port: via?.port ?? world.config.testing.outbound_port ?? 25,
    ...(via?.credentials ? { auth: via.credentials } : {}),
    local_address: source.ip ?? undefined,
    ehlo_name: source.ehlo,
    timeouts: { connect_ms: CONNECT_TIMEOUT_MS },
  };
}

function makeLink(opening: Opening, session: MailSession, { trouble, said }: { trouble: Verdict; said: Said }): Link {
  const { source, hop, delivery } = opening;
  const dane = hop.terms.kind === "dane" ? hop.terms.key : null;
  return {
    hop: { host: hop.host, address: hop.address },
    session,
    isp: delivery.plan.site.isp,
    is_relay: hop.terms.kind === "relay",
    source_ip: source.ip,
    proven: { encrypted: session.tls !== null, pkix: said.pkix, dane },
    trouble: trouble ?? (session.tls ? null : { result: "starttls-not-supported", detail: NO_STARTTLS }),
    has_taken: false,
    counted: new Set(),
    tls: null,
  };
}

// --- what cannot be opened ------------------------------------------------------------------------------------------------

function closed(
  world: LinkWorld,
  results: Results,
  opening: Opening,
  terms: Extract<Terms, { kind: "closed" }>,
): Unopened {
  noteFailure(results, opening, terms);
  const { hop, delivery, startedAtMs } = opening;
  const outcome = deferredLocally(`${hop.host}: ${terms.detail}`, "4.7.5", "tls_policy");
  const duration_ms = Math.round(world.clock.monotonic() - startedAtMs);
  return {
    outcome: { ...outcome, mx_host: hop.host, mx_ip: hop.address, isp: delivery.plan.site.isp, duration_ms },
    by_policy: true,
    unreachable: false,
    path_action: null,
  };
}

type Failure = Parameters<typeof unreachable>[0];

function notOpened(world: LinkWorld, opening: Opening, failure: Failure): Unopened {
  const { hop, delivery, startedAtMs } = opening;
  const { isp } = delivery.plan.site;
  const { outcome, path_action } = unreachable(failure, hop, isp, world.clock.monotonic() - startedAtMs);
  if (!failure.tls_failed) return { outcome, by_policy: false, unreachable: isUnreachable(failure), path_action };
  const detail = `${hop.host}: ${whoDemands(delivery.plan.domain, hop.terms)}${failure.detail}`;
  const enhanced_code = failure.detail === NO_STARTTLS ? "4.7.10" : "4.7.5";
  const mailClass = demands(hop.terms) ? "tls_policy" : "tls_required";
  return {
    outcome: { ...outcome, message: detail, enhanced_code, class: mailClass },
    by_policy: true,
    unreachable: false,
    path_action: null,
  };
}

/** Which of several servers' answers is shown: what the first that answered said. That others are dead is no answer. */
export function reportedFailure(tried: Unopened[]): Unopened | undefined {
  return tried.find(({ outcome }) => outcome.smtp_code !== null) ?? tried.at(-1);
}

/** The server that it is about. */
export function hopOf({ outcome }: Unopened): Hop {
  return { host: outcome.mx_host ?? "", address: outcome.mx_ip ?? "" };
}

/** That our own address cannot be used says nothing of the way out. */
function isUnreachable({ stage, cause, detail }: Failure): boolean {
  return stage === "connect" && (cause === "network" || cause === "timeout") && !/EADDRNOTAVAIL|EINVAL/.test(detail);
}

function demands(terms: Terms): boolean {
  return terms.kind === "dane" || terms.kind === "pkix" || terms.kind === "encrypted";
}

function whoDemands(domain: string, terms: Terms): string {
  if (terms.kind === "pkix") return `the MTA-STS policy of ${domain} is not met: `;
  if (terms.kind === "dane" || terms.kind === "encrypted") return "the server's TLSA records (DANE) are not met: ";
  return terms.kind === "relay" ? "the relay's TLS is not accepted: " : "this message requires TLS: ";
}

// --- results and reuse ------------------------------------------------------------------------------------------------------

function noteFailure(results: Results, { source, hop, delivery }: Opening, trouble: Verdict): void {
  if (hop.terms.kind === "relay" || !trouble || isTlsReport(delivery)) return;
  results.note({
    domain: delivery.plan.domain,
    policy: hop.policy,
    result: trouble.result,
    detail: trouble.detail,
    mx_host: hop.host,
    mx_ip: hop.address,
    source_ip: source.ip,
  });
}

/**
 * That a policy was announced and could not be had is what its owner most wants to know (RFC 8460 §4.3.2): once a look-up, and only
 * where other mail than reports goes there.
 */
function noteTrouble(results: Results, delivery: Delivery): void {
  const { plan } = delivery;
  if (!plan.sts_trouble || isTlsReport(delivery)) return;
  const policy: PolicySeen = { type: "sts", domain: plan.domain, strings: [] };
  results.note({ domain: plan.domain, policy, ...plan.sts_trouble, mx_host: "", mx_ip: "", source_ip: null });
  plan.sts_trouble = null;
}

/**
 * Whether the open session will do for this delivery: it leads to a server of the delivery's own domain, and what was proven
 * of it is no less than what the delivery demands.
 */
export function fits(link: Link, delivery: Delivery): PlannedHop | null {
  const { job, plan } = delivery;
  const planned = plan.hops.find(({ host }) => host === link.hop.host);
  if (!planned || (job.about.require_tls && !link.proven.encrypted)) return null;
  const hop = hopFor(planned, delivery);
  switch (hop.terms.kind) {
    case "closed":
      return null;
    case "dane":
      return link.proven.dane === hop.terms.key ? hop : null;
    case "pkix":
      return link.proven.pkix ? hop : null;
    case "encrypted":
      return link.proven.encrypted ? hop : null;
    default:
      // A policy that is tested is about the certificate: where nobody has looked at it there is nothing to report.
      return isTested(hop.terms) && !link.proven.pkix && link.trouble === null ? null : hop;
  }
}

/** Says on the link what the timeline is to show for this delivery, and counts the session once for its domain. */
export function useLink(results: Results, link: Link, hop: PlannedHop, delivery: Delivery): void {
  const { plan } = delivery;
  noteTrouble(results, delivery);
  const { tls } = link.session;
  const word = outcomeWord(link, hop.terms);
  link.tls = tls ? `${tls.protocol} ${tls.cipher}${word ? ` ${word}` : ""}` : null;
  if (hop.terms.kind === "relay" || isTlsReport(delivery) || link.counted.has(plan.domain)) return;
  link.counted.add(plan.domain);
  const verdict = verdictOf(link, hop.terms);
  results.note({
    domain: plan.domain,
    policy: hop.policy,
    result: verdict?.result ?? "success",
    detail: verdict?.detail ?? null,
    mx_host: link.hop.host,
    mx_ip: link.hop.address,
    source_ip: link.source_ip,
  });
}

function isTested(terms: Terms): boolean {
  return terms.kind === "opportunistic" && terms.testing;
}

/** Null where the policy is met; only opportunistic sessions may stand with one that is not. */
function verdictOf({ proven, trouble }: Link, terms: Terms): Verdict {
  if (terms.kind !== "opportunistic") return null;
  if (terms.unnamed) return terms.unnamed;
  if (!proven.encrypted) return trouble;
  if (!terms.testing || proven.pkix) return null;
  return trouble ?? { result: "certificate-not-trusted", detail: "the certificate was not verified" };
}

function outcomeWord(link: Link, terms: Terms): string | null {
  switch (terms.kind) {
    case "dane":
      return "dane";
    case "encrypted":
      return "dane-unauthenticated";
    case "pkix":
      return "sts";
    case "relay":
      return "verified";
    default:
      if (!isTested(terms)) return null;
      return verdictOf(link, terms) === null ? "sts-testing" : "sts-testing-failed";
  }
}
