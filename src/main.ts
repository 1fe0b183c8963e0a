// The command line: reads the command, the roles and the signals, nothing else. The commands of clients are in clients/cli.
import { Command, CommanderError, InvalidArgumentError } from "commander";
import {
  bootstrap,
  changeOrganization,
  changeSetting,
  createKey,
  createOrganization,
  listOrganizations,
  type OrganizationOptions,
  organizationNamed,
  organizationTable,
  showFirstKeys,
} from "./accounts/accounts.ts";
import { type Running, startRoles } from "./app.ts";
import { noteCommand } from "./audit/audit.ts";
import { addBackupCommands } from "./commands/backup.ts";
import { addCellCommands } from "./commands/cells.ts";
import { addCertificateCommands } from "./commands/certificates.ts";
import { commandConfig, logBeside } from "./commands/command-config.ts";
import { addMasterKeyCommands } from "./commands/master-key.ts";
import { addSetupCommand } from "./commands/setup.ts";
import { addUpgradeCommand } from "./commands/upgrade.ts";
import {
  type Config,
  ConfigProblems,
  findConfig,
  ownSettings,
  printableConfig,
  ROLES,
  type Role,
  readConfig,
  useEnvFile,
} from "./config.ts";
import { missingPages } from "./dashboard/dashboard.ts";
import { plainHttp } from "./doctor/check-certificate.ts";
import { warnOfRole } from "./doctor/check-database.ts";
import { isLocal } from "./doctor/local.ts";
import { ownZone } from "./doctor/own-zone.ts";
import { examine, printable } from "./doctor.ts";
import { describeOperatorMail, readOperatorMail } from "./inbound/inbound.ts";
import { databaseId, resumeSending } from "./outbound/outbound.ts";
import { describePeople, firstSetUpLink, makeResetLink, makeSetUpLink, showSetUpLink } from "./people/people.ts";
import { answerJson, answerLines, askDatabase } from "./platform/database/ask-database.ts";
import { migrate } from "./platform/database/migrate.ts";
import { neededPlaces, refuseTakenPlaces } from "./platform/net/free-places.ts";
import { holdPlaces } from "./platform/net/held-places.ts";
import { placesOf } from "./platform/net/places.ts";
import { ownVersion } from "./platform/own-version.ts";
import { leaveRoot } from "./platform/process/leave-root.ts";
import { explainStart } from "./platform/process/start-problem.ts";
import { UsageError } from "./platform/process/usage-error.ts";
import { noteDatabase, refuseEmptyDatabase } from "./platform/storage/data-folder.ts";
import { acceptMasterKey, judgeMasterKey, keepMasterKey, refuseOtherMasterKey } from "./platform/storage/master-key.ts";
import type { World } from "./platform/world.ts";
import { settingLines, settingsInForce } from "./settings/in-force.ts";
import { isFresh } from "./setup/sealed-columns.ts";
import { type Opened, openWorld } from "./world.ts";

const STOP_WITHIN_MS = 60_000;
/** As of most programs: the command line is wrong, as against work that failed (1). */
const USAGE_STATUS = 2;
const PARENT_LOOK_MS = 1_000;

async function start(options: { roles: Role[]; user?: string }): Promise<void> {
  const found = findConfig();
  const signal = watchSignals(found);
  await refuseTakenPlaces(found, options.roles);
  const places = neededPlaces(found, options.roles);
  const exposed = placesOf(found).some(({ host }) => !isLocal(host));
  const named = options.user ?? null;
  const left = await leaveRoot(found, { named, exposed, hold: () => holdPlaces(places) });
  const config = readConfig();
  const opened = await explained(config, openWorld(config, undefined, left.held));
  if (left.warning)
    opened.world.log.warn({ why: left.warning }, "Postern stays root, as it listens on this machine only");
  if (signal.asked()) return signal.stopBy(() => stopAll(opened, null));
  const running = await explained(config, startIn(opened, config, options.roles)).catch(async (error) => {
    await opened.close();
    throw error;
  });
  signal.stopBy(() => stopAll(opened, running));
  if (signal.asked()) return;
  const where = running.address ? ` on ${running.address}` : "";
  console.log(`Postern is ready: ${options.roles.join(", ")}${where} (metrics on ${running.internal})`);
}

