// An address that is nobody's yet, at RCPT: does a pattern take it? The alias is made when the whole message was looked at
// (make-aliases.ts), and what is over the limits is answered there: at RCPT all addresses of a pattern look alike.
import type { Path } from "../../mail/smtp-server/command.ts";
import type { World } from "../../platform/world.ts";
import { untagged } from "../addresses/addresses.ts";
import { type Refused, UNCONFIRMED, UNREACHABLE } from "../arrive/answers-of-smtp.ts";
import type { Environment, PatternRoute } from "../types.ts";
import { patternFinder } from "./find-patterns.ts";
import { fixedLength } from "./pattern-text.ts";

type About = {
  receiver: { id: string; org_id: string };
  environment: Environment;
  /** The fixed characters of the glob of a domain alias that takes it, too. */
  fixed: number | null;
};

/** Decides about addresses that patterns take; null for every other, and where a glob of the domain is as exact. */
export function patternDecider(world: Pick<World, "db" | "seal">) {
  const find = patternFinder(world);
  return async (
    { to }: { to: Path },
    { receiver, environment, fixed }: About,
  ): Promise<{ kind: "accept"; route: PatternRoute } | Refused | null> => {
    if (to.domain === null) return null;
    const domain = to.domain.toLowerCase();
    const bare = untagged(`${to.local}@${domain}`);
    const plain = bare.slice(0, bare.lastIndexOf("@"));
    const local = plain.toLowerCase();
    const pattern = await find({ org_id: receiver.org_id, environment, domain, local });
    if (pattern === null || (fixed !== null && fixed >= fixedLength(pattern.local_pattern))) return null;
    const { status } = pattern.destination;
    if (status !== "verified") return status === "pending" ? UNCONFIRMED : UNREACHABLE;
    const { org_id, id: domain_id } = receiver;
    const tag = to.local.slice(plain.length + 1) || null;
    const detail = { pattern_id: pattern.id, domain, local, environment };
    return { kind: "accept", route: { kind: "pattern", org_id, domain_id, alias_id: null, tag, detail } };
  };
}
