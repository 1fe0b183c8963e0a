// What every command that works on a database once begins with.
import { type Config, findConfig, readConfig } from "../config.ts";
import { becomeOwner } from "../platform/process/leave-root.ts";
import { createLog, type Log } from "../platform/process/log.ts";

/** Root does not write in a folder of another user. */
export async function commandConfig(): Promise<Config> {
  await becomeOwner(findConfig());
  return readConfig();
}

/** Of a command whose answer is on standard output: that is taken as it is (`KEY=$(postern keys create …)`). */
export function logBeside(config: Config): Log {
  const destination = { write: (line: string) => void process.stderr.write(line) };
  return createLog({ level: config.log_level, role: "postern", destination });
}
