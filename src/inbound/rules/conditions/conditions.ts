// Routing rules: does a tree of conditions hold for a mail? Pure, and in small steps: the caller's `pause` is awaited
// before each expression is run on a text, so that no rule holds up a process. Texts are compared without regard to case,
// except by `matches`. A field with several values holds when one of them does; `not_…` is the opposite of its positive
// form, so it holds for a field that is missing.
import { domainToASCII, domainToUnicode } from "node:url";
import { compileExpression, type Expression } from "./expression.ts";
import { type Facts, type Leaf, type TraceStep, type Tree, VERDICT_FIELDS } from "./types.ts";

export { type Problem, readConditions, readTree } from "./read-tree.ts";
export type { Facts, TraceStep, Tree } from "./types.ts";

const VALUES_MAX = 100;
const VALUE_CHARS_MAX = 10_000;
const FOUND_MAX = 5;
const FOUND_CHARS_MAX = 200;

/** May throw, to give an evaluation up. */
export type Pause = () => Promise<void>;

type Value = string | number | boolean;
type Test = (found: readonly Value[], pause: Pause) => boolean | Promise<boolean>;
type Node =
  | { kind: "all" | "any"; nodes: Node[] }
  | { kind: "not"; node: Node }
  | { kind: "leaf"; leaf: Leaf; path: string; test: Test };

/** A tree ready to be asked. */
export type Compiled = { node: Node };

/** Compiles a tree that `readTree` or `readConditions` gave; throws for any other. `at` begins the paths of a trace. */
export function compileTree(tree: Tree, at = "match"): Compiled {
  return { node: compileNode(tree, at) };
}

function compileNode(tree: Tree, path: string): Node {
  if ("not" in tree) return { kind: "not", node: compileNode(tree.not, `${path}.not`) };
  if ("all" in tree) return { kind: "all", nodes: compileNodes(tree.all, `${path}.all`) };
  if ("any" in tree) return { kind: "any", nodes: compileNodes(tree.any, `${path}.any`) };
  return { kind: "leaf", leaf: tree, path, test: compileTest(tree) };
}

function compileNodes(trees: readonly Tree[], path: string): Node[] {
  return trees.map((tree, index) => compileNode(tree, `${path}[${index}]`));
}

/** True if the node holds. Conditions that can no longer change the answer are not looked at. */
export async function holds({ node }: Compiled, facts: Facts, pause: Pause): Promise<boolean> {
  switch (node.kind) {
    case "leaf":
      return node.test(valuesOf(facts, node.leaf), pause);
    case "not":
      return !(await holds({ node: node.node }, facts, pause));
    case "all":
      for (const one of node.nodes) if (!(await holds({ node: one }, facts, pause))) return false;
      return true;
    case "any":
      for (const one of node.nodes) if (await holds({ node: one }, facts, pause)) return true;
      return false;
  }
}

/** The same with every condition and what it found. */
export async function trace(
  { node }: Compiled,
  facts: Facts,
  pause: Pause,
): Promise<{ matched: boolean; steps: TraceStep[] }> {
  const steps: TraceStep[] = [];
  const matched = await traceNode(node, steps, facts, pause);
  return { matched, steps };
}

async function traceNode(node: Node, steps: TraceStep[], facts: Facts, pause: Pause): Promise<boolean> {
  if (node.kind === "not") return !(await traceNode(node.node, steps, facts, pause));
  if (node.kind === "leaf") {
    const found = valuesOf(facts, node.leaf);
    const matched = await node.test(found, pause);
    steps.push({ ...node.leaf, path: node.path, found: found.slice(0, FOUND_MAX).map(cut), matched });
    return matched;
  }
  const results: boolean[] = [];
  for (const one of node.nodes) results.push(await traceNode(one, steps, facts, pause));
  return node.kind === "all" ? results.every(Boolean) : results.some(Boolean);
}

function cut(value: Value): Value {
  return typeof value === "string" ? value.slice(0, FOUND_CHARS_MAX).toWellFormed() : value;
}

