// `postern completion bash|zsh|fish`: what the shell offers at Tab, out of the commands that there are.
import type { Command } from "commander";
import { CliError } from "../exit.ts";
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
  const own = { path, words: [...below.map((one) => one.name()), ...options] };
  return [own, ...below.flatMap((one) => choicesOf(one, `${path} ${one.name()}`.trim()))];
}

function scriptOf(program: Command, shell: string): string {
  const choices = choicesOf(program);
  if (shell === "bash") return bash(choices);
  if (shell === "zsh") return `autoload -U +X bashcompinit && bashcompinit\n${bash(choices)}`;
  if (shell === "fish") return fish(choices);
  throw new CliError("the shells are bash, zsh and fish");
}

function bash(choices: Choice[]): string {
  const cases = choices.map(({ path, words }) => `    "${path}") words="${words.join(" ")}" ;;`);
  return `_postern() {
  local path="" word words="" at
  for ((at = 1; at < COMP_CWORD; at++)); do
    word="\${COMP_WORDS[at]}"
    case "$word" in -*) ;; *) path="$path $word" ;; esac
  done
  path="\${path# }"
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
    const seen = path === "" ? "__fish_use_subcommand" : `__postern_at ${path}`;
    const options = words
      .filter((word) => word.startsWith("--"))
      .map((word) => `complete -c postern -n '${seen}' -l ${word.slice(2)}`);
    return [...(plain.length > 0 ? [`complete -c postern -f -n '${seen}' -a '${plain.join(" ")}'`] : []), ...options];
  });
  return `function __postern_at
  set -l words (commandline -opc | string match -v -- '-*')
  test "$words[2..]" = "$argv"
end
${lines.join("\n")}`;
}
