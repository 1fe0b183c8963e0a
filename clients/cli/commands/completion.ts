// `postern completion bash|zsh|fish`: what the shell offers at Tab, out of the commands that there are.
import type { Command } from "commander";
import { CliError } from "../exit.ts";
import { COMMON_OPTIONS } from "../options-first.ts";
import { acting, type Session, type Surroundings, withGlobals } from "../session.ts";

export function addCompletion(program: Command, around: Surroundings): void {
  withGlobals(program.command("completion"))
    .description("print the completions of a shell: source <(postern completion bash)")
    .argument("<shell>", "bash, zsh or fish")
    .action(acting(around, async ({ out }: Session, shell: string) => out.line(scriptOf(program, shell))));
}

type Choice = { path: string; words: string[] };

/** Behind each command, what may follow. */
function choicesOf(command: Command, path = ""): Choice[] {
  const below = command.commands.filter((one) => one.name() !== "help");
  const options = command.options.flatMap(({ long }) => long ?? []);
  // Those that every command takes may stand before its name: options-first.ts.
  const common = path === "" ? COMMON_OPTIONS : [];
  const own = { path, words: [...below.map((one) => one.name()), ...options, ...common] };
  return [own, ...below.flatMap((one) => choicesOf(one, `${path} ${one.name()}`.trim()))];
}

function scriptOf(program: Command, shell: string): string {
  const choices = choicesOf(program);
  if (shell === "bash") return bash(choices);
  if (shell === "zsh") return `autoload -U +X bashcompinit && bashcompinit\n${bash(choices)}`;
  if (shell === "fish") return fish(choices);
  throw new CliError("the shells are bash, zsh and fish");
}

function knownPaths(choices: Choice[]): string[] {
  return choices.map(({ path }) => path).filter((path) => path !== "");
}

function bash(choices: Choice[]): string {
  const cases = choices.map(({ path, words }) => `    "${path}") words="${words.join(" ")}" ;;`);
  // A word that is no command is the value of an option, or an argument.
  return `_postern() {
  local path="" words="" at
  local known="|${knownPaths(choices).join("|")}|"
  for ((at = 1; at < COMP_CWORD; at++)); do
    case "$known" in *"|\${path:+$path }\${COMP_WORDS[at]}|"*) path="\${path:+$path }\${COMP_WORDS[at]}" ;; esac
  done
  case "$path" in
${cases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _postern postern`;
}

function fish(choices: Choice[]): string {
  const lines = choices.flatMap(({ path, words }) => {
    const plain = words.filter((word) => !word.startsWith("-"));
    const seen = `__postern_at ${path}`.trim();
    const options = words
      .filter((word) => word.startsWith("--"))
      .map((word) => `complete -c postern -n '${seen}' -l ${word.slice(2)}`);
    return [...(plain.length > 0 ? [`complete -c postern -f -n '${seen}' -a '${plain.join(" ")}'`] : []), ...options];
  });
  return `set -g __postern_paths ${knownPaths(choices)
    .map((path) => `'${path}'`)
    .join(" ")}
function __postern_at
  set -l path
  for word in (commandline -opc)[2..]
    contains -- (string join -- ' ' $path $word) $__postern_paths; and set -a path $word
  end
  test "$path" = "$argv"
end
${lines.join("\n")}`;
}
