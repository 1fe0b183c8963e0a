// Options of the commands that are run from a terminal: what is not known ends with 2, and says so in a sentence.
import { type ParseArgsConfig, parseArgs } from "node:util";

/** As parseArgs reads them; `use` is the line that says how the command is used. */
export function readOptions<Config extends ParseArgsConfig>(config: Config, use: string) {
  try {
    return parseArgs(config);
  } catch (error) {
    // Behind the first sentence it says how a word that begins with a dash would be given.
    const [sentence = ""] = (error as Error).message.split(". ");
    return refuse(`${sentence}.`, use);
  }
}

export function refuse(sentence: string, use: string): never {
  console.error(`${sentence}\n${use}`);
  return process.exit(2);
}
