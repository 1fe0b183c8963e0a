// `postern setup` without its questions: settings, the machine, the database with its first organization, records, certificate,
// first mail, and what the doctor says at the end. Each step looks first at what is there, so that it may be run again and
// again: what is right stays as it is. Not here: asking and printing (commands/setup.ts).
import { existsSync } from "node:fs";
import { join } from "node:path";
import { bootstrap, organizationNamed, showFirstKeys } from "../accounts/accounts.ts";
import { type Config, type FoundConfig, findConfig, readConfig } from "../config.ts";
import type { Check } from "../doctor/check.ts";
import { counted } from "../doctor/lines.ts";
import { ownZone } from "../doctor/own-zone.ts";
import { answersHealth } from "../doctor/running.ts";
import type { ZoneRecord } from "../doctor/zone.ts";
import { examine } from "../doctor.ts";
import { databaseId } from "../outbound/outbound.ts";
import { firstSetUpLink, showSetUpLink } from "../people/people.ts";
import { createClock, sleep } from "../platform/clock.ts";
import { createResolver } from "../platform/dns/resolver.ts";
import type { Log } from "../platform/process/log.ts";
import { noteDatabase } from "../platform/storage/data-folder.ts";
import { keepMasterKey } from "../platform/storage/master-key.ts";
import type { World } from "../platform/world.ts";
import { ENV_FILE, gatherSettings } from "../settings/gather.ts";
import { openWorld } from "../world.ts";
import { getCertificate } from "./certificate-step.ts";
import { mergeEnvFile, type Settings } from "./env-file.ts";
import { earlierMail, sendFirstMail, type Verdict } from "./first-mail.ts";
import { missingRecords } from "./records.ts";
import { isFresh } from "./sealed-columns.ts";
import type { Step } from "./types.ts";

export type SetUp = {
  env_file: string;
  /** The process's environment: it goes before the file. */
  env: NodeJS.ProcessEnv;
  settings: Settings;
  /** Where the first mail goes; null: nowhere. */
  notices: string | null;
  /** How long to wait for the records. */
  wait_ms: number;
  /** On a terminal keys are shown, else they are in files. */
  is_terminal: boolean;
  /** As root: becomes the owner of the data folder, once the settings are written. */
  prepare(config: FoundConfig): Promise<void>;
  log(): Log;
  /** Hears of each step as it ends, and of what has to be published. */
  tell: Pick<Teller, "step" | "records" | "secrets">;
};

export type Teller = {
  step(step: Step): void;
  records(zone: { records: ZoneRecord[]; text: string; file: string }): void;
  secrets(text: string): void;
};

export type SetUpResult = { ok: boolean; steps: Step[]; records: ZoneRecord[]; missing: ZoneRecord[]; checks: Check[] };

/** A problem with one of these ends the set-up before anything but the settings is made. */
const NEEDED = ["node", "settings", "data folder", "master key", "database", "role", "schema", "port", "large bodies"];
const LOOK_MS = 1_000;
const LOOK_MS_MAX = 15_000;

type Going = { given: SetUp; config: Config; world: World; steps: Step[]; isRunning: boolean };

/** Never throws for what it finds. */
export async function setUp(given: SetUp): Promise<SetUpResult> {
  const steps: Step[] = [];
  const say = (step: Step): void => {
    steps.push(step);
    given.tell.step(step);
  };
  const filed = { ...given.env, [ENV_FILE]: given.env_file };
  say(writeSettings(given));
  const early = await lookAtMachine(given, () => findConfig(filed));
  say(early.step);
  if (early.step.status === "problem") return { ok: false, steps, records: [], missing: [], checks: early.checks };
  // What root reads here the owner of the data folder need not be able to read.
  const { env } = gatherSettings(filed);
  const read = () => findConfig(env);
  await given.prepare(read());
  const config = readConfig(env);
  const isRunning = await answersHealth(config.internal);
  const opened = await openWorld(config, given.log());
  const going: Going = { given, config, world: opened.world, steps, isRunning };
  try {
    const organization = await makeOrganization(going);
    say(organization.step);
    for (const text of organization.secrets) given.tell.secrets(text);
    const { records, missing, step } = await publishRecords(going);
    say(step);
    say(await getCertificate(going.world, isRunning));
    say(await mailOperator(going, missing.length === 0));
    const last = await lookAgain(given, read, early.checks);
    say(last.step);
    const ok = steps.every(({ status }) => status !== "problem");
    return { ok, steps, records, missing, checks: last.checks };
  } finally {
    await opened.close();
  }
}

