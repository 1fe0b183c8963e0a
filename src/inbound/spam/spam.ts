// A domain's settings on spam: what everybody starts with, what may be changed, and how the hot path reads them.
import { requireDomain, requireLocked } from "../../domains/domains.ts";
import { GLOBS_MAX, readSender } from "../../mail/spam/senders.ts";
import { type DmarcActions, disorder, type Thresholds } from "../../mail/spam/verdict.ts";
import { coalesceByOrg } from "../../platform/fair/coalesce.ts";
import { invalid } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "./spam-queries.ts";

export const SENDERS_MAX = 1_000;

export type SpamSettings = {
  enabled: boolean;
  /** Null: not chosen, the server's. */
  engine: queries.Engine | null;
  thresholds: Thresholds;
  on_error: queries.OnError;
  dmarc_action: DmarcActions;
  allow: string[];
  block: string[];
};

/** Deliberate: DMARC alone stops nothing unless the domain asks for it (RFC 9989 §7.4: lists and forwards break it). */
export const DEFAULTS: SpamSettings = {
  enabled: true,
  engine: null,
  thresholds: { tag: 5, quarantine: 8, reject: 15 },
  on_error: "accept",
  dmarc_action: { reject: "tag", quarantine: "tag" },
  allow: [],
  block: [],
};

export type SpamRecord = Omit<SpamSettings, "engine"> & {
  domain_id: string;
  domain: string;
  engine: queries.Engine;
  engine_chosen: boolean;
  updated_at: Date | null;
};

export type SpamChanges = Partial<Omit<SpamSettings, "thresholds" | "dmarc_action">> & {
  thresholds?: Partial<Thresholds>;
  dmarc_action?: Partial<DmarcActions>;
};

/** The engine that judges where the domain has chosen none: rspamd, as soon as the server has one. */
export function engineOf(config: Pick<World["config"], "rspamd_url">, chosen: queries.Engine | null): queries.Engine {
  return chosen ?? (config.rspamd_url === null ? "builtin" : "rspamd");
}

type Shown = { id: string; domain: string; settings: SpamSettings; updated_at: Date | null };

function toRecord({ config }: Pick<World, "config">, { id, domain, settings, updated_at }: Shown): SpamRecord {
  const { engine } = settings;
  const shown = { ...settings, engine: engineOf(config, engine), engine_chosen: engine !== null };
  return { domain_id: id, domain, ...shown, updated_at };
}

/** The settings of a domain, by id or name, or 404. */
export async function getSettings(
  world: Pick<World, "db" | "config">,
  orgId: string,
  idOrName: string,
): Promise<SpamRecord> {
  return world.db.asOrg(orgId, async (tx) => {
    const { id, domain } = await requireDomain(tx, orgId, idOrName);
    const [row] = await queries.findSettings(tx, orgId, id);
    return toRecord(world, { id, domain, settings: fromRow(row), updated_at: row?.updated_at ?? null });
  });
}

/** Changes what is given, or 404; 400 for thresholds out of order and for what names no sender. */
export async function changeSettings(
  world: Pick<World, "db" | "clock" | "config">,
  orgId: string,
  idOrName: string,
  changes: SpamChanges,
): Promise<SpamRecord> {
  const lists = { allow: readSenders("allow", changes.allow), block: readSenders("block", changes.block) };
  return world.db.asOrg(orgId, async (tx) => {
    const { id, domain } = await requireLocked(tx, orgId, idOrName);
    const [row] = await queries.findSettings(tx, orgId, id);
    const before = fromRow(row);
    const settings: SpamSettings = {
      ...before,
      ...changes,
      thresholds: { ...before.thresholds, ...changes.thresholds },
      dmarc_action: { ...before.dmarc_action, ...changes.dmarc_action },
      allow: lists.allow ?? before.allow,
      block: lists.block ?? before.block,
    };
    refuseDisorder(settings.thresholds, changes.thresholds ?? {});
    const updated_at = new Date(world.clock.now());
    await queries.putSettings(tx, orgId, { ...toRow(settings), domain_id: id, updated_at });
    return toRecord(world, { id, domain, settings, updated_at });
  });
}

function readSenders(field: string, given: readonly string[] | undefined): string[] | null {
  if (given === undefined) return null;
  const entries = new Set<string>();
  let globs = 0;
  for (const [index, text] of given.entries()) {
    const read = readSender(text);
    const at = `${field}[${index}]`;
    if (!read.ok) throw invalid(at, `the '${at}' field ${read.problem}`);
    if (read.is_glob && !entries.has(read.entry)) globs += 1;
    if (globs > GLOBS_MAX) throw invalid(at, `the '${field}' field may hold at most ${GLOBS_MAX} patterns`);
    entries.add(read.entry);
  }
  return [...entries];
}

function refuseDisorder(thresholds: Thresholds, given: Partial<Thresholds>): void {
  const wrong = disorder(thresholds);
  if (!wrong) return;
  const { later, earlier } = wrong;
  const [field, other] = given[later] === undefined ? [earlier, later] : [later, earlier];
  const word = field === later ? "less" : "more";
  throw invalid(
    `thresholds.${field}`,
    `the 'thresholds.${field}' field must not be ${word} than thresholds.${other}, which is ${thresholds[other]}`,
  );
}

function fromRow(row: queries.SpamRow | undefined): SpamSettings {
  if (!row) return DEFAULTS;
  return {
    enabled: row.enabled,
    engine: row.engine,
    thresholds: { tag: row.tag_from, quarantine: row.quarantine_from, reject: row.reject_from },
    on_error: row.on_error,
    dmarc_action: { reject: row.dmarc_reject, quarantine: row.dmarc_quarantine },
    allow: row.allow,
    block: row.block,
  };
}

function toRow({ thresholds, dmarc_action, ...rest }: SpamSettings) {
  return {
    ...rest,
    tag_from: thresholds.tag,
    quarantine_from: thresholds.quarantine,
    reject_from: thresholds.reject,
    dmarc_reject: dmarc_action.reject,
    dmarc_quarantine: dmarc_action.quarantine,
  };
}

/** Settings for incoming mail: many domains a round trip, nothing cached, so that a change acts at once. */
export function settingsFinder(world: Pick<World, "db">): (orgId: string, domainId: string) => Promise<SpamSettings> {
  const find = coalesceByOrg<SpamSettings>({
    keys_max: 500,
    lanes: 2,
    load: async (keys) => {
      const wanted = keys.map(({ org_id, key }) => ({ org_id, domain_id: key }));
      const rows = await queries.loadSettings(world.db, wanted);
      return rows.map((row) => [row.org_id, row.domain_id, fromRow(row)]);
    },
  });
  return async (orgId, domainId) => (await find(orgId, domainId)) ?? DEFAULTS;
}
