// One certificate from an ACME server (RFC 8555 §7): the account, an order, the proof that each name is ours (HTTP-01), the
// certificate. Accounts that the server lost are made again, and a name that fails is named. Not here: when to ask
// (renew.ts), answering challenges (challenges.ts), and the transport (acme.ts).
import { createPrivateKey, generateKeyPairSync, X509Certificate } from "node:crypto";
import { sleep } from "../platform/clock.ts";
import type { SealedColumn } from "../platform/storage/sealed-columns.ts";
import type { World } from "../platform/world.ts";
import type { AcmeConfig } from "../settings/certificates.ts";
import { type Acme, openAcme } from "./acme.ts";
import { AcmeProblem, NamesRefused, refusalOf } from "./problems.ts";
import * as queries from "./queries.ts";
import { makeRequest } from "./request.ts";

export type OrderWorld = Pick<World, "db" | "clock" | "seal" | "log">;
export type Certificate = { chain: string; key: string; not_before: Date; not_after: Date };

/** Between two looks at what the server works on: they grow to 10 s, over two minutes in all. */
const LOOK_MS = 250;
const LOOK_MS_MAX = 10_000;
const LOOKS_MAX = 20;
const CHALLENGE_AGE_MS = 3_600_000;

type Asked = { settings: AcmeConfig; names: string[] };

/** A certificate for these names. Throws an Error whose message is for people: AcmeProblem, NamesRefused or another. */
export async function orderCertificate(world: OrderWorld, settings: AcmeConfig, names: string[]): Promise<Certificate> {
  try {
    return await orderAs(world, { settings, names });
  } catch (error) {
    if (!(await isAccountLost(world, settings, error))) throw error;
    return await orderAs(world, { settings, names });
  }
}

async function orderAs(world: OrderWorld, { settings, names }: Asked): Promise<Certificate> {
  const acme = await openAccount(world, settings);
  try {
    const identifiers = names.map((value) => ({ type: "dns", value }));
    const profile = settings.profile === null ? {} : { profile: settings.profile };
    const { body: order, location } = await acme.post(await acme.resource("newOrder"), { identifiers, ...profile });
    if (location === null) throw new Error("the ACME server gives its order no URL (RFC 8555 §7.4)");
    await proveNames(world, acme, order.authorizations);
    await settled(acme, location, ["pending"]);
    const { csr, key } = makeRequest(names);
    await acme.post(order.finalize, { csr: csr.toString("base64url") });
    const { certificate } = await settled(acme, location, ["pending", "ready", "processing"]);
    const chain = String((await acme.post(certificate)).body);
    const { validFrom, validTo } = new X509Certificate(chain);
    return { chain, key, not_before: new Date(validFrom), not_after: new Date(validTo) };
  } finally {
    await acme.close();
  }
}

type Settled = { status: string; certificate: string };

/** Looks until the order has left these states; throws when it became invalid or takes too long. */
async function settled(acme: Acme, url: string, working: string[]): Promise<Settled> {
  const { status, error, certificate } = await lookUntil(acme, url, (order) => !working.includes(order.status));
  if (status === "invalid") throw new Error(`the ACME server gave the order up: ${refusalOf(error)}`);
  if (working.includes(status)) throw new Error("the ACME server had not finished the order in time");
  return { status, certificate };
}

type Seen = { status: string; error?: object; certificate: string; challenges: { type: string; error?: object }[] };

async function lookUntil(acme: Acme, url: string, isDone: (seen: Seen) => boolean): Promise<Seen> {
  for (let times = 1, waitMs = LOOK_MS; ; times += 1, waitMs = Math.min(waitMs * 2, LOOK_MS_MAX)) {
    const seen: Seen = (await acme.post(url)).body;
    if (isDone(seen) || times >= LOOKS_MAX) return seen;
    await sleep(waitMs);
  }
}

// The account ---------------------------------------------------------------------------------------------------------

