// Signing in with an address and a password, and showing the password again before what is dangerous. An address that nobody has
// gets the same answer, after the same work.
import { Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import { isPassword } from "../proof/passwords.ts";
import { hasSecondFactor, takeCode } from "../proof/second-factor.ts";
import { countTry, forgetTries } from "../proof/tries.ts";
import * as queries from "../queries.ts";
import type { PersonRow, Session } from "../types.ts";

type SignInWorld = Pick<World, "db" | "clock" | "random" | "seal">;
type Proof = { password: string; code?: string };

/** Who has this address and password; 401 else, and `second_factor_needed` where the password is right and a code is missing. */
export async function signIn(
  world: SignInWorld,
  { email, ...proof }: { email: string } & Proof,
  ip: string,
): Promise<PersonRow> {
  const address = email.trim().toLowerCase();
  await countTry(world, address, ip);
  const [person] = await queries.findPersonByEmail(world.db, address);
  if (!(await isPassword(proof.password, person?.password ?? null)) || !person) {
    throw wrongPassword();
  }
  await checkCode(world, person, proof.code);
  await forgetTries(world, address, ip);
  return person;
}

export function wrongPassword(): Refusal {
  return new Refusal("sign_in_failed", "the address or the password is not right");
}

/** The person of the session shows again who they are. */
export async function proveAgain(world: SignInWorld, { person, digest }: Session, proof: Proof, ip: string) {
  await countTry(world, person.email, ip);
  if (!(await isPassword(proof.password, person.password))) {
    throw new Refusal("sign_in_failed", "the password is not right");
  }
  await checkCode(world, person, proof.code);
  await forgetTries(world, person.email, ip);
  await queries.proveSession(world.db, digest, new Date(world.clock.now()));
}

async function checkCode(world: SignInWorld, person: PersonRow, code: string | undefined): Promise<void> {
  if (!hasSecondFactor(person)) return;
  if (code === undefined) throw new Refusal("second_factor_needed", "send the code of your authenticator app as well");
  if (!(await takeCode(world, person, code))) {
    throw new Refusal("sign_in_failed", "the code is not right, or was used before");
  }
}