function writeSettings({ env_file, settings }: SetUp): Step {
  const count = Object.keys(settings).length;
  if (!mergeEnvFile(env_file, settings)) {
    return { name: "settings", status: "unchanged", says: `${env_file} has all of it.`, remedy: null };
  }
  return {
    name: "settings",
    status: "done",
    says: `${env_file} was written (${count === 1 ? "1 setting" : `${count} settings`}).`,
    remedy: null,
  };
}

async function lookAtMachine({ notices }: SetUp, read: () => FoundConfig): Promise<{ step: Step; checks: Check[] }> {
  const checks = await examine({ try_smtp: await operatorsServer(notices, read) }, read);
  const grave = checks.filter(({ name, status }) => status === "problem" && NEEDED.includes(name));
  const [first] = grave;
  if (!first) {
    const says = "Node, data folder, database and ports are as they have to be.";
    return { step: { name: "machine", status: "unchanged", says, remedy: null }, checks };
  }
  const says = grave.map((check) => check.says).join(" ");
  const remedy = [...new Set(grave.map((check) => check.remedy))].join(" ");
  return { step: { name: "machine", status: "problem", says, remedy }, checks };
}

/** The mail server that the first mail goes to may be called. */
async function operatorsServer(notices: string | null, read: () => FoundConfig): Promise<string | null> {
  const domain = notices?.split("@").at(-1);
  if (!domain) return null;
  try {
    const resolver = freshResolver(read());
    const answer = await resolver.mx(domain);
    const servers = answer.kind === "found" ? answer.records : [];
    const [first] = [...servers].sort((a, b) => a.preference - b.preference);
    const address = first ? await resolver.a(first.exchange) : null;
    return address?.kind === "found" ? (address.records[0] ?? null) : null;
  } catch {
    return null; // the settings cannot be read: the checks say so
  }
}

async function makeOrganization({ given, config, world }: Going): Promise<{ step: Step; secrets: string[] }> {
  const secrets: string[] = [];
  await keepMasterKey(world, () => isFresh(world));
  await noteDatabase(config.data_dir, await databaseId(world));
  const first = await bootstrap(world, { live_key: config.bootstrap_live_key, test_key: config.bootstrap_test_key });
  if (first) secrets.push(showFirstKeys(config, first, given.is_terminal));
  // A link that was made is good for a day; `postern people invite` makes others.
  const isThere = existsSync(join(config.data_dir, "set-up-link"));
  const link = isThere ? null : await firstSetUpLink(world, await organizationNamed(world, null));
  if (link !== null) secrets.push(showSetUpLink(config.data_dir, link, given.is_terminal));
  const says = first
    ? "There is an organization now, with a live and a test key."
    : "There is an organization already; its keys stay.";
  const status = first ? ("done" as const) : ("unchanged" as const);
  return { step: { name: "organization", status, says, remedy: null }, secrets };
}

type Published = { records: ZoneRecord[]; missing: ZoneRecord[]; step: Step };

