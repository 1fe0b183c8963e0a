// The second factor: codes of an authenticator app (TOTP, RFC 6238) and ten recovery codes, each good for once.
import { createHash } from "node:crypto";
import { Secret, TOTP } from "otpauth";
import { invalid, Refusal } from "../../platform/refusal.ts";
import type { SealedColumn } from "../../platform/storage/sealed-columns.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "../queries.ts";
import type { PersonRow } from "../types.ts";

/** RFC 4226 §4 R6 asks for 128 bits at least, and recommends 160. */
const SECRET_BYTES = 20;
const PERIOD_S = 30;
const RECOVERY_CODES = 10;
/** Base62: 71 bits. */
const RECOVERY_LENGTH = 12;
/** RFC 6238 §5.2: a step before and after, for clocks that differ. */
const WINDOW = 1;

type FactorWorld = Pick<World, "db" | "clock" | "random" | "seal">;

/** True if signing in needs a code. */
export function hasSecondFactor({ totp, totp_confirmed_at }: Pick<PersonRow, "totp" | "totp_confirmed_at">): boolean {
  return totp !== null && totp_confirmed_at !== null;
}

/** Makes a new secret, which counts once a code of it was shown. Shown once. */
export async function offerTotp(world: FactorWorld, person: PersonRow): Promise<{ secret: string; uri: string }> {
  if (hasSecondFactor(person))
    throw new Refusal("invalid_state", "an authenticator app is set up already; remove it first");
  const bytes = world.random.bytes(SECRET_BYTES);
  await queries.setTotp(world.db, person.id, world.seal.seal(bytes, contextOf(person.id)));
  const totp = totpOf(bytes, person.email);
  return { secret: totp.secret.base32, uri: totp.toString() };
}

/** Turns it on when the code is right, and answers the recovery codes, which are shown once. */
export async function confirmTotp(world: FactorWorld, person: PersonRow, code: string): Promise<string[]> {
  if (person.totp === null || hasSecondFactor(person))
    throw new Refusal("invalid_state", "there is no authenticator app that waits to be confirmed");
  if (!(await isTotpCode(world, person, code))) throw invalid("code", "the 'code' field is not the app's present code");
  const codes = Array.from({ length: RECOVERY_CODES }, () => world.random.token(RECOVERY_LENGTH));
  await world.db.transaction(async (tx) => {
    await queries.confirmTotp(tx, person.id, new Date(world.clock.now()));
    await queries.dropRecoveryCodes(tx, person.id);
    await queries.insertRecoveryCodes(tx, person.id, codes.map(digestOf));
  });
  return codes.map((text) => text.replace(/(.{4})(?=.)/g, "$1-"));
}

/** Takes it away, with its recovery codes. */
export async function removeTotp(world: FactorWorld, personId: string): Promise<void> {
  await queries.setTotp(world.db, personId, null);
  await queries.dropRecoveryCodes(world.db, personId);
}

/** True for a code of the app, or one of the recovery codes. Each is accepted once. */
export async function takeCode(world: FactorWorld, person: PersonRow, code: string): Promise<boolean> {
  if (/^\d{6}$/.test(code)) return isTotpCode(world, person, code);
  const digest = digestOf(code.replaceAll(/[\s-]/g, ""));
  return (await queries.useRecoveryCode(world.db, person.id, digest, new Date(world.clock.now()))) > 0;
}

async function isTotpCode(world: FactorWorld, { id, email, totp }: PersonRow, code: string): Promise<boolean> {
  if (totp === null) return false;
  const now = world.clock.now();
  const delta = totpOf(world.seal.open(totp, contextOf(id)), email).validate({
    token: code,
    timestamp: now,
    window: WINDOW,
  });
  if (delta === null) return false;
  const step = Math.floor(now / 1000 / PERIOD_S) + delta;
  return (await queries.useTotpStep(world.db, id, step)) > 0;
}

function totpOf(bytes: Buffer, email: string): TOTP {
  const secret = new Secret({ buffer: new Uint8Array(bytes).buffer });
  return new TOTP({ issuer: "Postern", label: email, secret, period: PERIOD_S, digits: 6, algorithm: "SHA1" });
}

export const SEALED: readonly SealedColumn[] = [
  { table: "person", column: "totp", key: ["id"], context: ({ id }) => contextOf(id!) },
];

function contextOf(personId: string): string {
  return `totp:${personId}`;
}

function digestOf(code: string): Buffer {
  return createHash("sha256").update(code).digest();
}
