// `postern setup`: asks what it has to know, or takes it from options, and prints what became of each step.
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { parseEnv } from "node:util";
import type { Command } from "commander";
import { ConfigProblems, type FoundConfig, findConfig } from "../config.ts";
import { printLine } from "../doctor/lines.ts";
import { isLocal } from "../doctor/local.ts";
import { machineAddresses } from "../doctor/sending-addresses.ts";
import { becomeOwner } from "../platform/process/leave-root.ts";
import { createLog } from "../platform/process/log.ts";
import { UsageError } from "../platform/process/usage-error.ts";
import { ENV_FILE } from "../settings/gather.ts";
import type { Settings } from "../setup/env-file.ts";
import { type SetUpResult, setUp, type Teller } from "../setup/setup.ts";

type Options = {
  host?: string;
  addresses?: string;
  dns?: string;
  database?: string;
  notices?: string;
  data?: string;
  listen?: string;
  acme?: string;
  yes?: boolean;
  json?: boolean;
  wait: boolean;
  waitMinutes: string;
};

const DEFAULT_FILE = "postern.env";
/** Where the Debian package has its settings. */
const SYSTEM_FILE = "/etc/postern/postern.env";
const MINUTE_MS = 60_000;
const PORTS = { POSTERN_MX: 25, POSTERN_SUBMISSION: 587, POSTERN_SUBMISSIONS: 465, POSTERN_HTTPS: 443 };

/** Where a zone file is taken in, for providers that do. */
const PROVIDERS = new Map([
  ["by-hand", "Publish these records where the DNS of your domain is kept:"],
  ["cloudflare", "At Cloudflare: DNS, Records, Import and Export, Import. Then set every record to «DNS only»:"],
  ["route53", "At Route 53: the hosted zone, Import zone file:"],
]);

const PROVIDER_NAMES = [...PROVIDERS.keys()].join(", ");
/** Answers that leave `DATABASE_URL` as it is. */
const KEPT_DATABASES = ["embedded", "as it is"];
/** The exit status of a program that Ctrl-C ended. */
const INTERRUPTED_STATUS = 130;

/** Puts the command into the program. */
export function addSetupCommand(program: Command): void {
  program
    .command("setup")
    .description("set up this installation step by step; run again, it changes only what is not right yet")
    .option("--host <name>", "the host name, such as mail.example.eu")
    .option("--addresses <list>", "the addresses that others see, separated by commas")
    .option("--dns <provider>", `who publishes the DNS records: ${PROVIDER_NAMES}`)
    .option("--database <url>", "embedded, or the URL of a PostgreSQL of your own")
    .option("--notices <address>", "your address: the first mail goes there, and the ACME server writes there")
    .option("--data <folder>", "the data folder")
    .option("--listen <address>", "the address to listen on; all of them without it")
    .option("--acme <how>", "on (Let's Encrypt, whose terms you agree to), off, or the address of a directory")
    .option("--no-wait", "do not wait until the records are in DNS")
    .option("--wait-minutes <n>", "how long to wait for them", "60")
    .option("--yes", "ask nothing: use the options, what is set already, and defaults")
    .option("--json", "one JSON object; implies --yes")
    .action(setupCommand);
}

async function setupCommand(options: Options): Promise<void> {
  const env_file = resolve(process.env[ENV_FILE] ?? DEFAULT_FILE);
  const isQuiet = options.json === true;
  const known = existing(env_file);
  const standing = valuesIn(env_file);
  const asks = options.yes !== true && !isQuiet && process.stdin.isTTY;
  const answers = asks ? await askAll(options, known, standing) : options;
  const settings = settingsFrom(answers, known, standing);
  refuseWrong(settings, env_file);
  const provider = answers.dns ?? "by-hand";
  const hint = PROVIDERS.get(provider);
  if (!hint) throw new UsageError(`--dns is one of ${PROVIDER_NAMES}`);
  const result = await setUp({
    env_file,
    env: process.env,
    settings,
    notices: answers.notices || standing("POSTERN_ACME_EMAIL") || null,
    wait_ms: minutes(options.waitMinutes) * (options.wait ? MINUTE_MS : 0),
    is_terminal: !isQuiet && process.stdout.isTTY,
    prepare: becomeOwner,
    // The steps say what goes wrong.
    log: () => createLog({ level: "fatal", role: "postern" }),
    tell: {
      step: isQuiet ? () => undefined : (step) => console.log(printLine(step, COLUMNS)),
      records: (zone) => showRecords(zone, { hint, isQuiet, waits: options.wait }),
      secrets: isQuiet ? () => undefined : (text) => console.log(indented(text)),
    },
  });
  if (isQuiet) console.log(JSON.stringify({ env_file, ...result }));
  else print(env_file, result);
  process.exitCode = result.ok ? 0 : 1;
}

