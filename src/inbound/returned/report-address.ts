// Mail to report addresses (`<token>@` the report domain): decided at RCPT, deferred in session while nobody can tell who
// sends it, then handed to the dmarc feature. Whether a report counts depends on its sender alone: DMARC passed, or, for a
// domain that publishes no policy, SPF or DKIM aligned with the author.
import { findReportAddress, takeReportMail, takeUnparsable } from "../../dmarc/dmarc.ts";
import type { Arrival, DomainOfReport } from "../../dmarc/types.ts";
import type { World } from "../../platform/world.ts";
import { KEPT } from "../process/outcome.ts";
import type { AcceptCheck, Handler, RcptDecider, Refused, SenderVerdicts } from "../types.ts";

const NOT_NOW: Refused = {
  kind: "refuse",
  code: 451,
  enhanced: "4.7.24",
  text: "the sender cannot be authenticated at the moment, try again later",
};

/** Accepts the report addresses of all domains. */
export function reportDecider(world: Pick<World, "db" | "config">): RcptDecider {
  return async ({ to }) => {
    const domain = await findReportAddress(world, to);
    if (!domain) return null;
    const owner = { org_id: domain.org_id, domain_id: domain.id, alias_id: null, tag: null };
    return { kind: "accept", route: { kind: "report", ...owner, detail: { domain: domain.domain } } };
  };
}

/** A report that came while DNS failed would never count: its sender is to try again. */
export function deferUnproven(): AcceptCheck {
  return async ({ recipients }, examination) => {
    if (!recipients.every(({ route }) => route.kind === "report")) return null;
    const verdicts = await examination.verdicts();
    return verdicts.dmarc.result === "temperror" && !isProven(verdicts) ? NOT_NOW : null;
  };
}

/** Takes the reports of a mail; the mail itself is kept as any other, for as long. */
export function reportHandler(world: Pick<World, "db" | "clock" | "random" | "config">): Handler {
  return async (mail) => {
    if (mail.route.kind !== "report" || mail.route.domain_id === null)
      throw new Error("this mail is not to a report address");
    const domain: DomainOfReport = {
      org_id: mail.org_id,
      id: mail.route.domain_id,
      domain: String(mail.route.detail.domain),
    };
    const verdicts = await mail.examination.verdicts();
    const arrival: Arrival = {
      via: "mail",
      authenticated: isProven(verdicts),
      sender_domain: verdicts.dmarc.from_domain,
      origin_id: mail.id,
    };
    const parsed = await mail.examination.parsed();
    const taken =
      parsed.kind === "parsed"
        ? await takeReportMail(world, domain, parsed.mail, arrival)
        : await takeUnparsable(world, domain, arrival, parsed.reason);
    if (taken.kind === "kept") return KEPT;
    return { ...KEPT, status: taken.kind === "ignored" ? "dropped" : "failed", reason: taken.reason };
  };
}

/**
 * True if it is certain which domain sent a mail: DMARC passed, or SPF or DKIM aligned where its author publishes no
 * policy.
 */
export function isProven({ dmarc }: SenderVerdicts): boolean {
  return dmarc.result === "pass" || (dmarc.result === "none" && (dmarc.dkim_aligned || dmarc.spf_aligned));
}
