// Organizations as the operator lists, makes and changes them (`postern organizations`). What is changed counts from the
// next request on; mail that is queued looks every few seconds. Not here: their other settings (settings.ts), and what
// a plan includes (plans.ts).
import { spelled } from "../http/like.ts";
import { isOneLine } from "../http/one-line.ts";
import { isUuid, type Query, type Tx } from "../platform/database/db.ts";
import type { Total } from "../platform/database/totals.ts";
import { UsageError } from "../platform/process/usage-error.ts";
import { Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import { isLonger } from "../text/is-longer.ts";
import { createWithKeys, type Secrets } from "./first-keys.ts";
import { PLANS } from "./plans.ts";
import * as queries from "./queries.ts";
import type { OrganizationRow, Plan } from "./types.ts";

/** Options of the command line as they were given; undefined where one was not. */
export type OrganizationOptions = {
  name?: string;
  plan?: string;
  state?: string;
  requestsPerSecond?: string;
  monthlyQuota?: string;
};

/** What holds for an organization now: its own limits, else its plan's. */
export type ShownOrganization = {
  id: string;
  name: string;
  plan: Plan;
  state: OrganizationRow["state"];
  requests_per_second: number;
  monthly_quota: number;
  /** The limits that are its own: a change of plan leaves them. */
  own: ("requests_per_second" | "monthly_quota")[];
  /** What its people said they will send when they signed up. */
  purpose: string | null;
  created_at: Date;
};

const NAME_LENGTH_MAX = 191;
const REQUESTS_PER_SECOND_MAX = 1_000_000;
const MONTHLY_QUOTA_MAX = 1_000_000_000_000;
const STATES = ["pending_review", "active", "suspended"] as const;
const PLAN_NAMES = Object.keys(PLANS) as Plan[];

/** All organizations, the oldest first. */
export async function listOrganizations({ db }: Pick<World, "db">): Promise<ShownOrganization[]> {
  return (await queries.listOrganizations(db)).map(shown);
}

export type OrganizationQuery = { query?: string; state?: string; after?: string; limit: number };

/** One page, the oldest first. `query` is part of a name, or an id. */
export async function pageOrganizations(
  { db }: Pick<World, "db">,
  { query, state, after, limit }: OrganizationQuery,
): Promise<{ organizations: ShownOrganization[]; next: string | null } & Total> {
  const sought = query?.trim() ?? "";
  const filter = {
    patterns: sought === "" ? null : spelled(sought),
    id: isUuid(sought) ? sought : null,
    state: state ?? null,
  };
  const rows = await queries.pageOrganizations(db, filter, { after: after ?? null, limit: limit + 1 });
  const shownRows = rows.slice(0, limit);
  const next = rows.length > limit ? (shownRows.at(-1)?.id ?? null) : null;
  return { organizations: shownRows.map(shown), next, ...(await queries.countFitting(db, filter)) };
}

/** A further organization with a live and a test key, whose secrets are in the answer and nowhere else. */
export async function createOrganization(
  world: Pick<World, "db" | "clock" | "random">,
  options: OrganizationOptions,
): Promise<{ organization: ShownOrganization } & Secrets> {
  if (options.name === undefined) throw new UsageError("'--name' is needed: what the organization is called");
  const changes = readOptions(options);
  return world.db.transaction(async (tx) => {
    const { org_id, ...secrets } = await createWithKeys(world, tx, {
      name: changes.name as string,
      plan: changes.plan ?? "enterprise",
      state: changes.state ?? "active",
    });
    return { organization: await change(tx, org_id, changes), ...secrets };
  });
}

/** One that somebody signed up for: in review, on the smallest plan, without keys. `name` was checked. */
export async function openOrganization(
  { random }: Pick<World, "random">,
  tx: Tx,
  asked: { name: string; purpose: string },
): Promise<string> {
  const id = random.uuid();
  await queries.insertAskedOrganization(tx, { id, ...asked });
  return id;
}

/** What may be changed of an organization, as it is now; undefined where there is no such one. */
export async function showOrganization({ db }: Pick<World, "db">, id: string) {
  const [row] = isUuid(id) ? await queries.findOrganization(db, id) : [];
  return row && withLimits(row);
}

/** Changes what is given. Throws a sentence for the operator that names the option, or that there is no such one. */
export async function changeOrganization(
  { db }: Pick<World, "db">,
  id: string,
  options: OrganizationOptions,
): Promise<ShownOrganization> {
  const changes = readOptions(options);
  if (Object.keys(changes).length === 0) {
    throw new UsageError("say what to change: --state, --plan, --requests-per-second, --monthly-quota or --name");
  }
  return change(db, id, changes);
}

/** The id of the organization a command is about: the one that is named, else the first. Throws a sentence without one. */
export async function organizationNamed({ db }: Pick<World, "db">, id: string | null): Promise<string> {
  if (id === null) {
    const [first] = await queries.firstOrganization(db);
    if (!first) throw new Error("there is no organization yet; run `postern start` once first");
    return first.id;
  }
  const [found] = isUuid(id) ? await queries.findPlans(db, [id]) : [];
  if (!found) throw new Error(`there is no organization with the id ${id}; \`postern organizations list\` shows them`);
  return found.id;
}

async function change(db: Query, id: string, changes: queries.OrganizationChanges): Promise<ShownOrganization> {
  if (isUuid(id) && (await queries.findNames(db, [id]))[0]?.state === "moving")
    throw new Refusal(
      "invalid_state",
      "this organization is being moved to another cell: postern organizations keep lets it stay, remove ends the move",
    );
  const [row] = isUuid(id) ? await queries.changeOrganization(db, id, changes) : [];
  if (!row) throw new Error(`there is no organization with the id ${id}; \`postern organizations list\` shows them`);
  return shown(row);
}

function readOptions(options: OrganizationOptions): queries.OrganizationChanges {
  const { name, plan, state, requestsPerSecond, monthlyQuota } = options;
  return {
    ...(name === undefined ? {} : { name: readName(name) }),
    ...(plan === undefined ? {} : { plan: oneOf("--plan", PLAN_NAMES, plan) }),
    ...(state === undefined ? {} : { state: oneOf("--state", STATES, state) }),
    ...(requestsPerSecond === undefined
      ? {}
      : { requests_per_second: readLimit("--requests-per-second", requestsPerSecond, [1, REQUESTS_PER_SECOND_MAX]) }),
    ...(monthlyQuota === undefined
      ? {}
      : { monthly_quota: readLimit("--monthly-quota", monthlyQuota, [0, MONTHLY_QUOTA_MAX]) }),
  };
}

function readName(text: string): string {
  const name = text.trim();
  // A line of the list is one organization.
  if (name.length === 0 || isLonger(name, NAME_LENGTH_MAX) || !isOneLine(name)) {
    throw new UsageError(`'--name' is 1 to ${NAME_LENGTH_MAX} characters on one line`);
  }
  return name;
}

function oneOf<Word extends string>(option: string, words: readonly Word[], text: string): Word {
  const word = words.find((known) => known === text);
  if (word === undefined) throw new UsageError(`'${option}' is one of ${words.join(", ")}, not "${text}"`);
  return word;
}

/** Null: the plan's. */
function readLimit(option: string, text: string, [least, most]: [number, number]): number | null {
  if (text === "default") return null;
  const value = /^\d{1,13}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new UsageError(
    `'${option}' is a whole number from ${least} to ${most}, or default for the plan's, not "${text}"`,
  );
}

function shown(row: queries.ListedOrganization): ShownOrganization {
  const own = (["requests_per_second", "monthly_quota"] as const).filter((name) => row[name] !== null);
  return { ...row, ...withLimits(row), own };
}

function withLimits<R extends Pick<queries.ListedOrganization, "plan" | "requests_per_second" | "monthly_quota">>(
  row: R,
) {
  return {
    ...row,
    requests_per_second: row.requests_per_second ?? PLANS[row.plan].requests_per_second,
    monthly_quota: row.monthly_quota ?? PLANS[row.plan].monthly_quota,
  };
}

/** Lines for people: a head, then one for each, the name last. */
export function organizationTable(organizations: ShownOrganization[]): string {
  const limit = (one: ShownOrganization, name: ShownOrganization["own"][number]) =>
    `${one[name]}${one.own.includes(name) ? " (own)" : ""}`;
  const rows = [
    ["id", "state", "plan", "requests/s", "a month", "created", "name"],
    ...organizations.map((one) => [
      one.id,
      one.state,
      one.plan,
      limit(one, "requests_per_second"),
      limit(one, "monthly_quota"),
      one.created_at.toISOString().slice(0, 10),
      one.name,
    ]),
  ];
  const widths = rows[0]?.map((_cell, at) => rows.reduce((most, row) => Math.max(most, row[at]?.length ?? 0), 0)) ?? [];
  return rows
    .map((row) =>
      row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