/** What is set already, in the file or in the environment; null where that cannot be read. */
function existing(envFile: string): FoundConfig | null {
  try {
    return findConfig({ ...process.env, ...(existsSync(envFile) ? { [ENV_FILE]: envFile } : {}) });
  } catch (error) {
    if (error instanceof ConfigProblems) return null;
    throw error;
  }
}

/** What was answered wrongly is not written into the file. */
function refuseWrong(settings: Settings, envFile: string): void {
  try {
    findConfig({ ...settings, ...process.env, ...(existsSync(envFile) ? { [ENV_FILE]: envFile } : {}) });
  } catch (error) {
    if (!(error instanceof ConfigProblems)) throw error;
    const names = Object.keys(settings);
    const own = error.problems.filter((problem) => names.some((name) => isAbout(problem, name)));
    if (own.length > 0) throw new UsageError(`${own.join(" ")} Nothing was written.`);
  }
}

function isAbout(problem: string, name: string): boolean {
  return problem.startsWith(`${name} `) || problem.startsWith(`${name}:`);
}

/** What is wrong with one setting, whatever the others are; null: nothing. */
function wrongIn(name: string, value: string): string | null {
  try {
    findConfig({ POSTERN_HOSTNAME: "mail.example.eu", [name]: value });
  } catch (error) {
    if (!(error instanceof ConfigProblems)) throw error;
    return error.problems.find((problem) => isAbout(problem, name)) ?? null;
  }
  return null;
}

function minutes(text: string): number {
  const value = Number(text);
  if (Number.isFinite(value) && value >= 0 && value <= 10_080) return value;
  throw new UsageError("--wait-minutes is a number of minutes, at most 10080");
}

// Answers -------------------------------------------------------------------------------------------------------------

type Question = { given: string | undefined; text: string; preset: string; wrong(answer: string): string | null };

/** What was not given by an option is asked for; an empty line takes what stands in brackets, a wrong one is asked again. */
async function askAll(options: Options, known: FoundConfig | null, standing: Standing): Promise<Options> {
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  const ask = async ({ given, text, preset, wrong }: Question): Promise<string> => {
    if (given !== undefined) return given;
    for (;;) {
      const answer = (await lines.question(`${text}${preset === "" ? "" : ` [${preset}]`}: `)).trim() || preset;
      const why = answer === preset && preset !== "" ? null : wrong(answer);
      if (why === null) return answer;
      console.log(why);
    }
  };
  const setting = (name: string) => (value: string) => wrongIn(name, value);
  const { host, addresses, database, notices, acme, dns } = questionsOf(options, known, standing, setting);
  try {
    return {
      ...options,
      host: await ask(host),
      addresses: await ask(addresses),
      database: await ask(database),
      notices: await ask(notices),
      acme: await ask(acme),
      dns: await ask(dns),
    };
  } catch (error) {
    if ((error as Error).name !== "AbortError") throw error;
    console.error("\nNothing was written.");
    process.exit(INTERRUPTED_STATUS);
  } finally {
    lines.close();
  }
}

function questionsOf(
  options: Options,
  known: FoundConfig | null,
  standing: Standing,
  setting: (name: string) => Question["wrong"],
) {
  const question = (given: string | undefined, text: string, preset: string, wrong: Question["wrong"]): Question => ({
    ...{ given, text, preset, wrong },
  });
  const hostname = known && !isLocal(known.hostname) ? known.hostname : "";
  const databaseNow = known?.database_url ? "as it is" : "embedded";
  const isOneOf = (answer: string) => (PROVIDERS.has(answer) ? null : `Write one of ${PROVIDER_NAMES}.`);
  const acmeText = "Certificates from Let's Encrypt, to whose terms you agree: on or off";
  return {
    host: question(options.host, "Host name of this machine in DNS", hostname, (answer) =>
      answer === "" ? "It is needed, such as mail.example.eu." : wrongIn("POSTERN_HOSTNAME", answer),
    ),
    addresses: question(
      ...([options.addresses, "Addresses that others see", presetAddresses(known)] as const),
      setting("POSTERN_PUBLIC_ADDRESSES"),
    ),
    database: question(options.database, "PostgreSQL: embedded, or its URL", databaseNow, (answer) =>
      KEPT_DATABASES.includes(answer) ? null : wrongIn("DATABASE_URL", answer),
    ),
    notices: question(
      ...([options.notices, "Your address, for the first mail", standing("POSTERN_ACME_EMAIL")] as const),
      setting("POSTERN_ACME_EMAIL"),
    ),
    acme: question(options.acme, acmeText, acmeNow(standing), setting("POSTERN_ACME")),
    dns: question(options.dns, `DNS: ${PROVIDER_NAMES}`, "by-hand", isOneOf),
  };
}

/** What stands there is kept; a new installation gets certificates. */
function acmeNow(standing: Standing): string {
  return standing("POSTERN_ACME") || "on";
}

