// login, logout, whoami, use, open: who the command line is, and where.
import { createInterface } from "node:readline";
import type { Command } from "commander";
import { Postern } from "../../node/src/postern.ts";
import { openInBrowser } from "../browser.ts";
import { CliError, Interrupted, STATUS } from "../exit.ts";
import { recordOf } from "../output.ts";
import { goesBefore, profilesFile, readProfiles, refuseAddress, writeProfiles } from "../profiles.ts";
import { acting, readInput, type Session, type Surroundings, withGlobals } from "../session.ts";

type LoginOptions = { profile?: string; baseUrl?: string; keyStdin?: boolean };

export function addLogin(program: Command, around: Surroundings): void {
  withGlobals(program.command("login"))
    .description("check a key and keep it under a name, in a file that only you can read")
    .option("--key-stdin", "read the key from standard input")
    .action(acting(around, login));
  withGlobals(program.command("logout")).description("forget the key of a profile").action(acting(around, logout));
  withGlobals(program.command("whoami"))
    .description("which organization, environment and key this is")
    .action(acting(around, whoami));
  withGlobals(program.command("use"))
    .description("choose the profile that commands are run as")
    .argument("<profile>")
    .action(acting(around, use));
  withGlobals(program.command("open"))
    .description("open the dashboard in a browser")
    .action(acting(around, openDashboard));
}

async function login(session: Session, { profile = "default", baseUrl, keyStdin }: LoginOptions): Promise<void> {
  const { out, env } = session;
  const base_url =
    baseUrl ??
    (env.POSTERN_BASE_URL || undefined) ??
    (keyStdin ? undefined : await ask(session, "Where is your Postern (https://…)? "));
  if (!base_url) throw new CliError("say where your Postern is: --base-url https://…, or POSTERN_BASE_URL");
  refuseAddress(base_url);
  const typed = keyStdin
    ? (await readInput(session)).toString()
    : await ask(session, `API key for ${base_url}: `, true);
  const api_key = typed.trim();
  if (api_key === "") throw new CliError("no key was given; nothing was kept");
  const me = await new Postern({ apiKey: api_key, baseUrl: base_url }).me.get();
  const profiles = readProfiles(env);
  profiles.profiles[profile] = { base_url, api_key };
  writeProfiles(env, { ...profiles, current: profile });
  if (out.isJson) return void out.data({ profile, base_url, ...me });
  out.line(`Logged in to ${base_url} as ${me.organization.name}, with the ${me.environment} key "${me.key.name}".`);
  out.say(`The key is kept as profile "${profile}" in ${profilesFile(env)}. ${whoActs(session, profile)}`);
}

/** Says who acts by the profile that was just chosen. */
function whoActs({ env }: Session, name: string): string {
  const variable = goesBefore(env, name);
  return variable === null
    ? `Commands are run as "${name}" now.`
    : `${variable} is set and goes before the profile: unset it, or say --profile ${name}.`;
}

/** A line from the terminal; a secret is not shown. */
async function ask({ stdin, stderr }: Session, question: string, isSecret = false): Promise<string> {
  if (stdin.isTTY !== true) throw new CliError("there is no terminal to ask at: use --base-url and --key-stdin");
  const lines = createInterface({ input: stdin as never, output: stderr as never, terminal: true });
  const shown = lines as unknown as { _writeToOutput?: (text: string) => void };
  if (isSecret) shown._writeToOutput = (text) => void (text.includes(question) && stderr.write(question));
  try {
    return await new Promise<string>((resolve, reject) => {
      lines.once("SIGINT", () => reject(new Interrupted()));
      lines.once("close", () => reject(new CliError("nothing was typed; nothing was kept")));
      lines.question(question, resolve);
    });
  } finally {
    lines.close();
    if (isSecret) stderr.write("\n");
  }
}

/** No other profile takes the place of the one that is forgotten: it may be live where that was for tests. */
async function logout({ out, env }: Session, { profile }: { profile?: string }): Promise<void> {
  const { current: before, profiles } = readProfiles(env);
  const name = profile ?? (env.POSTERN_PROFILE || before);
  if (name === null || !Object.hasOwn(profiles, name))
    throw new CliError("there is no such profile to forget", STATUS.not_found);
  delete profiles[name];
  const current = before === name ? null : before;
  writeProfiles(env, { profiles, current });
  if (out.isJson) out.data({ logged_out: name, current });
  else out.line(`Forgotten: profile "${name}". The key itself still works; revoke it: postern api-keys revoke <id>`);
  const left = Object.keys(profiles).join(", ");
  if (current === null && left !== "") out.say(`No profile is chosen now: postern use NAME (there are: ${left})`);
  if (env.POSTERN_API_KEY) out.say("POSTERN_API_KEY is still set: commands are run with it.");
}

async function use(session: Session, name: string): Promise<void> {
  const { out, env } = session;
  const { profiles } = readProfiles(env);
  if (!Object.hasOwn(profiles, name))
    throw new CliError(
      `there is no profile '${name}': ${Object.keys(profiles).join(", ") || "none yet"}`,
      STATUS.not_found,
    );
  writeProfiles(env, { profiles, current: name });
  const before = goesBefore(env, name);
  if (out.isJson) out.data({ profile: name, overridden_by: before });
  else out.line(before === null ? whoActs(session, name) : `Profile "${name}" is chosen.`);
  if (before !== null) out.say(whoActs(session, name));
}

async function openDashboard({ out, access }: Session): Promise<void> {
  const { base_url } = access();
  if (out.isJson) return void out.data({ url: base_url });
  out.line(base_url);
  openInBrowser(base_url);
}

async function whoami(session: Session): Promise<void> {
  const { out } = session;
  const { base_url, from } = session.access();
  const me = await session.client().me.get();
  if (out.isJson) return void out.data({ base_url, from, ...me });
  const { organization, environment, key } = me;
  out.line(
    recordOf(
      {
        organization: `${organization.name} (${organization.id})`,
        plan: organization.plan,
        state: organization.state,
        environment,
        key: `${key.name} (${key.id})`,
        server: base_url,
        from,
      },
      out,
    ),
  );
}