async function stopAll({ world, close }: Opened, running: Running | null): Promise<void> {
  world.log.info("stopping");
  try {
    await running?.stop();
  } finally {
    await close();
  }
  world.log.info("stopped");
}

async function explained<T>(config: Config, work: Promise<T>): Promise<T> {
  return await work.catch((error) => {
    throw explainStart(config, error);
  });
}

async function startIn({ world }: Opened, config: Config, roles: Role[]): Promise<Running> {
  world.log.info(printableConfig(config), "configuration");
  if (config.unused.length > 0)
    world.log.warn({ unused: config.unused }, "these variables are no settings, or have no effect");
  const isEmpty = async () => (await judgeMasterKey(world.db, config.master_key)) === "unknown";
  await refuseEmptyDatabase(config.data_dir, isEmpty);
  const open = roles.includes("api") ? plainHttp(config) : null;
  if (open) world.log.warn({ remedy: open.remedy }, open.says);
  await warnOfRole(world);
  await keepMasterKey(world, () => isFresh(world));
  await noteDatabase(config.data_dir, await databaseId(world)).catch((err) =>
    world.log.warn({ err }, "the data folder cannot note which database it serves"),
  );
  const first = await bootstrap(world, { live_key: config.bootstrap_live_key, test_key: config.bootstrap_test_key });
  // At once: they are nowhere else, and a port that is taken ends the start.
  if (first) console.log(showFirstKeys(config, first, process.stdout.isTTY));
  if (roles.includes("api")) await offerSetUp(world);
  return await startRoles(world, roles);
}

/** Until there is somebody who can sign in. */
async function offerSetUp(world: World): Promise<void> {
  const missing = missingPages();
  if (missing !== null) console.log(missing);
  const org_id = await organizationNamed(world, null);
  const link = await firstSetUpLink(world, org_id);
  if (link !== null) console.log(showSetUpLink(world.config.data_dir, link, process.stdout.isTTY));
}

/**
 * SIGTERM and Ctrl-C count from the very beginning: a start that is cut short would leave the embedded database running. What
 * is asked for before `stopBy` says how to stop happens then. npm gives a signal to the shell between it and us, which dies of
 * it and passes nothing on: there the end of our parent counts as SIGTERM, or we would go on without anybody to stop us.
 */
function watchSignals({ is_under_npm }: Pick<Config, "is_under_npm">): {
  asked(): boolean;
  stopBy(stop: () => Promise<void>): void;
} {
  let asked = false;
  let stopNow: (() => void) | null = null;
  const handle = (): void => {
    if (asked) return;
    asked = true;
    const late = setTimeout(() => process.exit(1), STOP_WITHIN_MS);
    late.unref();
    stopNow?.();
  };
  process.on("SIGTERM", handle);
  process.on("SIGINT", handle);
  const parent = process.ppid;
  if (is_under_npm) setInterval(() => process.ppid !== parent && handle(), PARENT_LOOK_MS).unref();
  return {
    asked: () => asked,
    stopBy(stop) {
      stopNow = () => void endBy(stop);
      if (asked) stopNow();
    },
  };
}

async function endBy(stop: () => Promise<void>): Promise<never> {
  try {
    await stop();
  } catch (error) {
    console.error(error);
    process.exit(1);
  }
  process.exit(0);
}

async function migrateOnly(): Promise<void> {
  const config = await commandConfig();
  if (config.database_url) {
    const applied = await explained(config, migrate(config.database_url));
    console.log(applied.length ? `Applied: ${applied.join(", ")}` : "The database is up to date.");
    return;
  }
  const opened = await openWorld(config, logBeside(config));
  console.log("The embedded database is up to date.");
  await opened.close();
}

