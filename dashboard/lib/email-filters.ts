// The filters of the list of e-mails, as the page's address holds them and as the API takes them. Pure.
import type { Schemas } from "../api/client.ts";

export type EmailStatus = Schemas["Email"]["status"];
export type EmailFilters = {
  status?: EmailStatus;
  from?: string;
  to?: string;
  subject?: string;
  tag?: string;
  domain_id?: string;
  environment?: "live" | "test";
  message_id?: string;
  from_date?: string;
  to_date?: string;
  /** Rows after this id: the next page. */
  after?: string;
  /** Read again while the page is open. */
  live?: boolean;
};

export const STATUSES: readonly EmailStatus[] = [
  "scheduled",
  "queued",
  "sending",
  "deferred",
  "delivered",
  "partially_delivered",
  "bounced",
  "complained",
  "suppressed",
  "failed",
  "expired",
  "canceled",
  "simulated",
];
const TEXTS = ["from", "to", "subject", "tag", "domain_id", "message_id", "from_date", "to_date", "after"] as const;
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** What an address says; what it says wrongly is left out. */
export function readEmailFilters(search: Record<string, unknown>): EmailFilters {
  const filters: EmailFilters = {};
  for (const name of TEXTS) {
    const value = search[name];
    if ((typeof value === "string" || typeof value === "number") && value !== "") filters[name] = String(value);
  }
  const status = STATUSES.find((one) => one === search.status);
  if (status) filters.status = status;
  if (search.environment === "live" || search.environment === "test") filters.environment = search.environment;
  if (search.live === true) filters.live = true;
  return filters;
}

/** Whether anything narrows the list. */
export function isNarrowed({ after: _after, live: _live, ...filters }: EmailFilters): boolean {
  return Object.values(filters).some((value) => value !== undefined);
}

export type Sought = { id: string } | Pick<EmailFilters, "to" | "subject" | "message_id">;

/** What a search means: an id goes to the e-mail, an address is the recipient's (or the Message-ID when it has angle brackets), anything else is part of the subject. */
export function readSearch(text: string): Sought {
  const sought = text.trim();
  if (ID.test(sought)) return { id: sought };
  if (/^<.+@.+>$/.test(sought)) return { message_id: sought.slice(1, -1) };
  if (/^\S+@\S+$/.test(sought)) return { to: sought };
  return { subject: sought || undefined };
}

/** What the search field shows for these filters. */
export function searchText({ to, subject, message_id }: EmailFilters): string {
  return to ?? subject ?? (message_id === undefined ? "" : `<${message_id}>`);
}
