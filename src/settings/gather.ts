// Where settings come from: the environment, a file of settings (--env-file), files that hold one secret each, and systemd's
// credentials. Remembers the origin of each. Not here: what a value means, and whether it is right (../config.ts).
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";

/** Backups that were made with one of several lines must still open. */
const PASSPHRASE = "POSTERN_BACKUP_PASSPHRASE";

/** Secrets, or what may hold a password. Each may also be in a file: `<name>_FILE`, or a credential of this name. */
export const SECRETS = [
  "DATABASE_URL",
  "POSTERN_DATABASE_POOLER",
  "POSTERN_MASTER_KEY",
  "POSTERN_S3_ACCESS_KEY",
  "POSTERN_S3_SECRET_KEY",
  "POSTERN_RSPAMD_URL",
  PASSPHRASE,
  "POSTERN_BACKUP_S3_ACCESS_KEY",
  "POSTERN_BACKUP_S3_SECRET_KEY",
  "POSTERN_OIDC_CLIENT_SECRET",
  "OTEL_EXPORTER_OTLP_HEADERS",
  "POSTERN_BOOTSTRAP_LIVE_KEY",
  "POSTERN_BOOTSTRAP_TEST_KEY",
];

/** The variable that names a file of settings, as `--env-file` does. */
export const ENV_FILE = "POSTERN_ENV_FILE";

export type Origin = {
  source: "environment" | "env_file" | "file" | "credential";
  /** The file that holds the value; null for the environment itself. */
  path: string | null;
};

export type Gathered = { env: NodeJS.ProcessEnv; origins: Map<string, Origin>; problems: string[] };

const SECRET_BYTES_MAX = 64 * 1024;

/**
 * All settings under their own names, as if the environment held each. For one name the order is: the environment, the file
 * that `<name>_FILE` names, the credential, the file of settings. Two of the environment for one name are a problem.
 */
export function gatherSettings(given: NodeJS.ProcessEnv): Gathered {
  const gathered: Gathered = { env: { ...given }, origins: new Map(), problems: [] };
  for (const name of Object.keys(given)) {
    if (given[name]) gathered.origins.set(name, { source: "environment", path: null });
  }
  const filed = readEnvFile(given[ENV_FILE], gathered.problems);
  delete gathered.env[ENV_FILE];
  for (const name of SECRETS) takeSecret(gathered, name, given);
  for (const name of SECRETS) takeSecret(gathered, name, filed);
  for (const [name, value] of Object.entries(filed)) {
    take(gathered, name, value, { source: "env_file", path: given[ENV_FILE] ?? null });
  }
  return gathered;
}

/** Why `--env-file` cannot be followed, in a sentence; null where it can. `mayBeAbsent`: the command makes it. */
export function envFileProblem(path: string, { mayBeAbsent }: { mayBeAbsent: boolean }): string | null {
  if (path === "") return "--env-file takes the name of a file.";
  let problem: string | null = null;
  readFile(path, (why) => {
    if (why !== ABSENT || !mayBeAbsent) problem = `--env-file names ${path}, which ${why}.`;
  });
  return problem;
}

/** Sets what nothing before it has set. */
function take({ env, origins }: Gathered, name: string, value: string | undefined, origin: Origin): void {
  if (!value || env[name]) return;
  env[name] = value;
  origins.set(name, origin);
}

/** From the file that `from` names for this secret, else from the credential of its name. */
function takeSecret(gathered: Gathered, name: string, from: NodeJS.ProcessEnv): void {
  const variable = `${name}_FILE`;
  const path = from[variable];
  delete gathered.env[variable];
  delete from[variable];
  if (path && from[name]) {
    gathered.problems.push(`${name} and ${variable} are both set; keep one of them.`);
  } else if (path) {
    take(gathered, name, readSecret(path, variable, gathered.problems), { source: "file", path });
  }
  const folder = gathered.env.CREDENTIALS_DIRECTORY;
  if (!folder || gathered.env[name]) return;
  const credential = join(folder, name);
  const value = readIfThere(credential, name, gathered.problems);
  take(gathered, name, value, { source: "credential", path: credential });
}

