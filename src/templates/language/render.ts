// The interpreter: walks the nodes of a parsed template over plain values. It reads own data properties only, so neither
// prototypes nor getters nor functions are ever reached, and it counts steps, characters and time. Meaning as in
// Handlebars 4, with two exceptions, both deliberate: a list or an object is not printed ("[object Object]" in a mail
// helps no one) but ends the rendering, and {{default}} is ours.
import {
  type EachNode,
  type Expression,
  type LoopValue,
  type Node,
  OUTPUT_BYTES_MAX,
  type Path,
  type Place,
  type PrintNode,
  RENDER_MS_MAX,
  STEPS_MAX,
  type Template,
} from "./nodes.ts";
import { isTemplate } from "./parse.ts";

export type RenderReason = "too_many_steps" | "output_too_large" | "too_slow" | "not_text";
export type RenderProblem = { ok: false; reason: RenderReason; message: string } & Place;
export type Rendered = { ok: true; text: string } | RenderProblem;

export type RenderOptions = {
  /** `html` for an HTML body; `none` for subjects and plain text, where `&amp;` would be shown as it stands. */
  escape: "html" | "none";
  /** The processor time that was taken so far, in milliseconds. */
  processorMs: () => number;
  /** Values for variables that are absent or null, by canonical name. */
  defaults?: ReadonlyMap<string, string | number | boolean>;
};

type Frame = { context: unknown; index: number; count: number; key: string; outer: Frame | null };
type Run = {
  out: string;
  steps: number;
  deadlineMs: number;
  problem: RenderProblem | null;
  escapes: boolean;
  variables: unknown;
  options: RenderOptions;
};

const CLOCK_EVERY_STEPS = 64;

/**
 * Renders `template` with `variables` (values as JSON has them; absent ones print nothing). At most 2 MiB, 10,000 steps
 * and 200 ms of the processor; beyond that, and for a list or an object where text is due, the answer says why and where.
 */
export function renderTemplate(
  template: Template,
  variables: Readonly<Record<string, unknown>>,
  options: RenderOptions,
): Rendered {
  if (!isTemplate(template)) throw new TypeError("renderTemplate takes what parseTemplate made");
  const run: Run = {
    out: "",
    steps: 0,
    deadlineMs: options.processorMs() + RENDER_MS_MAX,
    problem: null,
    escapes: options.escape === "html",
    variables,
    options,
  };
  renderNodes(template.nodes, null, run);
  if (run.problem) return run.problem;
  // The running limit counts UTF-16 units, of which there are never more than bytes.
  if (Buffer.byteLength(run.out) > OUTPUT_BYTES_MAX) {
    return { ok: false, reason: "output_too_large", message: TOO_LARGE, line: 1, column: 1 };
  }
  return { ok: true, text: run.out };
}

const TOO_LARGE = `the result is larger than ${OUTPUT_BYTES_MAX / 1024 / 1024} MiB`;

