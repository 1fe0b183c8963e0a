// SPF of a domain's mail as receivers evaluate it (RFC 7208 check_host): for the From domain and for the envelope, from
// each address that mail leaves from. Tells what the domain's owner has to correct from what the operator has to
// publish. Not here: how the owner's record is written, with hints for classic mistakes (spf.ts).
import type { Answer, LookUps } from "../mail/auth/look-ups.ts";
import { checkSpf, type SpfVerdict } from "../mail/auth/spf.ts";

/** Where mail leaves from: `addresses` may be unknown (empty). `hostname` is what it says in EHLO. */
export type Leaving = { addresses: readonly string[]; hostname: string };

/** Whose record keeps receivers from a pass, and a sentence; null when nothing does, or nothing is known. */
export type SpfObstacle = { whose: "owner" | "operator"; says: string } | { whose: "nobody"; reason: string } | null;

const ADDRESSES_MAX = 20;
/** Stands for our own address while none is known (RFC 5737). */
const ANY_ADDRESS = "192.0.2.1";

/** What stands between receivers and a pass for `domain` in From. `host` is our part, which its record includes. */
export async function obstacleOfFrom(
  lookUps: LookUps,
  leaving: Leaving,
  { domain, host }: { domain: string; host: string },
): Promise<SpfObstacle> {
  const first = await firstNotPassing(lookUps, leaving, domain);
  if (first === null && leaving.addresses.length > 0) return null;
  const remote_ip = first?.remote_ip ?? ANY_ADDRESS;
  // The owner's part alone: as if ours let every address through.
  const owners = await evaluate({ ...lookUps, txt: passingFor(host, lookUps) }, leaving, { domain, remote_ip });
  if (owners.result === "temperror") return { whose: "nobody", reason: owners.reason };
  if (owners.result !== "pass") return { whose: "owner", says: sentence(owners, remote_ip) };
  if (first === null) return null;
  const ours = await evaluate(lookUps, leaving, { domain: host, remote_ip });
  if (ours.result !== "pass") {
    return { whose: "operator", says: sentence({ ...ours, result: first.verdict.result }, remote_ip) };
  }
  return { whose: "owner", says: sentence(first.verdict, remote_ip) };
}

/** The same for the envelope, whose name is an alias of the service: what is missing there is the operator's. */
export async function obstacleOfEnvelope(lookUps: LookUps, leaving: Leaving, domain: string): Promise<SpfObstacle> {
  const first = await firstNotPassing(lookUps, leaving, domain);
  return first && { whose: "operator", says: sentence(first.verdict, first.remote_ip) };
}

async function firstNotPassing(lookUps: LookUps, leaving: Leaving, domain: string) {
  const verdicts = await Promise.all(
    leaving.addresses.slice(0, ADDRESSES_MAX).map(async (remote_ip) => {
      return { remote_ip, verdict: await evaluate(lookUps, leaving, { domain, remote_ip }) };
    }),
  );
  return verdicts.find(({ verdict }) => verdict.result !== "pass") ?? null;
}

function evaluate(
  lookUps: LookUps,
  { hostname }: Leaving,
  { domain, remote_ip }: { domain: string; remote_ip: string },
): Promise<SpfVerdict> {
  return checkSpf({ remote_ip, helo: hostname, mail_from: `postmaster@${domain}` }, lookUps);
}

function passingFor(host: string, { txt }: Pick<LookUps, "txt">): LookUps["txt"] {
  const pass: Answer<string> = { kind: "found", records: ["v=spf1 +all"] };
  return async (name) => (name.toLowerCase().replace(/\.$/, "") === host ? pass : txt(name));
}

function sentence({ result, reason, domain }: SpfVerdict, remote_ip: string): string {
  const why = reason === "" ? `${domain} does not list that address` : reason;
  return `Receivers find "${result}" for mail from ${remote_ip}: ${why}.`;
}
