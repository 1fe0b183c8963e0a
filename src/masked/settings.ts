// What an organization sets for its masked addresses together: how much may leave through them, how many may be made, and what
// becomes of mail whose author is not proven. The limits of one alias are fixed (windows.ts). On the free plan, which anybody can have, limits may be lowered, not raised.
import { protectLive } from "../accounts/accounts.ts";
import type { Account } from "../http/http.ts";
import type { Query } from "../platform/database/db.ts";
import { Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import * as queries from "./settings-queries.ts";

export type MaskedSettings = queries.MaskedSettings;
export type MaskedLimits = queries.MaskedLimits;

const ARC_SEALERS =
  "google.com gmail.com googlegroups.com microsoft.com messagingengine.com fastmail.com pobox.com topicbox.com forwardemail.net";

/**
 * A person who writes to ten friends an evening has room, and sixty aliases of one mailbox do not make it a mailing machine.
 * Aliases: a password manager that brings a person's logins over makes hundreds at once.
 */
const DEFAULTS: MaskedSettings = {
  replies_person_hour: 40,
  replies_person_day: 200,
  replies_hour: 1_000,
  replies_day: 5_000,
  aliases_hour: 500,
  aliases_day: 2_000,
  pattern_aliases: 1_000,
  forged_mail: "quarantine",
  mark_unproven: "asked",
  // github.com/trusteddomainproject/ARC_Community_Sealers, those that many people use.
  arc_sealers: ARC_SEALERS.split(" "),
};

/** What holds for the organization. */
export async function maskedSettings(tx: Query, orgId: string): Promise<MaskedSettings> {
  const [row] = await queries.findSettings(tx, orgId);
  return row ? pick(row) : DEFAULTS;
}

/** The same, with when it was changed last. */
export async function showSettings({ db }: Pick<World, "db">, { org_id }: Pick<Account, "org_id">) {
  return db.asOrg(org_id, async (tx) => {
    const [row] = await queries.findSettings(tx, org_id);
    return { ...(row ? pick(row) : DEFAULTS), updated_at: row?.updated_at ?? null };
  });
}

/** Changes what is given; 403 for what the plan does not allow, and for test keys. */
export async function changeMaskedSettings(
  { db, clock }: Pick<World, "db" | "clock">,
  account: Pick<Account, "org_id" | "plan" | "acts_on_live">,
  changes: Partial<MaskedSettings>,
) {
  await protectLive(account, "change the limits of live aliases", async () => "live");
  if (account.plan === "free") refuseMore(changes);
  const { org_id } = account;
  return db.asOrg(org_id, async (tx) => {
    const [row] = await queries.lockSettings(tx, org_id);
    const settings = { ...(row ? pick(row) : DEFAULTS), ...changes };
    const updated_at = new Date(clock.now());
    await queries.putSettings(tx, org_id, { ...settings, updated_at });
    return { ...settings, updated_at };
  });
}

function refuseMore(changes: Partial<MaskedSettings>): void {
  const field = queries.LIMITS.find((name) => (changes[name] ?? 0) > DEFAULTS[name]);
  if (!field) return;
  const message = `the '${field}' field may be at most ${DEFAULTS[field]} on the free plan`;
  throw new Refusal("plan_limit_reached", message, { field });
}

function pick({ updated_at: _, ...row }: queries.Row): MaskedSettings {
  return { ...row, arc_sealers: row.arc_sealers ?? DEFAULTS.arc_sealers };
}
