// What SPF, DKIM and DMARC found of a received mail, in a sentence a person understands. Pure.
import type { Schemas } from "../api/client.ts";
import type { Tone } from "./why.ts";

type Mail = Schemas["InboundEmail"];
export type Judged = Pick<Mail, "spf" | "dkim" | "auth_results"> & {
  envelope: Pick<Mail["envelope"], "from" | "helo" | "remote_ip">;
};
export type Verdict = { name: string; result: string; tone: Tone; text: string };

/** SPF and DKIM always; DMARC where the plan shows it. */
export function explainVerdicts({ spf, dkim, auth_results: known, envelope }: Judged): Verdict[] {
  const domain = domainOf(envelope.from ?? "") || envelope.helo || "the sender's domain";
  const verdicts: Verdict[] = [
    { name: "SPF", result: spf, tone: toneOf(spf), text: spfText(spf, domain, envelope.remote_ip ?? "this address") },
    { name: "DKIM", result: dkim, tone: toneOf(dkim), text: dkimText(dkim, known?.dkim.domain ?? null) },
  ];
  if (known) {
    const { result, from_domain } = known.dmarc;
    verdicts.push({
      name: "DMARC",
      result,
      tone: toneOf(result),
      text: dmarcText(result, from_domain ?? "the author's domain"),
    });
  }
  return verdicts;
}

function toneOf(result: string): Tone {
  if (result === "pass") return "good";
  if (result === "fail" || result === "permerror") return "bad";
  return result === "softfail" || result === "temperror" ? "warn" : "idle";
}

function spfText(result: string, domain: string, ip: string): string {
  if (result === "pass") return `${domain} lets ${ip} send for it.`;
  if (result === "fail") return `${domain} says that ${ip} may not send for it.`;
  if (result === "softfail") return `${domain} does not name ${ip} among its senders, but is not sure.`;
  if (result === "none" || result === "neutral") return `${domain} does not say who may send for it.`;
  return result === "temperror" ? "The DNS did not answer in time." : `The SPF record of ${domain} is faulty.`;
}

function dkimText(result: string, domain: string | null): string {
  if (result === "pass") return `A signature${domain ? ` of ${domain}` : ""} fits: the message is as it was signed.`;
  if (result === "none") return "Nobody signed the message.";
  if (result === "fail") return "A signature does not fit: the message was changed, or the key is another one.";
  return result === "temperror" ? "The DNS did not give the key in time." : "The signature or its key is faulty.";
}

function dmarcText(result: string, domain: string): string {
  if (result === "pass") return `The message is really from ${domain}.`;
  if (result === "none") return `${domain} has no DMARC policy.`;
  return result === "fail" ? `Nothing shows that the message is from ${domain}.` : "The DNS did not answer in time.";
}

function domainOf(address: string): string {
  return address.slice(address.lastIndexOf("@") + 1);
}