function presetAddresses(known: Pick<FoundConfig, "public_addresses"> | null): string {
  const set = known?.public_addresses ?? [];
  return (set.length > 0 ? set : machineAddresses()).join(",");
}

/** The settings to write: what an option says, and what is not set yet. Exported for its test. */
export function settingsFrom(
  options: Partial<Options>,
  known: Pick<FoundConfig, "hostname" | "public_addresses" | "tls_cert_file"> | null,
  standing: Standing,
): Settings {
  const { host, notices } = options;
  const hostname = host || (known && !isLocal(known.hostname) ? known.hostname : "");
  if (hostname === "")
    throw new UsageError("--host is needed: the name of this machine in DNS, such as mail.example.eu");
  const addresses = options.addresses ?? presetAddresses(known);
  const settings: Settings = {};
  const set = (name: string, value: string, given: boolean): void => {
    if (value !== "" && (given || standing(name) === "")) settings[name] = value;
  };
  set("POSTERN_DATA", resolve(options.data ?? "data"), options.data !== undefined);
  set("POSTERN_HOSTNAME", hostname, host !== undefined);
  set("POSTERN_PUBLIC_ADDRESSES", addresses, options.addresses !== undefined);
  const at = options.listen === undefined ? everywhere() : bracketed(options.listen);
  // Without a certificate a proxy has HTTPS.
  const acme = options.acme ?? acmeNow(standing);
  const isBehindProxy = acme === "off" && !known?.tls_cert_file;
  if (isBehindProxy) set("POSTERN_BASE_URL", `https://${hostname}`, false);
  const ports = Object.entries(PORTS).filter(([name]) => !(isBehindProxy && name === "POSTERN_HTTPS"));
  for (const [name, port] of ports) set(name, `${at}:${port}`, options.listen !== undefined);
  const { database = "as it is" } = options;
  if (!KEPT_DATABASES.includes(database)) set("DATABASE_URL", database, true);
  // Also without ACME: the first mail of a later run goes there.
  set("POSTERN_ACME_EMAIL", notices ?? "", notices !== undefined);
  if (!known?.tls_cert_file) {
    set("POSTERN_ACME", acme, options.acme !== undefined);
    if (!isBehindProxy) set("POSTERN_ACME_HTTP", `${at}:80`, options.listen !== undefined);
  }
  return settings;
}

/** A setting of the environment or of the file as it stands there; empty: not set. */
type Standing = (name: string) => string;

function valuesIn(envFile: string): Standing {
  const filed = existsSync(envFile) ? parseEnv(readFileSync(envFile, "utf8")) : {};
  return (name) => process.env[name] || filed[name] || "";
}

function everywhere(): string {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return all.some(({ family, internal }) => family === "IPv6" && !internal) ? "[::]" : "0.0.0.0";
}

/** An address as it is written before a port: IPv6 in brackets. */
function bracketed(listen: string): string {
  const address = listen.replace(/^\[(.*)\]$/, "$1");
  const family = isIP(address);
  if (family === 0 && address !== "localhost")
    throw new UsageError("--listen is an address of this machine, such as 0.0.0.0 or ::");
  return family === 6 ? `[${address}]` : address;
}

// Words ---------------------------------------------------------------------------------------------------------------

/** The widths of the state and of the step. */
const COLUMNS: [number, number] = [11, 14];
/** The same for the doctor's findings, below the last step. */
const FOUND_COLUMNS: [number, number] = [11, 17];

function indented(text: string): string {
  return text.replace(/^/gm, " ".repeat(COLUMNS[0]));
}

type Zone = Parameters<Teller["records"]>[0];

/** As text for people; always as a file too, for the person who publishes them. */
function showRecords(
  { text, file }: Zone,
  { hint, isQuiet, waits }: { hint: string; isQuiet: boolean; waits: boolean },
): void {
  // Whoever reads it finds all of it or none.
  const draft = `${file}.new`;
  rmSync(draft, { force: true });
  writeFileSync(draft, `${text}\n`, { mode: 0o644, flag: "wx" });
  renameSync(draft, file);
  if (isQuiet) return;
  console.log(
    `\n${hint}\n\n${text}\n\nThey are in ${file} as well.${waits ? " Waiting until they are in DNS (Ctrl-C ends it; run this again at any time) …" : ""}\n`,
  );
}

function print(env_file: string, result: SetUpResult): void {
  const isDone = result.steps.at(-1)?.name === "doctor";
  const problems = isDone ? result.checks.filter(({ status }) => status === "problem") : [];
  for (const check of problems) console.log(printLine(check, FOUND_COLUMNS));
  const start =
    env_file === SYSTEM_FILE ? "systemctl enable --now postern" : `bin/postern start --env-file ${env_file}`;
  const mend = "Not all is well yet. Mend what is named above, and run postern setup again: what is right stays.";
  console.log(
    `\n${result.ok ? "All is well." : mend}${isDone ? `\nStart Postern, or restart it after a change: ${start}` : ""}`,
  );
}
