// What the database is asked about a mail besides its sender domain: each question is a turn of the database, so they are
// asked side by side, and before the mail is composed.
import type { Account } from "../../http/http.ts";
import type { Allowance, Preparing, Suppressed } from "../types.ts";
import { monthlyQuota } from "./allowances.ts";
import { suppressedAmong } from "./suppressed.ts";

/** The windows a mail counts in, the month's quota last, and what of them is used. Test keys count nowhere. */
export type Windows = { window: Allowance; used: number }[];

/** The look-ups for a mail of one domain that are under way. */
export type LookUps = { domain_id: string; suppressed: Promise<Suppressed[]>; windows: Promise<Windows> };

/** What of a mail decides the answers. */
export type Asked = {
  domain_id: string;
  now_ms: number;
  recipients: readonly { email: string }[];
  tags: string[];
  template: { id: string } | null;
  unsubscribe: { list: string } | null;
  scheduled_at: Date | null;
};

/** Begins them. Who needs an answer waits for it; one that fails while nobody waits troubles nobody. */
export function beginLookUps(context: Preparing, account: Account, asked: Asked): LookUps {
  const { domain_id, recipients, template, tags, unsubscribe } = asked;
  const emails = recipients.map(({ email }) => email);
  const suppressed = suppressedAmong(context.deps, account.org_id, emails, {
    ...{ domain_id, tags },
    template_id: template?.id ?? null,
    unsubscribe_list: unsubscribe?.list ?? null,
  });
  const windows = readWindows(context, account, asked);
  for (const promise of [suppressed, windows]) promise.catch(() => undefined);
  return { domain_id, suppressed, windows };
}

async function readWindows(
  { deps, used }: Preparing,
  account: Account,
  { domain_id, now_ms, scheduled_at }: Asked,
): Promise<Windows> {
  if (account.environment === "test") return [];
  const read = async (window: Allowance) => ({ window, used: await used(account.org_id, window) });
  // Scheduled mail counts when it leaves (leaving.ts).
  const warming = scheduled_at ? [] : deps.warmingAllowances(account.org_id, domain_id, now_ms);
  const [ofDomain, month] = await Promise.all([
    Promise.resolve(warming).then((windows) => Promise.all(windows.map(read))),
    read(monthlyQuota(account, now_ms)),
  ]);
  return [...ofDomain, month];
}