/** For the commands that work on a database once. */
async function withAnyKey(work: (world: World) => Promise<void>): Promise<void> {
  const config = await commandConfig();
  const opened = await explained(config, openWorld(config, logBeside(config)));
  try {
    await work(opened.world);
  } finally {
    await opened.close();
  }
}

function withWorld(work: (world: World) => Promise<void>): Promise<void> {
  return withAnyKey(async (world) => {
    await refuseOtherMasterKey(world);
    await work(world);
  });
}

function acceptMasterKeyCommand(): Promise<void> {
  return withAnyKey(async (world) => {
    await acceptMasterKey(world);
    console.log("This master key counts from now on. docs/operations.md says what has to be made again.");
  });
}

type KeyOptions = { name: string; env: "live" | "test"; organization?: string; json?: boolean };

function createKeyCommand(options: KeyOptions): Promise<void> {
  return withWorld(async (world) => {
    const org_id = await organizationNamed(world, options.organization ?? null);
    const account = { org_id, acts_on_live: true };
    const created = await createKey(world, account, { name: options.name, environment: options.env });
    await noteCommand(world, org_id, { command: "keys create", target: { id: created.key.id } });
    console.log(options.json ? JSON.stringify(created) : created.secret);
  });
}

function operatorMail(id: string | undefined): Promise<void> {
  return withWorld(async (world) => {
    if (id === undefined) return console.log(await describeOperatorMail(world));
    const bytes = await readOperatorMail(world, id);
    if (!bytes) throw new Error(`there is no mail for the operator with the id ${id}`);
    process.stdout.write(bytes);
  });
}

function changeSettingCommand(name: string, value: string, options: { organization?: string }): Promise<void> {
  return withWorld(async (world) => {
    await changeSetting(world, options.organization ?? null, name, value);
    const org_id = await organizationNamed(world, options.organization ?? null);
    await noteCommand(world, org_id, { command: "settings", target: { setting: name } });
    console.log(`${name} is ${value} now.`);
  });
}

function listOrganizationsCommand(options: { json?: boolean }): Promise<void> {
  return withWorld(async (world) => {
    const organizations = await listOrganizations(world);
    console.log(options.json ? JSON.stringify({ organizations }) : organizationTable(organizations));
  });
}

function createOrganizationCommand({ json, ...options }: OrganizationOptions & { json?: boolean }): Promise<void> {
  return withWorld(async (world) => {
    const created = await createOrganization(world, options);
    await noteCommand(world, created.organization.id, { command: "organizations create" });
    if (json) return console.log(JSON.stringify(created));
    const { organization, live_key, test_key } = created;
    const { id, name, plan, state } = organization;
    console.log(
      `The organization "${name}" was created (${plan}, ${state}). These keys are shown once.\n` +
        `  id        ${id}\n  live key  ${live_key}\n  test key  ${test_key}`,
    );
  });
}

type ChangeOptions = OrganizationOptions & { json?: boolean };

function changeOrganizationCommand(id: string, { json, ...options }: ChangeOptions): Promise<void> {
  return withWorld(async (world) => {
    const organization = await changeOrganization(world, id, options);
    await noteCommand(world, organization.id, { command: "organizations set", fields: Object.keys(options) });
    console.log(json ? JSON.stringify({ organization }) : organizationTable([organization]));
  });
}

function sql(query: string, options: { json?: boolean }): Promise<void> {
  return withWorld(async (world) => {
    const answer = await askDatabase(world.db, query);
    console.log(options.json ? answerJson(answer) : answerLines(answer));
  });
}

type PeopleOptions = { organization?: string; json?: boolean };

function invitePersonCommand({ organization, json }: PeopleOptions): Promise<void> {
  return withWorld(async (world) => {
    const org_id = await organizationNamed(world, organization ?? null);
    const link = await makeSetUpLink(world, org_id);
    await noteCommand(world, org_id, { command: "people invite" });
    const text = "Who opens this link becomes owner of the organization and operator. It works once, for 24 hours.";
    console.log(json ? JSON.stringify({ link }) : `${text}\n  ${link}`);
  });
}

