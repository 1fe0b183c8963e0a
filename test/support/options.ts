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

/** Ends the process with 2, wrong usage, after the sentence and the line that says how the command is used. */
export function refuse(sentence: string, use: string): never {
  console.error(`${sentence}\n${use}`);
  return process.exit(2);
}
