// What all mail has in common, however it came in: suppressions (422) → quota and warming (429) → where each recipient's
// delivery goes. The result is everything one e-mail puts into the database.

import type { Account } from "../../http/http.ts";
import { isSimulated } from "../../mail/simulated.ts";
import { CLASS_BULK, CLASS_TRANSACTIONAL, type Exit, type MessageAbout } from "../../outbound/outbound.ts";
import type { Refusal } from "../../platform/refusal.ts";
import type { Prepared, PreparedRecipient, Preparing, Sender, SendingDeps, Suppressed } from "../types.ts";
import { forMessage, overAllowance } from "./allowances.ts";
import type { Recipient } from "./content.ts";
import { beginLookUps, type LookUps, type Windows } from "./look-ups.ts";
import { allSuppressed } from "./suppressed.ts";

/** A message that is complete and allowed as such. */
export type Draft = {
  id: string;
  now_ms: number;
  origin: "api" | "submission";
  sender: Sender;
  /** Without angle brackets. */
  rfc_message_id: string;
  from_address: string;
  from_header: string;
  reply_to: string[];
  subject: string;
  recipients: Pick<Recipient, "email" | "domain" | "kind">[];
  mime: Buffer;
  template: { id: string; version: number } | null;
  tags: string[];
  metadata: Record<string, unknown>;
  require_tls: boolean;
  /** Asked for by the message itself; null: its domain's. */
  ip_pool: string | null;
  /** `list` '' : the sender domain. */
  unsubscribe: { list: string } | null;
  scheduled_at: Date | null;
  expires_at: Date | null;
};

/**
 * Throws 422 when every recipient is suppressed, 429 when a window is full; nothing is written but a large body. `lookUps`:
 * those of this very mail, where they were begun before.
 */
export async function assemble(
  context: Preparing,
  account: Account,
  draft: Draft,
  lookUps: LookUps = beginLookUps(context, account, { ...draft, domain_id: draft.sender.id }),
): Promise<Prepared> {
  const { deps } = context;
  const { mime, recipients } = draft;
  const exit = await deps.chooseExit(account, {
    domain_id: draft.sender.id,
    message_id: draft.id,
    pool: draft.ip_pool,
    domain_pool: draft.sender.ip_pool,
  });
  const suppressed = await lookUps.suppressed;
  if (suppressed.length === recipients.length) throw await refuseSuppressed(deps, account, draft, suppressed);
  const isOut = new Set(suppressed.map(({ email }) => email));
  const counted = recipients.filter(({ email }) => !isOut.has(email) && !isSimulated(context.world.config, email));
  const counts = countIn(await lookUps.windows, counted.length);
  const about = describe(account, draft);
  about.blob_key = await deps.keepIfLarge({ org_id: account.org_id, id: draft.id }, mime);
  const { id, scheduled_at, expires_at, template, from_header, reply_to, origin, sender } = draft;
  return {
    org_id: account.org_id,
    id,
    environment: account.environment,
    api_key_id: account.key_id || null,
    from_header,
    reply_to,
    template_id: template?.id ?? null,
    template_version: template?.version ?? null,
    message_class: classOf(draft),
    status: account.environment === "test" ? "simulated" : scheduled_at ? "scheduled" : "queued",
    ip_pool: exit.ip_pool,
    unsubscribe_list: draft.unsubscribe?.list ?? null,
    origin,
    created_at: new Date(draft.now_ms),
    scheduled_at,
    expires_at,
    return_path_host: sender.return_path_host,
    about,
    mime,
    recipients: await placeRecipients(context, account, draft, { exit, suppressed }),
    suppressed,
    ...counts,
  };
}

/** Mail that one can unsubscribe from waits for mail that somebody waits for. */
function classOf({ unsubscribe }: Draft): number {
  return unsubscribe ? CLASS_BULK : CLASS_TRANSACTIONAL;
}

async function refuseSuppressed(
  { countSuppressed }: SendingDeps,
  { org_id, environment }: Account,
  { sender, now_ms }: Draft,
  suppressed: Suppressed[],
): Promise<Refusal> {
  const count = { org_id, domain_id: sender.id, at: new Date(now_ms), recipients: suppressed.length };
  if (environment === "live") await countSuppressed(count);
  return allSuppressed(suppressed);
}

/** Refused early when one is full. */
function countIn(windows: Windows, count: number): Pick<Prepared, "allowances" | "counted" | "quota_used"> {
  const quota = windows.at(-1);
  if (!quota) return { allowances: [], counted: 0, quota_used: 0 };
  const allowances = windows.map(({ window, used }) => {
    const allowance = forMessage(window, count);
    if (count > 0 && used + count > allowance.ceiling) throw overAllowance(allowance, used, count);
    return allowance;
  });
  return { allowances, counted: count, quota_used: quota.used + count };
}

function describe(account: Account, draft: Draft): MessageAbout {
  const { sender, rfc_message_id, from_address, subject, tags, metadata, mime, recipients } = draft;
  return {
    domain_id: sender.id,
    rfc_message_id,
    from_address,
    subject,
    tags,
    metadata,
    size: mime.length,
    recipient_count: recipients.length,
    require_tls: draft.require_tls || sender.tls_policy === "require",
    has_expiry: draft.expires_at !== null,
    environment: account.environment,
    blob_key: null,
    unsubscribe_list: draft.unsubscribe?.list ?? null,
  };
}

async function placeRecipients(
  { world, deps }: Preparing,
  account: Account,
  draft: Draft,
  decided: { exit: Exit; suppressed: Suppressed[] },
): Promise<PreparedRecipient[]> {
  const { recipients, scheduled_at } = draft;
  const { source_id, relay_domain_id } = decided.exit;
  const suppressed = new Set(decided.suppressed.map(({ email }) => email));
  return Promise.all(
    recipients.map(async ({ email, kind, domain }, position) => {
      if (suppressed.has(email)) return { position, email, kind, status: "suppressed" as const, lane: null };
      if (account.environment === "test") return { position, email, kind, status: "simulated" as const, lane: null };
      const lane = await deps.findLane({
        org_id: account.org_id,
        source_id,
        relay_domain_id,
        domain,
        class: classOf(draft),
      });
      const status = scheduled_at ? ("scheduled" as const) : ("queued" as const);
      return { position, email, kind, status, lane, isSimulated: isSimulated(world.config, email) };
    }),
  );
}
