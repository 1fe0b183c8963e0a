// Another organization beside the stage's own.
import { randomBytes } from "node:crypto";
import { secretDigest } from "../../src/accounts/keys.ts";
import { insertKey, insertOrganization } from "../../src/accounts/queries.ts";
import { isDistributed } from "../../src/platform/database/citus/cells.ts";
import { openDb } from "../../src/platform/database/db.ts";
import { apiOf, type Posterns } from "../support/postern-process.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";
import type { Stage } from "./stage.ts";

/** With a key of its own and this domain, ready to send. */
export async function addTenant(stage: Stage, domain: string): Promise<Posterns> {
  const live_key = `svc_live_${randomBytes(16).toString("hex")}`;
  const { url } = stage.postgres;
  const db = openDb(url, { onError: () => undefined, distributed: await isDistributed(url) });
  try {
    const [row] = await db.query<{ id: string }>("select gen_random_uuid() as id");
    const org_id = row?.id ?? "";
    await insertOrganization(db, { id: org_id, name: domain, plan: "enterprise", state: "active" });
    await insertKey(db, org_id, {
      id: org_id,
      name: "live",
      environment: "live",
      digest: secretDigest(live_key),
      key_prefix: live_key.slice(0, 12),
      last_four: live_key.slice(-4),
      created_at: new Date(),
    });
  } finally {
    await db.close();
  }
  const settings = { ...stage.settings, live_key };
  await addVerifiedDomain(apiOf(settings), stage.dns, domain);
  return settings;
}