function resetPersonCommand(email: string, options: { json?: boolean; secondFactors?: boolean }): Promise<void> {
  return withWorld(async (world) => {
    const made = await makeResetLink(world, email, options.secondFactors ?? false);
    if (!made) throw new Error(`nobody has the address ${email}; \`postern people list\` shows who there is`);
    const text = "With this link the person sets a new password. It works once, for 24 hours.";
    console.log(options.json ? JSON.stringify({ link: made.link }) : `${text}\n  ${made.link}`);
  });
}

function listPeopleCommand(options: { json?: boolean }): Promise<void> {
  return withWorld(async (world) => {
    const { people, text } = await describePeople(world);
    console.log(options.json ? JSON.stringify({ people }) : text);
  });
}

function resume(): Promise<void> {
  return withWorld(async (world) => {
    console.log((await resumeSending(world)) ? "Mail leaves again." : "Sending was not paused.");
  });
}

async function doctor(options: { json?: boolean; trySmtp?: string }): Promise<void> {
  const checks = await examine({ try_smtp: options.trySmtp ?? null });
  const isWell = checks.every(({ status }) => status !== "problem");
  const text = options.json ? JSON.stringify({ ok: isWell, checks }) : printable(checks);
  await new Promise<void>((done) => process.stdout.write(`${text}\n`, () => done()));
  process.exit(isWell ? 0 : 1); // what has not answered in time is not waited for
}

/** As they are: nothing is made, and root stays root. */
function config(options: { json?: boolean }): void {
  const found = findConfig();
  const settings = settingsInForce(found, ownSettings().origins);
  const { unused } = found;
  console.log(options.json ? JSON.stringify({ settings, unused }) : settingLines(settings, unused));
}

function dnsZone(options: { json?: boolean }): Promise<void> {
  return withWorld(async (world) => {
    const { records, text } = await ownZone(world);
    console.log(options.json ? JSON.stringify({ records }) : text);
  });
}

function parseRoles(text: string): Role[] {
  const roles = text.split(",").map((word) => word.trim());
  const unknown = roles.filter((role) => !ROLES.includes(role as Role));
  if (unknown.length > 0)
    throw new InvalidArgumentError(`unknown: ${unknown.join(", ")}; there are ${ROLES.join(", ")}`);
  return roles as Role[];
}

function parseEnvironment(text: string): string {
  if (text !== "live" && text !== "test") throw new InvalidArgumentError("it is live or test");
  return text;
}

const program = new Command("postern")
  .description("Self-hosted e-mail for products")
  .version(ownVersion(), "--version", "print which version this is")
  .option("--env-file <file>", "read settings from this file too, NAME=value one a line; the environment goes first")
  .on("option:env-file", useEnvFile)
  // Help that was asked for is a success; all else that ends a command line before its work is wrong usage.
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : USAGE_STATUS));
program
  .command("start")
  .description("start Postern")
  .option("--roles <roles>", `some of ${ROLES.join(",")}`, parseRoles, [...ROLES])
  .option("--user <user>", "as root: whom to become once the ports are bound; postern, or a number of its own")
  .action(start);
program
  .command("doctor")
  .description("look for what is wrong with this machine and its settings")
  .option("--json", "one JSON object")
  .option("--try-smtp <host>", "a mail server whose port 25 may be called")
  .action(doctor);
program
  .command("config")
  .description("print every setting that is in force and where it came from, without secrets")
  .option("--json", "one JSON object")
  .action(config);
program
  .command("dns")
  .description("the service's own names")
  .command("zone")
  .description("print every DNS record that they need, as a zone file")
  .option("--json", "one JSON object")
  .action(dnsZone);
program
  .command("mail")
  .description("what came for postmaster@, abuse@ and the feedback addresses of this host")
  .argument("[id]", "print this mail as it came; without it the newest are listed")
  .action(operatorMail);
addBackupCommands(program, ownVersion());
addCertificateCommands(program);
addCellCommands(program);
addUpgradeCommand(program);
addSetupCommand(program);
program
  .command("resume")
  .description("send again after a backup was restored: until then its old queue waits")
  .action(resume);
