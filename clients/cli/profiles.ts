// Who the command line is: a key and the address of a Postern under a name, in a file that only its owner reads.
import { chmodSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { CliError, STATUS } from "./exit.ts";
import { makeFolder } from "./folders.ts";

export type Profile = { base_url: string; api_key: string };
export type Profiles = { current: string | null; profiles: Record<string, Profile> };
type Env = Record<string, string | undefined>;

/** `$XDG_CONFIG_HOME/postern/profiles.json`, or below `~/.config`. */
export function profilesFile(env: Env): string {
  return join(env.XDG_CONFIG_HOME || join(homedir(), ".config"), "postern", "profiles.json");
}

export function readProfiles(env: Env): Profiles {
  const file = profilesFile(env);
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { current: null, profiles: {} };
    throw new CliError(`${file} cannot be read: ${(error as Error).message}`, STATUS.failed);
  }
  const refuse = (why: string): never => {
    throw new CliError(`${file} ${why}; repair it, or remove it and log in again`, STATUS.failed);
  };
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    refuse("is not JSON");
  }
  return isProfiles(found) ? found : refuse("does not hold profiles as 'postern login' writes them");
}

function isProfiles(found: unknown): found is Profiles {
  const { current, profiles } = (found ?? {}) as Partial<Profiles>;
  if (current !== null && typeof current !== "string") return false;
  if (typeof profiles !== "object" || profiles === null || Array.isArray(profiles)) return false;
  return Object.values(profiles).every(
    (one: Profile | null) => typeof one?.base_url === "string" && typeof one.api_key === "string",
  );
}

/** Written whole or not at all, mode 0600. */
export function writeProfiles(env: Env, profiles: Profiles): void {
  const file = profilesFile(env);
  makeFolder(dirname(file), 0o700);
  const next = `${file}.new`;
  writeFileSync(next, `${JSON.stringify(profiles, null, 2)}\n`, { mode: 0o600 });
  chmodSync(next, 0o600);
  renameSync(next, file);
}

/** An address that nothing can be asked at is a mistake of the command line. */
export function refuseAddress(url: string): void {
  if (!/^https?:\/\/[^/?#]+[^?#]*$/.test(url) || !URL.canParse(url))
    throw new CliError(
      `'${url}' is not the address of a Postern: it begins with https:// or http:// (--base-url, POSTERN_BASE_URL)`,
    );
}

export type Asked = { profile?: string; baseUrl?: string };
export type Access = Profile & { from: string };

/**
 * A key and the address it belongs to: the profile that `--profile` names, else POSTERN_API_KEY with POSTERN_BASE_URL, else
 * the profile of POSTERN_PROFILE, else the one that `postern use` chose. The two are never of different places: only
 * `--base-url` sends a key to another address.
 */
export function chooseAccess({ profile, baseUrl }: Asked, env: Env): Access {
  if (baseUrl !== undefined) refuseAddress(baseUrl);
  const key = env.POSTERN_API_KEY;
  if (profile === undefined && key) return ofEnvironment(key, baseUrl, env);
  const name = profile ?? (env.POSTERN_PROFILE || readProfiles(env).current);
  const { api_key, base_url } = profileNamed(name, env);
  const other = profile === undefined && baseUrl === undefined ? env.POSTERN_BASE_URL : undefined;
  if (other && bare(other) !== bare(base_url)) {
    throw new CliError(
      `POSTERN_BASE_URL is ${other}, and the key of profile '${name}' is for ${base_url}: unset POSTERN_BASE_URL, or set POSTERN_API_KEY beside it, or say --profile or --base-url`,
    );
  }
  return { api_key, base_url: baseUrl ?? base_url, from: `profile ${name}` };
}

function ofEnvironment(api_key: string, baseUrl: string | undefined, env: Env): Access {
  if (env.POSTERN_PROFILE)
    throw new CliError("POSTERN_API_KEY and POSTERN_PROFILE are both set: keep one of them, or say --profile");
  const base_url = baseUrl ?? env.POSTERN_BASE_URL;
  if (!base_url)
    throw new CliError(
      "POSTERN_API_KEY is set without an address: set POSTERN_BASE_URL too, or say --base-url or --profile",
    );
  refuseAddress(base_url);
  return { api_key, base_url, from: "the environment" };
}

function profileNamed(name: string | null, env: Env): Profile {
  const { profiles } = readProfiles(env);
  const known = Object.keys(profiles).join(", ") || "none";
  const profile = name === null || !Object.hasOwn(profiles, name) ? undefined : profiles[name];
  if (profile) {
    refuseAddress(profile.base_url);
    return profile;
  }
  if (name !== null) {
    throw new CliError(
      `there is no profile '${name}' (there are: ${known}); make it with: postern login --profile ${name}`,
      STATUS.not_found,
    );
  }
  throw new CliError(
    known === "none"
      ? "nobody is logged in: run 'postern login', or set POSTERN_API_KEY and POSTERN_BASE_URL"
      : `no profile is chosen (there are: ${known}): choose one with 'postern use NAME', or say --profile NAME`,
    STATUS.not_allowed,
  );
}

function bare(url: string): string {
  return url.replace(/\/+$/, "");
}

/** The variable that goes before what `postern use` chose; null where none does. */
export function goesBefore(env: Env, name: string): string | null {
  if (env.POSTERN_API_KEY) return "POSTERN_API_KEY";
  return env.POSTERN_PROFILE && env.POSTERN_PROFILE !== name ? "POSTERN_PROFILE" : null;
}
