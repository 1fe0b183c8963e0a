// The options that every client command takes may stand before the command's name: `postern --profile test emails list`.
import type { Command } from "commander";

/** Each command over the API takes them (session.ts). */
export const COMMON_OPTIONS = ["--profile", "--base-url", "--json", "--quiet"];
const VALUED = new Set(["--profile", "--base-url"]);
const FLAGS = new Set(["--json", "--quiet"]);
/** Options of the program itself, which takes them anywhere. */
const OF_PROGRAM = new Set(["--env-file"]);

/** The options at the beginning of `words`, one with its value as one list, and what stands behind them. */
export function leadingOptions(words: readonly string[]): { common: string[][]; own: string[][]; rest: string[] } {
  const rest = [...words];
  const [common, own]: [string[][], string[][]] = [[], []];
  for (;;) {
    const [name = "", ...values] = (rest[0] ?? "").split(/(?==)/);
    const takesNext = values.length === 0 && (VALUED.has(name) || OF_PROGRAM.has(name));
    if (VALUED.has(name) || FLAGS.has(name)) common.push(rest.splice(0, takesNext ? 2 : 1));
    else if (OF_PROGRAM.has(name)) own.push(rest.splice(0, takesNext ? 2 : 1));
    else return { common, own, rest };
  }
}

/** The command line with such options behind the command's name, where commander looks for them. */
export function optionsBehindName(words: readonly string[], program: Command): string[] {
  const [names, moved]: [string[], string[]] = [[], []];
  let [command, rest]: [Command, string[]] = [program, [...words]];
  for (;;) {
    const leading = leadingOptions(rest);
    const [word = ""] = leading.rest;
    const below = command.commands.find((one) => one.name() === word);
    if (below === undefined)
      return takesOptions(command) ? [...names, ...moved, ...rest] : withoutOptions(names, leading);
    moved.push(...leading.common.flat());
    names.push(...leading.own.flat(), word);
    [command, rest] = [below, leading.rest.slice(1)];
    // Behind the last name all stays as it is: `--text --json` has a text.
    if (command.commands.length === 0) return [...names, ...moved, ...rest];
  }
}

/** A group that does something without a further name, as `certificates` shows them, has that command's options. */
function takesOptions(group: Command): boolean {
  const { _defaultCommandName: name } = group as unknown as { _defaultCommandName?: string | null };
  return typeof name === "string";
}

/** Without a known command the error is about the command, not about the options before it. */
function withoutOptions(names: string[], { own, rest }: ReturnType<typeof leadingOptions>): string[] {
  return [...names, ...own.flat(), ...rest];
}
