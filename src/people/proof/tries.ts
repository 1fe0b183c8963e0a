// How often somebody may try to sign in: buckets in the database, which all processes share. One that is empty refills, so that
// nobody is locked out for good; who guesses at an account from elsewhere does not use up the tries of its owner.
import { clientKey } from "../../mail/smtp-server/client-limits.ts";
import { Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "../queries.ts";

type Limit = { burst: number; each_s: number };

/** By one client at one account; all at one account; by one client at all accounts. */
const OWN: Limit = { burst: 6, each_s: 60 };
const ACCOUNT: Limit = { burst: 100, each_s: 10 };
const CLIENT: Limit = { burst: 50, each_s: 5 };
/** Mails that somebody can cause: of one organization's invitations; of resets to one address. */
const MAILS: Limit = { burst: 20, each_s: 300 };
/** Sign-ups with one address, and from one network: each is a mail to somebody who may not want it. */
const SIGN_UPS: Limit = { burst: 3, each_s: 1_200 };
const SIGN_UPS_OF_NETWORK: Limit = { burst: 10, each_s: 300 };

type TriesWorld = Pick<World, "db" | "clock" | "seal">;

/** Counts a try; 429 with the seconds to wait where there were too many. The same for addresses that nobody has. */
export async function countTry(world: TriesWorld, email: string, ip: string): Promise<void> {
  const client = clientKey(ip);
  await countClientTry(world, ip);
  await take(world, `own ${email} ${client}`, OWN);
  await take(world, `account ${email}`, ACCOUNT);
}

/** Where no account is named: counts a try of the client at all accounts. */
export async function countClientTry(world: TriesWorld, ip: string): Promise<void> {
  await take(world, `client ${clientKey(ip)}`, CLIENT);
}

/** Counts a mail that somebody else may not want. */
export async function countMail(world: TriesWorld, name: string): Promise<void> {
  await take(world, `mail ${name}`, MAILS);
}

/** Counts a sign-up of the address, and of the network it comes from. */
export async function countSignUp(world: TriesWorld, email: string, ip: string): Promise<void> {
  await take(world, `sign-ups from ${networkKey(ip)}`, SIGN_UPS_OF_NETWORK);
  await take(world, `sign-up ${email}`, SIGN_UPS);
}

/** Neighbours are one: whoever has one address of a /24, or of a /48, has often more. */
function networkKey(ip: string): string {
  const client = clientKey(ip);
  return client.includes(":") ? client.slice(0, 12) : client.split(".").slice(0, 3).join(".");
}

/** After the right password: what was counted of this client at this account is forgotten. */
export async function forgetTries(world: TriesWorld, email: string, ip: string): Promise<void> {
  await queries.forgetTries(world.db, nameOf(world, `own ${email} ${clientKey(ip)}`));
}

async function take(world: TriesWorld, name: string, { burst, each_s }: Limit): Promise<void> {
  const now = world.clock.now();
  const at = { now: new Date(now), next: new Date(now + each_s * 1000), latest: new Date(now + burst * each_s * 1000) };
  const taken = await queries.takeTry(world.db, nameOf(world, name), { ...at, each_s });
  if (taken > 0) return;
  throw new Refusal("rate_limit_exceeded", `too many tries; wait ${each_s} seconds and try again`, {
    retry_after_seconds: each_s,
    body: { limit_type: "sign_ins", limit: burst, used: burst, retry_after_seconds: each_s, warming_phase: "" },
  });
}

function nameOf({ seal }: TriesWorld, name: string): Buffer {
  return seal.hash(name, "sign-in-try");
}
