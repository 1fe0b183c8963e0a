// Who the command line is: a key and the address of a Postern under a name, in a file that only its owner reads.
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { CliError, STATUS } from "./exit.ts";

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
  try {
    return JSON.parse(text) as Profiles;
  } catch {
    throw new CliError(`${file} is no JSON; repair it, or remove it and log in again`, STATUS.failed);
  }
}

/** Written whole or not at all, mode 0600. */
export function writeProfiles(env: Env, profiles: Profiles): void {
  const file = profilesFile(env);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const next = `${file}.new`;
  writeFileSync(next, `${JSON.stringify(profiles, null, 2)}\n`, { mode: 0o600 });
  chmodSync(next, 0o600);
  renameSync(next, file);
}

/** An address that nothing can be asked at is a mistake of the command line. */
export function refuseAddress(url: string): void {
  if (!/^https?:\/\/[^/?#]+[^?#]*$/.test(url) || !URL.canParse(url))
    throw new CliError(
      `'${url}' is no address of a Postern: it begins with https:// or http:// (--base-url, POSTERN_BASE_URL)`,
    );
}

export type Asked = { profile?: string; apiKey?: string; baseUrl?: string };

/** From the command line, then the environment, then the profile. */
export function chooseAccess(asked: Asked, env: Env): Profile & { from: string } {
  const key = asked.apiKey ?? env.POSTERN_API_KEY;
  const url = asked.baseUrl ?? env.POSTERN_BASE_URL;
  if (url) refuseAddress(url);
  if (asked.profile === undefined && key && url) return { api_key: key, base_url: url, from: "the environment" };
  const { current, profiles } = readProfiles(env);
  const name = asked.profile ?? env.POSTERN_PROFILE ?? current;
  const profile = name === null ? undefined : profiles[name];
  if (name !== null && !profile) {
    const known = Object.keys(profiles).join(", ") || "none";
    throw new CliError(
      `there is no profile '${name}' (there are: ${known}); make it with: postern login --profile ${name}`,
      STATUS.not_found,
    );
  }
  const access = { api_key: key ?? profile?.api_key, base_url: url ?? profile?.base_url };
  if (!access.api_key || !access.base_url) {
    throw new CliError(
      "nobody is logged in: run 'postern login', or set POSTERN_API_KEY and POSTERN_BASE_URL",
      STATUS.not_allowed,
    );
  }
  refuseAddress(access.base_url);
  return { api_key: access.api_key, base_url: access.base_url, from: `profile ${name}` };
}
