// A new organization and its first two keys, in one transaction: at the first start, and by `postern organizations create`.
import type { Tx } from "../platform/database/db.ts";
import type { World } from "../platform/world.ts";
import { newSecret, secretDigest, secretEnvironment } from "./keys.ts";
import * as queries from "./queries.ts";
import type { OrganizationRow } from "./types.ts";

export type Secrets = { live_key: string; test_key: string };

type NewOrganization = Pick<OrganizationRow, "name" | "plan" | "state"> & {
  /** Keys that are taken as they are; made up where null. */
  given?: { live_key: string | null; test_key: string | null };
};

/** Inserts them; the secrets are in the answer and nowhere else. */
export async function createWithKeys(
  world: Pick<World, "clock" | "random">,
  tx: Tx,
  { given, ...organization }: NewOrganization,
): Promise<{ org_id: string } & Secrets> {
  const org_id = world.random.uuid();
  await queries.insertOrganization(tx, { id: org_id, ...organization });
  const live_key = given?.live_key ?? newSecret(world.random, "live");
  const test_key = given?.test_key ?? newSecret(world.random, "test");
  await queries.insertKey(tx, org_id, keyRecord(world, "First live key", live_key));
  await queries.insertKey(tx, org_id, keyRecord(world, "First test key", test_key));
  return { org_id, live_key, test_key };
}

/** The row of a new key. Throws when the secret is not of our form. */
export function keyRecord(world: Pick<World, "clock" | "random">, name: string, secret: string): queries.NewKey {
  const environment = secretEnvironment(secret);
  if (!environment)
    throw new Error("an API key begins with svc_live_ or svc_test_, then 16 to 128 letters, digits, _ or -");
  return {
    ...restOfKey(world, name, secret),
    environment,
  };
}

/** The row of a new key for the masked addresses of one mailbox. */
export function maskKeyRecord(
  world: Pick<World, "clock" | "random">,
  name: string,
  secret: string,
  of: Pick<queries.NewKey, "environment" | "destination_id">,
): queries.NewKey {
  return { ...restOfKey(world, name, secret), ...of, kind: "mask" };
}

function restOfKey(world: Pick<World, "clock" | "random">, name: string, secret: string) {
  return {
    id: world.random.uuid(),
    name,
    digest: secretDigest(secret),
    key_prefix: secret.slice(0, 12),
    last_four: secret.slice(-4),
    created_at: new Date(world.clock.now()),
  };
}