function valuesOf(facts: Facts, { field, header_name }: Leaf): Value[] {
  if (field === "header") {
    const wanted = (header_name ?? "").toLowerCase();
    const named = facts.headers.filter(({ name }) => name.toLowerCase() === wanted);
    return named.slice(0, VALUES_MAX).map(({ value }) => value.slice(0, VALUE_CHARS_MAX));
  }
  const found = facts[field];
  if (Array.isArray(found)) return found.slice(0, VALUES_MAX).map((value) => value.slice(0, VALUE_CHARS_MAX));
  return found === null ? [] : [found];
}

const NEGATIONS: ReadonlyMap<string, Leaf["comparator"]> = new Map([
  ["not_equals", "equals"],
  ["not_contains", "contains"],
]);

const ADDRESS_FIELDS: ReadonlySet<string> = new Set(["sender", "envelope_sender", "recipient"]);

function compileTest(leaf: Leaf): Test {
  const { comparator, value } = leaf;
  const positive = NEGATIONS.get(comparator);
  if (positive) {
    const test = compileTest({ ...leaf, comparator: positive });
    return async (found, pause) => !(await test(found, pause));
  }
  if (comparator === "exists") {
    const nothing = (VERDICT_FIELDS as readonly string[]).includes(leaf.field) ? "none" : "";
    return (found) => found.some((one) => one !== nothing && one !== false) === value;
  }
  if (comparator === "matches") return matchTest(value as string);
  if (typeof value === "number")
    return (found) => found.some((one) => compareNumbers(comparator, one as number, value));
  if (typeof value === "boolean") return (found) => found.includes(value);
  if (leaf.field === "sender_domain") return domainTest(comparator, [value].flat());
  const isWholeAddress = ADDRESS_FIELDS.has(leaf.field) && (comparator === "equals" || comparator === "in");
  const fold = isWholeAddress ? foldAddress : foldText;
  const wanted = [value].flat().map(fold);
  return (found) => found.some((one) => compareTexts(comparator, fold(String(one)), wanted));
}

/** Whole domains are one in all their forms; a part of one is no domain (`163`), and is looked for in both. */
function domainTest(comparator: Leaf["comparator"], values: readonly string[]): Test {
  const isWhole = comparator === "equals" || comparator === "in";
  const wanted = values.map((one) => (isWhole ? foldDomain(one) : foldText(one.normalize("NFC"))));
  return (found) =>
    found.some((one) => {
      const ascii = foldDomain(String(one));
      const forms = isWhole ? [ascii] : [ascii, domainToUnicode(ascii) || ascii];
      return forms.some((form) => compareTexts(comparator, form, wanted));
    });
}

function matchTest(source: string): Test {
  const compiled = compileExpression(source);
  if (compiled.kind === "problem") throw new Error(`the expression ${compiled.problem}`);
  return (found, pause) => anyMatches(compiled.expression, found, pause);
}

async function anyMatches(expression: Expression, found: readonly Value[], pause: Pause): Promise<boolean> {
  for (const one of found) {
    await pause();
    if (expression.matches(String(one))) return true;
  }
  return false;
}

function compareNumbers(comparator: Leaf["comparator"], found: number, wanted: number): boolean {
  if (comparator === "gt") return found > wanted;
  if (comparator === "gte") return found >= wanted;
  if (comparator === "lt") return found < wanted;
  return comparator === "lte" ? found <= wanted : found === wanted;
}

function compareTexts(comparator: Leaf["comparator"], found: string, wanted: readonly string[]): boolean {
  const [first = ""] = wanted;
  if (comparator === "contains") return found.includes(first);
  if (comparator === "starts_with") return found.startsWith(first);
  if (comparator === "ends_with") return found.endsWith(first);
  return wanted.includes(found);
}

function foldText(text: string): string {
  return text.toLowerCase();
}

/** Lower case, with the domain in one form: mail carries it in either form, and an envelope in one. */
function foldAddress(text: string): string {
  const at = text.lastIndexOf("@");
  return at === -1
    ? foldText(text)
    : `${foldText(text.slice(0, at).normalize("NFC"))}@${foldDomain(text.slice(at + 1))}`;
}

/** `bücher.example` and `xn--bcher-kva.example` are one domain. */
function foldDomain(text: string): string {
  return domainToASCII(text) || text.toLowerCase();
}