/** Escapes text for HTML content and for quoted and unquoted attribute values: the set that Handlebars escapes. */
export function escapeHtml(text: string): string {
  return /[&<>"'`=]/.test(text) ? text.replace(/[&<>"'`=]/g, (character) => ENTITIES.get(character) as string) : text;
}

const ENTITIES = new Map([
  ["&", "&amp;"],
  ["<", "&lt;"],
  [">", "&gt;"],
  ['"', "&quot;"],
  ["'", "&#x27;"],
  ["`", "&#x60;"],
  ["=", "&#x3D;"],
]);

/** The value at the end of `keys`, over own data properties only; undefined when there is none. */
export function valueAt(value: unknown, keys: readonly string[]): unknown {
  let at = value;
  for (const key of keys) at = ownValue(at, key);
  return at;
}

function ownValue(object: unknown, key: string): unknown {
  if (typeof object !== "object" || object === null) return undefined;
  // A descriptor, not a read: a getter has no `value`.
  const value = Object.getOwnPropertyDescriptor(object, key)?.value;
  return typeof value === "function" || typeof value === "symbol" ? undefined : value;
}

function stop(run: Run, reason: RenderReason, message: string, place: Place): void {
  run.problem ??= { ok: false, reason, message, line: place.line, column: place.column };
}

function renderNodes(nodes: readonly Node[], frame: Frame | null, run: Run): void {
  for (const node of nodes) {
    if (node.kind === "text") write(node.text, run, ORIGIN);
    else if (takeStep(node.place, run)) renderTag(node, frame, run);
    if (run.problem) return;
  }
}

const ORIGIN: Place = { line: 1, column: 1 };

function renderTag(node: Exclude<Node, { kind: "text" }>, frame: Frame | null, run: Run): void {
  if (node.kind === "print") print(node, frame, run);
  else if (node.kind === "each") renderEach(node, frame, run);
  else {
    const holds = isTruthy(evaluate(node.condition, frame, run)) !== node.negated;
    renderNodes(holds ? node.body : node.otherwise, frame, run);
  }
}

function takeStep(place: Place, run: Run): boolean {
  run.steps += 1;
  if (run.steps > STEPS_MAX) stop(run, "too_many_steps", TOO_MANY_STEPS, place);
  else if (run.steps % CLOCK_EVERY_STEPS === 0 && run.options.processorMs() > run.deadlineMs) {
    stop(run, "too_slow", `rendering takes more than ${RENDER_MS_MAX} ms of the processor`, place);
  }
  return run.problem === null;
}

const TOO_MANY_STEPS = `rendering takes more than ${STEPS_MAX} steps (tags carried out and turns of loops)`;

function write(text: string, run: Run, place: Place): void {
  if (run.out.length + text.length > OUTPUT_BYTES_MAX) stop(run, "output_too_large", TOO_LARGE, place);
  else run.out += text;
}

function print(node: PrintNode, frame: Frame | null, run: Run): void {
  let value = evaluate(node.value, frame, run);
  if (node.fallback && (value === undefined || value === null || value === "")) {
    value = evaluate(node.fallback, frame, run);
  }
  if (value === undefined || value === null) return;
  if (typeof value === "object") {
    const what = Array.isArray(value) ? "a list" : "an object";
    stop(run, "not_text", `${describe(node.value)} is ${what}, which cannot be printed`, node.place);
    return;
  }
  const text = String(value);
  // Too long is too long before escaping, which can make a text six times as long.
  const escapes = run.escapes && !node.raw && run.out.length + text.length <= OUTPUT_BYTES_MAX;
  write(escapes ? escapeHtml(text) : text, run, node.place);
}

function describe(value: Path | LoopValue): string {
  if (value.kind === "loop") return `'@${value.which}'`;
  return value.keys.length === 0 ? "'this'" : `'${value.name ?? value.keys.join(".")}'`;
}

function renderEach(node: EachNode, frame: Frame | null, run: Run): void {
  const list = evaluate(node.list, frame, run);
  const keys = keysOf(list);
  const count = keys.length;
  if (count === 0) renderNodes(node.otherwise, frame, run);
  // A loop that cannot be finished is not begun.
  if (run.steps + count > STEPS_MAX) stop(run, "too_many_steps", TOO_MANY_STEPS, node.place);
  for (let index = 0; index < count && takeStep(node.place, run); index += 1) {
    const key = keys.at(index) as string;
    renderNodes(node.body, { context: ownValue(list, key), index, count, key, outer: frame }, run);
  }
}

type Keys = { length: number; at(index: number): string | undefined };

function keysOf(list: unknown): Keys {
  if (Array.isArray(list)) return { length: list.length, at: (index) => String(index) };
  return typeof list === "object" && list !== null ? Object.keys(list) : [];
}

function evaluate(expression: Expression, frame: Frame | null, run: Run): unknown {
  if (expression.kind === "literal") return expression.value;
  if (expression.kind === "loop") return loopValue(expression, frame);
  if (expression.name === null) return valueAt(outerFrame(frame, expression.up)?.context, expression.keys);
  const value = valueAt(run.variables, expression.keys);
  return value ?? run.options.defaults?.get(expression.name);
}

function outerFrame(frame: Frame | null, up: number): Frame | null {
  let at = frame;
  for (let left = up; left > 0 && at; left -= 1) at = at.outer;
  return at;
}

function loopValue(value: LoopValue, frame: Frame | null): unknown {
  const loop = outerFrame(frame, value.up);
  if (!loop) return undefined;
  switch (value.which) {
    case "index":
      return loop.index;
    case "first":
      return loop.index === 0;
    case "last":
      return loop.index === loop.count - 1;
    case "key":
      return loop.key;
  }
}

// As in Handlebars: "", 0, false, null and an empty list do not hold.
function isTruthy(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : Boolean(value);
}