program
  .command("settings")
  .description("settings of an organization: inbound_retention_days, test_keys, warming_auto_start")
  .argument("<name>")
  .argument("<value>", 'the value, or "default"')
  .option("--organization <id>", "its id; without it the first organization")
  .action(changeSettingCommand);
const organizations = program.command("organizations").description("who may use this installation, and how much");
organizations
  .command("list")
  .description("every organization with its state, plan and limits")
  .option("--json", "one JSON object")
  .action(listOrganizationsCommand);
organizations
  .command("create")
  .description("create an organization and print a live and a test key once")
  .requiredOption("--name <name>", "what it is called")
  .option("--plan <plan>", "free, starter, growth, scale or enterprise (the default)")
  .option("--state <state>", "pending_review, active (the default) or suspended")
  .option("--requests-per-second <n>", "its own rate instead of the plan's")
  .option("--monthly-quota <n>", "its own quota of recipients a month instead of the plan's")
  .option("--json", "one JSON object")
  .action(createOrganizationCommand);
organizations
  .command("set")
  .description("change an organization; it counts from the next request on")
  .argument("<id>", "its id: `postern organizations list`")
  .option("--state <state>", "pending_review (live sends 403), active, or suspended (sends 403, queued mail waits)")
  .option("--plan <plan>", "free, starter, growth, scale or enterprise")
  .option("--requests-per-second <n>", 'a rate of its own, or "default"')
  .option("--monthly-quota <n>", 'recipients a month of its own, or "default"')
  .option("--name <name>", "what it is called")
  .option("--json", "one JSON object")
  .action(changeOrganizationCommand);
const people = program.command("people").description("who may sign in to the dashboard");
people
  .command("list")
  .description("everybody, with organizations and roles")
  .option("--json", "one JSON object")
  .action(listPeopleCommand);
people
  .command("invite")
  .description("print a link that makes the first person to use it owner and operator; it works once, within 24 hours")
  .option("--organization <id>", "whose owner; without it the first organization's")
  .option("--json", "one JSON object")
  .action(invitePersonCommand);
people
  .command("reset")
  .description("print a link with which a person sets a new password")
  .argument("<address>", "the person's e-mail address")
  .option("--second-factors", "the authenticator app is lost as well: turn it off")
  .option("--json", "one JSON object")
  .action(resetPersonCommand);
program
  .command("sql")
  .description("ask the database, over every organization's rows; it only reads")
  .argument("<query>", "a select")
  .option("--json", "one JSON object")
  .action(sql);
program
  .command("accept-master-key")
  .description("go on with the present master key after the right one was lost for good")
  .action(acceptMasterKeyCommand);
addMasterKeyCommands(program, withWorld);
program.command("migrate").description("bring the database up to date").action(migrateOnly);
program
  .command("keys")
  .description("API keys")
  .command("create")
  .description("create an API key and print its secret once")
  .requiredOption("--name <name>", "what the key is for")
  .requiredOption("--env <env>", "live or test", parseEnvironment)
  .option("--organization <id>", "whose it is; without it the first organization's")
  .option("--json", "one JSON object")
  .action(createKeyCommand);

/** Commands for this machine; all others talk to a server over its API, and are read in only then. */
const OWN = new Set(program.commands.map((command) => command.name()));

async function run(): Promise<void> {
  for (const command of program.commands) command.helpGroup("On this machine:");
  const [, , name] = process.argv;
  if (name === undefined || !OWN.has(name)) {
    const { addClientCommands, processSurroundings } = await import("../clients/cli/cli.ts");
    addClientCommands(program, processSurroundings());
  }
  await program.parseAsync();
}

run().catch((error) => {
  if (error instanceof CommanderError) return; // said already, and the status is set
  console.error(error instanceof ConfigProblems ? error.message : `postern: ${(error as Error).message}`);
  process.exit(error instanceof UsageError ? USAGE_STATUS : 1);
});