async function publishRecords({ given, config, world }: Going): Promise<Published> {
  const { records, text } = await ownZone(world);
  const look = () => missingRecords(records, freshResolver(config));
  let missing = await look();
  if (missing.length === 0) {
    const says = `All ${records.length} records of ${config.hostname} are in DNS.`;
    return { records, missing, step: { name: "records", status: "unchanged", says, remedy: null } };
  }
  given.tell.records({ records, text, file: join(config.data_dir, "zone.txt") });
  const end = world.clock.monotonic() + given.wait_ms;
  for (
    let waitMs = LOOK_MS;
    missing.length > 0 && world.clock.monotonic() < end;
    waitMs = Math.min(waitMs * 1.5, LOOK_MS_MAX)
  ) {
    await sleep(waitMs);
    missing = await look();
  }
  if (missing.length === 0) {
    const says = `All ${records.length} records of ${config.hostname} are in DNS now.`;
    return { records, missing, step: { name: "records", status: "done", says, remedy: null } };
  }
  const names = [...new Set(missing.map(({ name, type }) => `${name} ${type}`))];
  const says =
    missing.length === records.length
      ? `None of the ${records.length} records is in DNS yet.`
      : `${missing.length} of ${records.length} records are not in DNS: ${names.join(", ")}.`;
  const remedy = "Publish them as `postern dns zone` prints them, then run postern setup again.";
  return { records, missing, step: { name: "records", status: "problem", says, remedy } };
}

/** One that remembers nothing: what was absent a second ago may be there. */
function freshResolver(config: Pick<Config, "dns_servers">) {
  return createResolver({
    ...{ servers: config.dns_servers, timeout_ms: 3_000, attempts: 2, cache_max: 100, validating: false },
    now: createClock({}).now,
  });
}

async function mailOperator({ given, world, isRunning }: Going, isPublished: boolean): Promise<Step> {
  const { notices } = given;
  if (notices === null) {
    const remedy = "postern setup --notices you@example.eu";
    return { name: "mail", status: "skipped", says: "No first mail was sent: there is no address for it.", remedy };
  }
  const earlier = await earlierMail(world, notices);
  if (earlier?.status === "delivered") {
    const says = `A first mail to ${notices} was delivered before (${earlier.reply ?? "taken"}).`;
    return { name: "mail", status: "unchanged", says, remedy: null };
  }
  if (!isPublished) {
    const says = `The first mail to ${notices} waits for the records: without them it would be taken for spam.`;
    return { name: "mail", status: "skipped", says, remedy: null };
  }
  return verdictStep(notices, await sendFirstMail(world, notices, isRunning));
}

function verdictStep(notices: string, { status, reply }: Verdict): Step {
  const said = reply === null ? "" : ` Its server said: ${reply}`;
  if (status === "delivered")
    return { name: "mail", status: "done", says: `The first mail to ${notices} was delivered.${said}`, remedy: null };
  const remedy = "`postern doctor` says what other mail servers see of this one.";
  if (status === "bounced")
    return { name: "mail", status: "problem", says: `The first mail to ${notices} was refused.${said}`, remedy };
  if (status === "deferred") {
    const says = `The first mail to ${notices} waits: a running Postern tries it again.${said}`;
    return { name: "mail", status: "problem", says, remedy };
  }
  const says = `The first mail to ${notices} has not left yet.`;
  return {
    name: "mail",
    status: "problem",
    says,
    remedy: "See that a Postern with the role mta runs, then `postern doctor`.",
  };
}

/** `early`: what root saw of the ports. Whom it became since may not be allowed to listen on them; the service is. */
async function lookAgain(
  { notices }: SetUp,
  read: () => FoundConfig,
  early: Check[],
): Promise<{ step: Step; checks: Check[] }> {
  const found = await examine({ try_smtp: await operatorsServer(notices, read) }, read);
  const isPort = ({ name }: Check) => name === "port";
  const first = found.findIndex(isPort);
  const checks = found.filter((check) => !isPort(check));
  checks.splice(first === -1 ? checks.length : first, 0, ...early.filter(isPort));
  const problems = checks.filter(({ status }) => status === "problem");
  if (problems.length === 0) {
    return {
      step: { name: "doctor", status: "done", says: "The doctor finds nothing that stops mail.", remedy: null },
      checks,
    };
  }
  const says = `The doctor finds ${counted(problems.length, "problem")}:`;
  return { step: { name: "doctor", status: "problem", says, remedy: null }, checks };
}