function readSecret(path: string, variable: string, problems: string[]): string | undefined {
  const refuse = (why: string) => problems.push(`${variable} names ${path}, which ${why}.`);
  return readOneLine(path, variable === `${PASSPHRASE}_FILE`, refuse) || undefined;
}

/** systemd gives only the credentials that its unit asks for. */
function readIfThere(path: string, name: string, problems: string[]): string | undefined {
  // Once, although it is looked for again beside the file of settings.
  const refuse = (why: string) => {
    const problem = `${name}: the credential ${path} ${why}.`;
    if (why !== ABSENT && !problems.includes(problem)) problems.push(problem);
  };
  // An empty one is not as if there were none: a master key would be made in its place.
  return readOneLine(path, name === PASSPHRASE, refuse);
}

/** A second line is another secret, a comment or a slip: no key, password or address has one. */
function readOneLine(path: string, mayHaveMore: boolean, refuse: (why: string) => void): string | undefined {
  const text = readFile(path, refuse);
  if (text === "") refuse("is empty");
  if (mayHaveMore || !/[\r\n]/.test(text ?? "")) return text;
  refuse("has more than one line; leave the secret alone in it");
  return undefined;
}

const ABSENT = "does not exist";
const WHY_UNREAD: Record<string, string> = { ENOENT: ABSENT, ENOTDIR: ABSENT, EISDIR: "is a folder" };

/** Without the line break at its end, which editors and `echo` put there. */
function readFile(path: string, refuse: (why: string) => void): string | undefined {
  try {
    const bytes = readFileSync(path);
    if (bytes.length > SECRET_BYTES_MAX) refuse(`has more than ${SECRET_BYTES_MAX / 1024} KiB`);
    else return bytes.toString("utf8").replace(/[\r\n]+$/, "");
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    refuse(WHY_UNREAD[code] ?? "cannot be read by this user");
  }
  return undefined;
}

/** `NAME=value`, one a line, as of systemd's EnvironmentFile and of Compose. A line of another shape is a problem. */
function readEnvFile(path: string | undefined, problems: string[]): NodeJS.ProcessEnv {
  if (!path) return {};
  // Editors of Windows put a mark of the encoding first, which `parseEnv` would take for a part of the first name.
  const text = readFile(path, (why) => problems.push(`--env-file names ${path}, which ${why}.`))?.replace(
    /^\uFEFF/,
    "",
  );
  if (text === undefined) return {};
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const wrong = wrongIn(line);
    if (wrong !== null) problems.push(`${path}, line ${index + 1}: ${wrong}.`);
  }
  return { ...parseEnv(text) };
}

/** Where a name or value begins or ends: what looks like a space or an end of line, and is a part of the word to `parseEnv`. */
const ODD_SPACE = /\r|^[^=#]*[^\S \t]|^[^=#]*=[ \t]*[^\S \t]|^[^#]*[^\S \t][ \t]*(#|$)/;

/** What `parseEnv` would read otherwise than it is meant: it ends a value at any #, and goes on over lines to the next quote. */
function wrongIn(line: string): string | null {
  if (ODD_SPACE.test(line)) return "a space in it is no usual one (U+0020), or an end of line; write the line again";
  if (/^\s*(#.*)?$/.test(line)) return null;
  const [, given] = /^\s*(?:export\s+)?[A-Za-z_][A-Za-z0-9_]*\s*=\s*(.*)$/s.exec(line) ?? [];
  if (given === undefined) return "write NAME=value, or # before a comment";
  const quote = /^["'`]/.exec(given)?.[0];
  if (quote === undefined) {
    return /\S#/.test(given.replace(/\s#.*$/s, "")) || given.startsWith("#")
      ? "put quotes around a value that holds a #"
      : null;
  }
  const end = given.indexOf(quote, 1);
  if (end === -1) return `the value begins with ${quote}, which must end it on the same line`;
  return /^\s*(#.*)?$/s.test(given.slice(end + 1))
    ? null
    : `remove what stands behind the ${quote} that ends the value`;
}
