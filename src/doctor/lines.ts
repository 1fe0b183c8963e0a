// How findings and steps look: state, what it is about, a sentence, and the remedy below it. On a terminal the lines are as
// wide as it is and states have colours (NO_COLOR is kept); elsewhere each sentence is one line, for programs to cut.
import { styleText } from "node:util";

export type Line = { status: string; name: string; says: string; remedy: string | null };

const WIDTH_MAX = 100;
const WIDTH_MIN = 60;
const COLORS = { ok: "green", done: "green", problem: "red", warning: "yellow" } as const;

/** `columns`: of state and name, each with the space behind it. */
export function printLine({ status, name, says, remedy }: Line, columns: [state: number, name: number]): string {
  const [state, about] = columns;
  const indent = state + about;
  const color = COLORS[status as keyof typeof COLORS];
  const shown = status.padEnd(state);
  const head = `${color ? styleText(color, shown) : shown}${name.padEnd(about - 1)} `;
  const first = `${head}${wrapped(says, indent)}`;
  return remedy === null ? first : `${first}\n${" ".repeat(indent)}→ ${wrapped(remedy, indent + 2)}`;
}

/** Further lines begin at `indent`. */
function wrapped(text: string, indent: number): string {
  if (!process.stdout.isTTY) return text;
  const width = Math.max(WIDTH_MIN, Math.min(process.stdout.columns ?? WIDTH_MAX, WIDTH_MAX)) - indent;
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines.join(`\n${" ".repeat(indent)}`);
}

/** `1 problem`, `2 problems`. */
export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
