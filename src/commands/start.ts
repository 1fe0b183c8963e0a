// `postern start`: opens the World, starts the roles, and ends them in good order at SIGTERM.
import { isatty } from "node:tty";
import type { Command } from "commander";
import { InvalidArgumentError } from "commander";
import { bootstrap, organizationNamed, showFirstKeys } from "../accounts/accounts.ts";
import { type Running, startRoles } from "../app.ts";
import { type Config, findConfig, printableConfig, ROLES, type Role, readConfig } from "../config.ts";
import { missingPages } from "../dashboard/dashboard.ts";
import { plainHttp } from "../doctor/check-certificate.ts";
import { warnOfRole } from "../doctor/check-database.ts";
import { isLocal } from "../doctor/local.ts";
import { databaseId } from "../outbound/outbound.ts";
import { firstSetUpLink, showSetUpLink } from "../people/people.ts";
import { neededPlaces, refuseTakenPlaces } from "../platform/net/free-places.ts";
import { holdPlaces } from "../platform/net/held-places.ts";
import { placesOf } from "../platform/net/places.ts";
import { refuseUnusableFiles } from "../platform/net/server-tls.ts";
import { leaveRoot } from "../platform/process/leave-root.ts";
import { ignoreLostOutput } from "../platform/process/output-problem.ts";
import { trimMemory } from "../platform/process/trim-memory.ts";
import { tuneV8 } from "../platform/process/tune-v8.ts";
import { noteDatabase, refuseEmptyDatabase } from "../platform/storage/data-folder.ts";
import { judgeMasterKey, keepMasterKey } from "../platform/storage/master-key.ts";
import type { World } from "../platform/world.ts";
import { isFresh } from "../setup/sealed-columns.ts";
import { type Opened, openWorld } from "../world.ts";
import { explained } from "./with-world.ts";

const STOP_WITHIN_MS = 60_000;
const PARENT_LOOK_MS = 1_000;
const [STDIN, STDOUT] = [0, 1];
const HANG_UP =
  "SIGHUP changes nothing: files of certificates are read again within 30 s of a change, settings when Postern starts.";

/** Puts the command into the program. */
export function addStartCommand(program: Command): void {
  program
    .command("start")
    .description("start Postern")
    .option(
      "--roles <roles>",
      `the roles to run, separated by commas: ${ROLES.join(",")}; without it all of them`,
      parseRoles,
    )
    .option(
      "--user <user>",
      "started by root: the user to become once the ports are bound; without it postern, or a number of its own",
    )
    .action(start);
}

function parseRoles(text: string): Role[] {
  const roles = text.split(",").map((word) => word.trim());
  const unknown = roles.filter((role) => !ROLES.includes(role as Role));
  if (unknown.length > 0)
    throw new InvalidArgumentError(
      text.trim() === ""
        ? `none is named; there are ${ROLES.join(", ")}`
        : `unknown: ${unknown.join(", ")}; there are ${ROLES.join(", ")}`,
    );
  return roles as Role[];
}

async function start(options: { roles?: Role[]; user?: string }): Promise<void> {
  const { roles = [...ROLES] } = options;
  tuneV8();
  ignoreLostOutput();
  const found = findConfig();
  const signal = watchSignals(found);
  refuseUnusableFiles(found, roles);
  await refuseTakenPlaces(found, roles);
  const places = neededPlaces(found, roles);
  const exposed = placesOf(found).some(({ host }) => !isLocal(host));
  const named = options.user ?? null;
  const left = await leaveRoot(found, { named, exposed, hold: () => holdPlaces(places) });
  const config = readConfig();
  const opened = await explained(config, openWorld(config, undefined, left.held));
  if (left.warning)
    opened.world.log.warn({ why: left.warning }, "Postern stays root, as it listens on this machine only");
  if (signal.asked()) return signal.stopBy(() => stopAll(opened, null));
  const running = await explained(config, startIn(opened, config, roles)).catch(async (error) => {
    await opened.close();
    throw error;
  });
  signal.stopBy(() => stopAll(opened, running));
  if (signal.asked()) return;
  trimMemory();
  const where = running.address ? ` on ${running.address}` : "";
  console.log(`Postern is ready: ${roles.join(", ")}${where} (metrics on ${running.internal})`);
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

async function startIn({ world }: Opened, config: Config, roles: Role[]): Promise<Running> {
  world.log.info(printableConfig(config), "configuration");
  if (config.unused.length > 0)
    world.log.warn({ unused: config.unused }, "unknown settings, or settings without effect");
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
  // At a terminal it says that this was closed; else somebody wants settings to be read again.
  const isAtTerminal = isatty(STDIN) || isatty(STDOUT);
  process.on("SIGHUP", () => (isAtTerminal ? handle() : console.log(HANG_UP)));
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
