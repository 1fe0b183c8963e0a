// Passkeys (WebAuthn level 3): a key pair in the person's device or password manager, which asks for finger, face or PIN. So a passkey
// alone is as good as password and code together. The browser finds it by itself: no address is asked for, and none is revealed.
import { createHash } from "node:crypto";
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from "@simplewebauthn/server";
import { isDuplicate, type Query, type Tx } from "../../platform/database/db.ts";
import { invalid, notFound, Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import type { PersonRow } from "../types.ts";
import * as queries from "./passkey-queries.ts";

const CHALLENGE_BYTES = 32;
const ANSWER_WITHIN_MS = 5 * 60_000;
const PASSKEYS_MAX = 20;

/** Loaded when the first passkey is asked for: it brings readers of many forms of certificates. */
const library = () => import("@simplewebauthn/server");

type PasskeyWorld = Pick<World, "db" | "clock" | "random">;
/** The site as the browser has it: passkeys are bound to its host name. */
export type Site = { origin: string };
type Who = Pick<PersonRow, "id" | "email" | "name">;

/** What the browser makes a new passkey with. `isFirst`: of somebody who is not there yet. */
export async function offerPasskey(
  world: PasskeyWorld,
  site: Site,
  who: Who,
  isFirst = false,
): Promise<PublicKeyCredentialCreationOptionsJSON> {
  const known = isFirst ? [] : await queries.listPasskeys(world.db, who.id);
  if (known.length >= PASSKEYS_MAX)
    throw new Refusal("invalid_state", `at most ${PASSKEYS_MAX} passkeys; remove one first`);
  return (await library()).generateRegistrationOptions({
    rpName: "Postern",
    rpID: hostOf(site),
    userName: who.email,
    userDisplayName: who.name || who.email,
    userID: new Uint8Array(Buffer.from(who.id.replaceAll("-", ""), "hex")),
    challenge: await challenge(world, isFirst ? "first" : "new", who.id),
    timeout: ANSWER_WITHIN_MS,
    excludeCredentials: known.map(({ credential_id }) => ({ id: credential_id.toString("base64url") })),
    authenticatorSelection: { residentKey: "required", userVerification: "required" },
  });
}

export type NewPasskey = Omit<queries.PasskeyRow, "name">;

/** The passkey that the browser made; 400 when it is not what was asked for. `personId` null: of a person who is not there yet. */
export async function readNewPasskey(
  world: PasskeyWorld,
  site: Site,
  answer: RegistrationResponseJSON,
  personId: string | null,
): Promise<NewPasskey> {
  const taken = await takeChallenge(world, personId === null ? "first" : "new", answer);
  if (taken === null || (personId !== null && taken.person_id !== personId)) throw notTaken();
  const { verifyRegistrationResponse } = await library();
  const read = await verifyRegistrationResponse({ ...expected(site), response: answer }).catch(() => null);
  const info = read?.verified ? read.registrationInfo : undefined;
  if (!info || taken.person_id === null) throw notTaken();
  const { id, publicKey, counter, transports = [] } = info.credential;
  return {
    credential_id: Buffer.from(id, "base64url"),
    id: world.random.uuid(),
    person_id: taken.person_id,
    public_key: Buffer.from(publicKey),
    counter,
    transports: transports.slice(0, 10).map((name) => String(name).slice(0, 20)),
    created_at: new Date(world.clock.now()),
  };
}

function notTaken(): Refusal {
  return invalid("passkey", "the 'passkey' field is not what a browser made of the options given before; begin again");
}

export async function keepPasskey(db: Query | Tx, passkey: NewPasskey, name: string): Promise<void> {
  try {
    await queries.insertPasskey(db, { ...passkey, name });
  } catch (error) {
    if (isDuplicate(error, "passkey_pkey")) throw new Refusal("already_exists", "this passkey is known already");
    throw error;
  }
}

/** What a browser asks any of its passkeys for this site with. */
export async function askPasskey(world: PasskeyWorld, site: Site): Promise<PublicKeyCredentialRequestOptionsJSON> {
  return (await library()).generateAuthenticationOptions({
    rpID: hostOf(site),
    challenge: await challenge(world, "sign_in", null),
    timeout: ANSWER_WITHIN_MS,
    userVerification: "required",
  });
}

/** The id of the person whose passkey answered; null when it is not known, or did not answer this question. */
export async function personOfPasskey(
  world: PasskeyWorld,
  site: Site,
  answer: AuthenticationResponseJSON,
): Promise<string | null> {
  if ((await takeChallenge(world, "sign_in", answer)) === null) return null;
  const [row] = await queries.findPasskey(world.db, Buffer.from(answer.id, "base64url"));
  if (!row) return null;
  const credential = {
    id: row.credential_id.toString("base64url"),
    publicKey: new Uint8Array(row.public_key),
    counter: Number(row.counter),
  };
  const { verifyAuthenticationResponse } = await library();
  const read = await verifyAuthenticationResponse({ ...expected(site), response: answer, credential }).catch(
    () => null,
  );
  if (!read?.verified) return null;
  const used = await queries.usePasskey(
    world.db,
    row.credential_id,
    read.authenticationInfo.newCounter,
    new Date(world.clock.now()),
  );
  return used > 0 ? row.person_id : null;
}

/** Removes it; 409 when the person could not sign in any more. */
export async function removePasskey(world: Pick<World, "db">, person: PersonRow, id: string): Promise<void> {
  await world.db.transaction(async (tx) => {
    const known = await queries.lockPasskeys(tx, person.id);
    if (!known.some((one) => one.id === id)) throw notFound("passkey");
    if (known.length === 1 && person.password === null && person.oidc_subject === null)
      throw new Refusal("invalid_state", "this is the only way to sign in: set a password first");
    await queries.dropPasskey(tx, person.id, id);
  });
}

async function challenge(world: PasskeyWorld, kind: queries.ChallengeKind, person_id: string | null) {
  const bytes = world.random.bytes(CHALLENGE_BYTES);
  const expires_at = new Date(world.clock.now() + ANSWER_WITHIN_MS);
  await queries.insertChallenge(world.db, { digest: digestOf(bytes), kind, person_id, expires_at });
  return new Uint8Array(bytes);
}

type Answer = RegistrationResponseJSON | AuthenticationResponseJSON;

async function takeChallenge({ db, clock }: PasskeyWorld, kind: queries.ChallengeKind, answer: Answer) {
  const given = challengeIn(answer);
  if (given === null) return null;
  const [row] = await queries.takeChallenge(db, digestOf(given), kind, new Date(clock.now()));
  return row ?? null;
}

/** Which challenge it answers, as the browser wrote it down (WebAuthn §5.8.1). */
function challengeIn({ response }: Answer): Buffer | null {
  try {
    const said: unknown = JSON.parse(Buffer.from(response.clientDataJSON, "base64url").toString());
    const { challenge: text } = said as { challenge?: unknown };
    return typeof text === "string" ? Buffer.from(text, "base64url") : null;
  } catch {
    return null;
  }
}

/** The challenge was looked up by what the answer says, and is signed over with it. */
function expected(site: Site) {
  return {
    expectedChallenge: () => true,
    expectedOrigin: site.origin,
    expectedRPID: hostOf(site),
    requireUserVerification: true,
  };
}

function hostOf({ origin }: Site): string {
  return new URL(origin).hostname;
}

function digestOf(bytes: Buffer): Buffer {
  return createHash("sha256").update(bytes).digest();
}
