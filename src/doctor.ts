// `postern doctor`: looks at the machine, the settings and the outside world as Postern would meet them, and says in plain
// sentences what is wrong and what to do. It changes nothing and starts nothing; only into an S3 bucket it puts an object of
// a few bytes, reads it and takes it away. What others see of this installation is looked at in doctor/. Not here: watching a
// running Postern (metrics, docs/operations.md), and the DNS records of customers' domains (POST /v1/domains/{id}/verify).
import { access, constants, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { isTooShort, LONGER_PASSPHRASE, PASSPHRASE_CHARACTERS_MIN } from "./backup/passphrase.ts";
import { ConfigProblems, type FoundConfig, findConfig } from "./config.ts";
import { type Check, ok, problem, skipped, warning } from "./doctor/check.ts";
import { checkBlobs } from "./doctor/check-blobs.ts";
import { checkCertificate, checkWeb } from "./doctor/check-certificate.ts";
import { checkDatabase } from "./doctor/check-database.ts";
import { checkPooler } from "./doctor/check-pooler.ts";
import { checkSignIn } from "./doctor/check-sign-in.ts";
import { checkSpam } from "./doctor/check-spam.ts";
import { counted, printLine } from "./doctor/lines.ts";
import { checkListed } from "./doctor/listed.ts";
import { checkNames } from "./doctor/names.ts";
import { checkWayIn, checkWayOut } from "./doctor/port-25.ts";
import { answersHealth } from "./doctor/running.ts";
import { knownToDatabase, sendingAddresses } from "./doctor/sending-addresses.ts";
import { createClock } from "./platform/clock.ts";
import { createResolver, type Resolver } from "./platform/dns/resolver.ts";
import { bindError } from "./platform/net/free-places.ts";
import { addressOf, type Place, placesOf, portProblem } from "./platform/net/places.ts";
import { fileWords, nearestFolder, whyNoFolderBelow } from "./platform/process/file-words.ts";
import { collectorProblem } from "./platform/process/traces.ts";
import { keyInFile } from "./settings/master-key-file.ts";

export type DoctorOptions = {
  /** A mail server whose port 25 may be tried; without it the way out is not tried. */
  try_smtp: string | null;
};

/** The widths of state and name. */
const COLUMNS: [number, number] = [9, 17];
const OLDEST_NODE = 24;
const FREE_BYTES_MIN = 1024 ** 3;

/** Everything at once; never rejects for what it finds. `read` is where the settings come from. */
export async function examine(options: DoctorOptions, read: () => FoundConfig = findConfig): Promise<Check[]> {
  const node = checkNode(process.versions.node);
  let config: FoundConfig;
  try {
    config = read();
  } catch (error) {
    if (!(error instanceof ConfigProblems)) throw error;
    return [node, ...error.problems.map((text) => problem("settings", text, "Correct it and run this again."))];
  }
  const resolver = createResolver({
    servers: config.dns_servers,
    timeout_ms: 2_000,
    attempts: 2,
    cache_max: 100,
    validating: false,
    now: createClock({}).now,
  });
  const found = await Promise.all([
    checkDataFolder(config),
    checkMasterKey(config),
    checkDatabase(config),
    checkPooler(config),
    checkBlobs(config.s3),
    checkPorts(config),
    checkWeb(config),
    checkCertificate(config),
    checkOutside(config, resolver),
    checkSpam(config, resolver),
    checkSignIn(config),
    checkTraces(config),
    checkWayOut(options.try_smtp, config),
    checkWayIn(config, resolver),
  ]);
  return [node, ...checkSettings(config), ...found.flat()];
}

function checkSettings({ unused, backup }: FoundConfig): Check[] {
  const remedy = "Correct its name, or take it away: docs/settings.md lists the settings, and what belongs together.";
  return [
    ok("settings", "The settings can be read."),
    ...unused.map((name) => warning("settings", `${name} is an unknown setting, or has no effect.`, remedy)),
    ...checkPassphrase(backup),
  ];
}

/** What `postern backup` would refuse is found before the night in which it runs. Public keys go before a passphrase. */
function checkPassphrase({ passphrase, recipients }: FoundConfig["backup"]): Check[] {
  if (passphrase === null || recipients.length > 0 || !isTooShort(passphrase)) return [];
  const says = `POSTERN_BACKUP_PASSPHRASE has fewer than ${PASSPHRASE_CHARACTERS_MIN} characters: no backup is made with it.`;
  const remedy = `For new backups ${LONGER_PASSPHRASE}, or set POSTERN_BACKUP_RECIPIENTS; older backups open with the old one.`;
  return [problem("settings", says, remedy)];
}

/** The lines for people; the last one sums up. */
export function printable(checks: Check[]): string {
  const lines = checks.map((check) => printLine(check, COLUMNS));
  const count = (status: Check["status"]): number => checks.filter((check) => check.status === status).length;
  return [
    ...lines,
    "",
    `${counted(count("problem"), "problem")}, ${counted(count("warning"), "warning")}, ${count("skipped")} skipped`,
  ].join("\n");
}

// The machine --------------------------------------------------------------------------------------------------------

/** Exported for its test. */
export function checkNode(version: string): Check {
  if (Number.parseInt(version, 10) >= OLDEST_NODE) return ok("node", `Node ${version} runs this.`);
  return problem(
    "node",
    `Node ${version} is too old.`,
    `Start Postern with Node ${OLDEST_NODE} or newer: bin/postern finds the one that npm ci installed.`,
  );
}

async function checkDataFolder({ data_dir }: FoundConfig): Promise<Check[]> {
  const name = "data folder";
  const found = await stat(data_dir).catch((error: NodeJS.ErrnoException) => error);
  if (found instanceof Error || !found.isDirectory()) {
    if (found instanceof Error && found.code === "ENOENT") return checkAbsentFolder(data_dir);
    const says = found instanceof Error ? (fileWords(found, data_dir) ?? found.message) : `${data_dir} is not a folder`;
    const remedy = "Make that folder for the user that runs Postern, or set POSTERN_DATA to another one.";
    return [problem(name, `${says}.`, remedy)];
  }
  const { mode, uid } = found;
  const checks: Check[] = [];
  try {
    await access(data_dir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    checks.push(
      problem(
        name,
        `${data_dir} cannot be written by this user.`,
        `chown it to the user that runs Postern, or set POSTERN_DATA.`,
      ),
    );
  }
  if ((mode & 0o022) !== 0) {
    checks.push(
      problem(
        name,
        `${data_dir} can be written by others (mode ${(mode & 0o777).toString(8)}).`,
        `chmod go-w ${data_dir}`,
      ),
    );
  }
  const short = await checkRoom(data_dir, data_dir);
  if (short) checks.push(short);
  if (checks.length > 0) return checks;
  const gib = Math.floor((await roomIn(data_dir)) / 1024 ** 3);
  return [ok(name, `${data_dir} belongs to user ${uid} and has ${gib} GiB free.`)];
}

/** The first start makes the data folder; checks that it can. */
async function checkAbsentFolder(data_dir: string): Promise<Check[]> {
  const name = "data folder";
  const parent = nearestFolder(data_dir);
  const why = whyNoFolderBelow(parent);
  if (why !== null) {
    const remedy = "Set POSTERN_DATA to a folder that the user who runs Postern can write.";
    return [problem(name, `${data_dir} does not exist and cannot be made: ${why}.`, remedy)];
  }
  const remedy = "The first start makes it; if there was one before, set POSTERN_DATA to where it is.";
  const short = await checkRoom(data_dir, parent);
  return [warning(name, `${data_dir} does not exist.`, remedy), ...(short ? [short] : [])];
}

/** `there`: the data folder, or the one in which it will be made. */
async function checkRoom(data_dir: string, there: string): Promise<Check | null> {
  const free = await roomIn(there);
  if (free >= FREE_BYTES_MIN) return null;
  const remedy = "Make room: mail is refused with 503 and 452 before the disk is full.";
  return problem("data folder", `${data_dir} has ${Math.floor(free / 1024 ** 2)} MiB free.`, remedy);
}

async function roomIn(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

async function checkMasterKey({ data_dir, master_key }: FoundConfig): Promise<Check> {
  const name = "master key";
  const path = join(data_dir, "master.key");
  const found = await stat(path).catch(() => null);
  if (master_key === null) return skipped(name, "There is none yet; the first start makes it.");
  if (!found) return ok(name, "The master key comes from POSTERN_MASTER_KEY.");
  if (isOtherKey(path, master_key)) {
    const says = `${path} holds another key than POSTERN_MASTER_KEY, which goes before it: a start without that would take this one.`;
    return warning(name, says, `Keep a copy of the key in POSTERN_MASTER_KEY; then remove ${path}.`);
  }
  if ((found.mode & 0o077) !== 0) {
    return problem(
      name,
      `${path} can be read by others: with it and the database every secret can be read.`,
      `chmod 600 ${path}`,
    );
  }
  return ok(name, `${path} is readable by its owner only. Keep a copy apart from the database's backup.`);
}

/** The file is there: an earlier start or a restore made it, say, before the variable was set. */
function isOtherKey(path: string, key: Buffer): boolean {
  try {
    return !keyInFile(path).equals(key);
  } catch {
    return false;
  }
}

async function checkPorts(config: FoundConfig): Promise<Check[]> {
  const isOurs = await answersHealth(config.internal);
  return Promise.all(placesOf(config).map((place) => checkPort(place, isOurs)));
}

async function checkPort(place: Place, isOurs: boolean): Promise<Check> {
  const name = "port";
  const where = `${addressOf(place)} (${place.variable})`;
  const error = place.port === 0 ? null : await bindError(place.host, place.port);
  if (error === null) return ok(name, `${where} is free.`);
  if (error === "EADDRINUSE" && isOurs) return ok(name, `${where} is in use; a Postern is running here.`);
  const { says, remedy } = portProblem(place, error);
  return problem(name, says, remedy);
}

/** No mail waits for a collector. */
async function checkTraces({ traces }: FoundConfig): Promise<Check[]> {
  if (traces === null) return [];
  const name = "traces";
  const shown = traces.url.replace(/\/\/[^/]*@/, "//…@");
  const why = await collectorProblem(traces);
  if (why === null) return [ok(name, `The collector at ${shown} takes traces.`)];
  const remedy =
    "OTEL_EXPORTER_OTLP_ENDPOINT must be its OTLP port for HTTP (4318), and _HEADERS what it asks for. Mail goes on.";
  return [warning(name, `The collector at ${shown} takes no traces: ${why}.`, remedy)];
}

// The outside world --------------------------------------------------------------------------------------------------

/** What others see: our names, and whether our addresses are on block lists. */
async function checkOutside(config: FoundConfig, resolver: Resolver): Promise<Check[]> {
  const known = await knownToDatabase(config);
  const addresses = await sendingAddresses(config, resolver, known.pools);
  const found = await Promise.all([
    checkNames(config, resolver, { ...known, addresses }),
    checkListed(config, resolver, addresses),
  ]);
  return found.flat();
}
