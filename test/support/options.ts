// Options of the commands that developers run from a terminal: --help prints how a command is used; an unknown option ends it
// with 2 and a sentence.
import { type ParseArgsConfig, parseArgs } from "node:util";

/** As parseArgs reads them; `use` is the line that says how the command is used. Ends the process where it is asked for. */
export function readOptions<Config extends ParseArgsConfig>(config: Config, use: string) {
  const given = config.args ?? process.argv.slice(2);
  if (given.includes("--help") || given.includes("-h")) {
    console.log(use);
    return process.exit(0);
  }
  try {
    return parseArgs(config);
  } catch (error) {
    // Behind the first sentence it says how a word that begins with a dash would be given.
    const [sentence = ""] = (error as Error).message.split(". ");
    return refuse(`${sentence}.`, use);
  }
}

/** What was given behind `option`, a whole number within `bounds`; ends the process as `refuse` does where it is not one. */
export function wholeNumber(
  option: string,
  text: string,
  bounds: { least: number; most?: number },
  use: string,
): number {
  const { least, most = Number.MAX_SAFE_INTEGER } = bounds;
  const value = /^\d{1,16}$/.test(text) ? Number(text) : -1;
  if (value >= least && value <= most) return value;
  const range = bounds.most === undefined ? `of ${least} or more` : `from ${least} to ${most}`;
  return refuse(`--${option} ${JSON.stringify(text)} is not a whole number ${range}.`, use);
}

/** Ends the process with 2, wrong usage, after the sentence and the line that says how the command is used. */
export function refuse(sentence: string, use: string): never {
  console.error(`${sentence}\n${use}`);
  return process.exit(2);
}