async function openAccount(world: OrderWorld, { directory, email, ca_file }: AcmeConfig): Promise<Acme> {
  const account = await ensureAccount(world, directory);
  const key = createPrivateKey(world.seal.open(account.key, accountContext(directory)).toString());
  const acme = openAcme(directory, { key, ca_file });
  acme.account = account.url;
  if (account.url !== null) return acme;
  const contact = email ? { contact: [`mailto:${email}`] } : {};
  // §7.3: the account of a key that is known there is answered as it is.
  const { location } = await acme.post(await acme.resource("newAccount"), { termsOfServiceAgreed: true, ...contact });
  acme.account = location;
  await queries.setAccountUrl(world.db, directory, location);
  return acme;
}

async function ensureAccount(world: OrderWorld, directory: string): Promise<queries.Account> {
  const [known] = await queries.findAccount(world.db, directory);
  if (known) return known;
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const pem = Buffer.from(privateKey.export({ type: "pkcs8", format: "pem" }));
  const key = world.seal.seal(pem, accountContext(directory));
  await queries.insertAccount(world.db, directory, { url: null, key, at: new Date(world.clock.now()) });
  const [made] = await queries.findAccount(world.db, directory);
  return made as queries.Account;
}

export const SEALED_ACCOUNT: SealedColumn = {
  ...{ table: "acme_account", column: "key", key: ["directory"] },
  context: ({ directory }) => accountContext(directory!),
};

function accountContext(directory: string): string {
  return `acme-account-key:${directory}`;
}

/**
 * True when the order may be placed once more, by an account that is registered again: with the same key where the server
 * forgot it, with another one where the account was deactivated or revoked (§7.3.6).
 */
async function isAccountLost({ db, log }: OrderWorld, { directory }: AcmeConfig, error: unknown): Promise<boolean> {
  if (!(error instanceof AcmeProblem)) return false;
  if (error.type === "accountDoesNotExist") {
    log.warn({ directory }, "the ACME server does not know our account any more: it is registered again");
    await queries.setAccountUrl(db, directory, null);
    return true;
  }
  if (error.type === "unauthorized") {
    log.warn({ directory, why: error.message }, "our account at the ACME server is closed: another one is made");
    await queries.deleteAccount(db, directory);
    return true;
  }
  return false;
}

// The proof -----------------------------------------------------------------------------------------------------------

type Refused = { name: string; why: string };

async function proveNames(world: OrderWorld, acme: Acme, urls: string[]): Promise<void> {
  const tokens: string[] = [];
  try {
    const proved = await Promise.allSettled(urls.map((url) => proveName(world, acme, { url, tokens })));
    const broken = proved.find((one) => one.status === "rejected");
    if (broken) throw broken.reason;
    const refused = proved.flatMap((one) => (one.status === "fulfilled" && one.value ? [one.value] : []));
    if (refused.length > 0) throw new NamesRefused(refused);
  } finally {
    await queries.dropChallenges(world.db, tokens, new Date(world.clock.now() - CHALLENGE_AGE_MS));
  }
}

/** Null: the name is proved. */
async function proveName(
  world: OrderWorld,
  acme: Acme,
  { url, tokens }: { url: string; tokens: string[] },
): Promise<Refused | null> {
  const { body: authorization } = await acme.post(url);
  const name = String(authorization.identifier?.value);
  if (authorization.status === "valid") return null;
  const challenge = authorization.challenges?.find(({ type }: { type: string }) => type === "http-01");
  if (!challenge) return { name, why: "the ACME server offers no proof over HTTP for it" };
  const { token } = challenge;
  tokens.push(token);
  const at = new Date(world.clock.now());
  await queries.putChallenge(world.db, { token, answer: acme.keyAuthorization(token), at });
  await acme.post(challenge.url, {});
  const { status, challenges } = await lookUntil(acme, url, (seen) => seen.status !== "pending");
  if (status === "valid") return null;
  if (status === "pending") return { name, why: "the ACME server had not looked at it in time" };
  // The reason is with the challenge, not with the authorization (§7.1.6).
  return { name, why: refusalOf(challenges.find(({ error }) => error)?.error) };
}
