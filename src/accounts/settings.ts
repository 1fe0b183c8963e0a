// What an operator may set for one organization (`postern settings`): kept in its row, read by the feature it is about. Not
// here: plan, state, quota and rate, which are columns of their own.
import { isUuid, type Query } from "../platform/database/db.ts";
import { UsageError } from "../platform/process/usage-error.ts";
import type { World } from "../platform/world.ts";
import * as queries from "./queries.ts";

type Setting = {
  what: string;
  /** The value as it is stored, or null when the text is none. */
  read(text: string): unknown;
};

const DAYS_MAX = 36_500;

const SETTINGS: Record<"inbound_retention_days" | "test_keys" | "warming_auto_start", Setting> = {
  inbound_retention_days: {
    what: `whole days from 1 to ${DAYS_MAX} that received mail is kept, if the installation keeps it that long`,
    read: (text) => (/^[1-9]\d{0,4}$/.test(text) && Number(text) <= DAYS_MAX ? Number(text) : null),
  },
  test_keys: {
    what: "full: test keys may do to live mail, keys and routes what live keys may",
    read: (text) => (text === "full" ? text : null),
  },
  warming_auto_start: {
    what: "true or false: whether a domain begins to warm up once it is verified",
    read: (text) => (text === "true" || text === "false" ? text === "true" : null),
  },
};

export type SettingName = keyof typeof SETTINGS;

/** One of the organization's settings as text, or null when it is not set. */
export async function organizationSetting(tx: Query, orgId: string, name: SettingName): Promise<string | null> {
  return (await queries.readSetting(tx, orgId, name))[0]?.value ?? null;
}

/** The organizations that have this setting, for background work, with its value as text. */
export function organizationsWith({ db }: Pick<World, "db">, name: SettingName) {
  return queries.findWithSetting(db, name);
}

/** Sets it, or with "default" takes it back; `orgId` null: the first organization. Throws with a sentence for the operator. */
export async function changeSetting({ db }: Pick<World, "db">, orgId: string | null, name: string, text: string) {
  const setting = Object.hasOwn(SETTINGS, name) ? SETTINGS[name as SettingName] : null;
  if (!setting) throw new UsageError(`there is no setting '${name}'; there are ${Object.keys(SETTINGS).join(", ")}`);
  const value = text === "default" ? null : setting.read(text);
  if (value === null && text !== "default") throw new UsageError(`'${name}' is ${setting.what}, or default`);
  const id = orgId ?? (await queries.firstOrganization(db))[0]?.id ?? "";
  if (!isUuid(id) || (await queries.writeSetting(db, { id, name, value: JSON.stringify(value) })) === 0) {
    throw new Error("there is no such organization");
  }
  return value;
}
