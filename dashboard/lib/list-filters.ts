// The filters of the smaller lists, as a page's address holds them. Pure.

export type Search = Record<string, unknown>;

export function text(search: Search, name: string): string | undefined {
  const value = search[name];
  return (typeof value === "string" || typeof value === "number") && value !== "" ? String(value) : undefined;
}

export function oneOf<T extends string>(search: Search, name: string, values: readonly T[]): T | undefined {
  return values.find((value) => value === search[name]);
}

/** Without the fields that say nothing, so that an address stays short. */
export function dense<T extends object>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}

/** Where a list without filters goes on. */
export type PageView = { after?: string };

export function readPageView(search: Search): PageView {
  return dense({ after: text(search, "after") });
}

export const REASONS = ["hard_bounce", "complaint", "manual", "unsubscribe"] as const;
export type SuppressionFilters = { query?: string; reason?: (typeof REASONS)[number]; after?: string };

export function readSuppressionFilters(search: Search): SuppressionFilters {
  const reason = oneOf(search, "reason", REASONS);
  return dense({ query: text(search, "query"), reason, after: text(search, "after") });
}

export const DELIVERY_STATES = ["pending", "delivered", "retrying", "failed"] as const;
export const EVENTS = [
  "email.received",
  "email.delivered",
  "email.bounced",
  "email.deferred",
  "email.complained",
] as const;
export type DeliveryFilters = {
  status?: (typeof DELIVERY_STATES)[number];
  event?: (typeof EVENTS)[number];
  after?: string;
};

export function readDeliveryFilters(search: Search): DeliveryFilters {
  const status = oneOf(search, "status", DELIVERY_STATES);
  return dense({ status, event: oneOf(search, "event", EVENTS), after: text(search, "after") });
}

export const ORGANIZATION_STATES = ["pending_review", "active", "suspended", "moving"] as const;
export type OrganizationFilters = { state?: (typeof ORGANIZATION_STATES)[number]; query?: string; after?: string };

export function readOrganizationFilters(search: Search): OrganizationFilters {
  const state = oneOf(search, "state", ORGANIZATION_STATES);
  return dense({ state, query: text(search, "query"), after: text(search, "after") });
}

/** The filters of the deliveries of all endpoints. */
export type LogFilters = DeliveryFilters & { endpoint_id?: string };

export function readLogFilters(search: Search): LogFilters {
  return dense({ ...readDeliveryFilters(search), endpoint_id: text(search, "endpoint_id") });
}

/** Which import a page shows. */
export function readImport(search: Search): { job?: string } {
  return dense({ job: text(search, "job") });
}

export type AuditFilters = { operation?: string; from_date?: string; to_date?: string; after?: string };

export function readAuditFilters(search: Search): AuditFilters {
  const [operation, from_date, to_date, after] = ["operation", "from_date", "to_date", "after"].map((name) =>
    text(search, name),
  );
  return dense({ operation, from_date, to_date, after });
}

/** Whose data is looked at. */
export function readAddressView(search: Search): { email?: string; after?: string } {
  return dense({ email: text(search, "email"), after: text(search, "after") });
}

export type TemplateFilters = { query?: string; active?: boolean; after?: string };

export function readTemplateFilters(search: Search): TemplateFilters {
  const active = typeof search.active === "boolean" ? search.active : undefined;
  return dense({ query: text(search, "query"), active, after: text(search, "after") });
}

export const PARTS = ["html", "text", "difference"] as const;
export const VIEWS = ["html", "phone", "text"] as const;
/** Which part of a template is written, and how it is shown. */
export type TemplateView = { part?: (typeof PARTS)[number]; view?: (typeof VIEWS)[number] };

export function readTemplateView(search: Search): TemplateView {
  return dense({ part: oneOf(search, "part", PARTS), view: oneOf(search, "view", VIEWS) });
}

/** Which two versions of a template are compared, and behind which the list begins. */
export type VersionsView = { version?: number; with?: number; before?: number };

export function readVersionsView(search: Search): VersionsView {
  const number = (name: string) => {
    const value = Number(search[name]);
    return Number.isSafeInteger(value) && value > 0 ? value : undefined;
  };
  return dense({ version: number("version"), with: number("with"), before: number("before") });
}
