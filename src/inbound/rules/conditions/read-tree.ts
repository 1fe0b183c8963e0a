// From what a customer wrote to a tree of conditions that can be compiled, or to the path of what is wrong with it
// (`match.all[1].value`). Bounded: 20 conditions, three groups within each other, 256 characters a pattern. It reads any
// JSON whatsoever and never throws.
import { compileExpression } from "./expression.ts";
import {
  FIELDS,
  type Field,
  FLAG_COMPARATORS,
  FLAG_FIELDS,
  type Leaf,
  NUMBER_COMPARATORS,
  NUMBER_FIELDS,
  TEXT_COMPARATORS,
  TEXT_FIELDS,
  type Tree,
  VERDICT_FIELDS,
} from "./types.ts";

export const LEAVES_MAX = 20;
const DEPTH_MAX = 3;
const VALUE_CHARS_MAX = 256;
const VALUES_MAX = 100;
const HEADER_NAME = /^[\x21-\x39\x3b-\x7e]{1,128}$/;
const VERDICTS: Readonly<Record<(typeof VERDICT_FIELDS)[number], readonly string[]>> = {
  spf: ["none", "neutral", "pass", "fail", "softfail", "temperror", "permerror"],
  dkim: ["none", "pass", "fail", "permerror", "temperror"],
  dmarc: ["none", "pass", "fail", "temperror"],
};

/** `field` is the path at fault; `problem` a sentence fragment that follows "the '<field>' field". */
export type Problem = { ok: false; field: string; problem: string };
export type ReadTree = { ok: true; tree: Tree } | Problem;

/** Reads a tree that stands in the field `at`. */
export function readTree(given: unknown, at: string): ReadTree {
  const leaves = { left: LEAVES_MAX };
  return readNode(given, at, leaves, DEPTH_MAX);
}

/** Reads the flat form: a list of conditions that must all hold. */
export function readConditions(given: unknown, at: string): ReadTree {
  if (!Array.isArray(given)) return wrong(at, "must be a list of conditions");
  const trees = readList(given, at, { left: LEAVES_MAX }, 0);
  return "ok" in trees ? trees : { ok: true, tree: { all: trees } };
}

type Left = { left: number };

// `depth`: how many groups may still follow.
function readNode(given: unknown, at: string, leaves: Left, depth: number): ReadTree {
  if (!isRecord(given)) return wrong(at, "must be a condition, or an object with 'all', 'any' or 'not'");
  const groups = ["all", "any", "not"].filter((name) => Object.hasOwn(given, name));
  if (groups.length === 0) return readLeaf(given, at, leaves);
  const [name = ""] = groups;
  const stray = Object.keys(given).find((key) => key !== name);
  if (stray !== undefined) return wrong(`${at}.${stray.slice(0, 64)}`, `cannot stand beside '${name}'`);
  if (depth === 0) return wrong(at, `nests deeper than ${DEPTH_MAX} groups`);
  const inner = given[name];
  if (name === "not") {
    const node = readNode(inner, `${at}.not`, leaves, depth - 1);
    return node.ok ? { ok: true, tree: { not: node.tree } } : node;
  }
  if (!Array.isArray(inner)) return wrong(`${at}.${name}`, "must be a list");
  const trees = readList(inner, `${at}.${name}`, leaves, depth - 1);
  if ("ok" in trees) return trees;
  return { ok: true, tree: name === "all" ? { all: trees } : { any: trees } };
}

function readList(given: readonly unknown[], at: string, leaves: Left, depth: number): Tree[] | Problem {
  if (given.length === 0) return wrong(at, "must hold at least one condition");
  const trees: Tree[] = [];
  for (const [index, one] of given.entries()) {
    const node = readNode(one, `${at}[${index}]`, leaves, depth);
    if (!node.ok) return node;
    trees.push(node.tree);
  }
  return trees;
}

const LEAF_KEYS = ["field", "comparator", "value", "header_name"];

function readLeaf(given: Record<string, unknown>, at: string, leaves: Left): ReadTree {
  if (leaves.left === 0) return wrong(at, `is one too many: a rule has at most ${LEAVES_MAX} conditions`);
  leaves.left -= 1;
  const stray = Object.keys(given).find((key) => !LEAF_KEYS.includes(key));
  if (stray !== undefined) return wrong(`${at}.${stray.slice(0, 64)}`, "is unknown");
  const field = given.field as Field;
  if (!FIELDS.includes(field)) return wrong(`${at}.field`, `must be one of ${FIELDS.join(", ")}`);
  const known = comparatorsOf(field) as readonly string[];
  const comparator = given.comparator as Leaf["comparator"];
  if (!known.includes(comparator)) return wrong(`${at}.comparator`, `must be one of ${known.join(", ")} for ${field}`);
  const name = given.header_name;
  if (field === "header" && (typeof name !== "string" || !HEADER_NAME.test(name))) {
    return wrong(`${at}.header_name`, "must be the name of a header field");
  }
  if (field !== "header" && name !== undefined) return wrong(`${at}.header_name`, "goes with the field header only");
  const value = given.value === undefined && comparator === "exists" ? true : given.value;
  const problem = problemOfValue(field, comparator, value);
  if (problem) return wrong(`${at}.value${problem.index}`, problem.problem);
  const leaf: Leaf = { field, comparator, value: value as Leaf["value"] };
  return { ok: true, tree: typeof name === "string" ? { ...leaf, header_name: name } : leaf };
}

function comparatorsOf(field: Field) {
  if (includes(TEXT_FIELDS, field) || includes(VERDICT_FIELDS, field)) return TEXT_COMPARATORS;
  return includes(NUMBER_FIELDS, field) ? NUMBER_COMPARATORS : FLAG_COMPARATORS;
}

type ValueProblem = { index: string; problem: string } | null;
const bad = (problem: string, index = ""): ValueProblem => ({ index, problem });

function problemOfValue(field: Field, comparator: Leaf["comparator"], value: unknown): ValueProblem {
  if (comparator === "exists" || includes(FLAG_FIELDS, field)) {
    return typeof value === "boolean" ? null : bad("must be true or false");
  }
  if (includes(NUMBER_FIELDS, field)) {
    return typeof value === "number" && Number.isFinite(value) ? null : bad("must be a number");
  }
  if (comparator === "in") return problemOfList(field, value);
  const isWhole = comparator === "equals" || comparator === "not_equals";
  const problem = problemOfText(value) ?? (isWhole ? problemOfWord(field, value as string) : null);
  if (problem !== null) return bad(problem);
  if (value === "" && !isWhole) return bad("must not be empty");
  const expression = comparator === "matches" ? compileExpression(value as string) : null;
  return expression?.kind === "problem" ? bad(expression.problem) : null;
}

function problemOfList(field: Field, value: unknown): ValueProblem {
  if (!Array.isArray(value) || value.length === 0 || value.length > VALUES_MAX) {
    return bad(`must be a list of 1 to ${VALUES_MAX} texts`);
  }
  for (const [index, one] of value.entries()) {
    const problem = problemOfText(one) ?? problemOfWord(field, one);
    if (problem !== null) return bad(problem, `[${index}]`);
  }
  return null;
}

function problemOfText(value: unknown): string | null {
  if (typeof value !== "string") return "must be a text";
  return value.length > VALUE_CHARS_MAX ? `must have at most ${VALUE_CHARS_MAX} characters` : null;
}

/** A verdict that is compared as a whole is one of few words: any other would never hold. */
function problemOfWord(field: Field, value: string): string | null {
  if (!includes(VERDICT_FIELDS, field)) return null;
  const words = VERDICTS[field];
  return words.includes(value) ? null : `must be one of ${words.join(", ")}`;
}

function wrong(field: string, problem: string): Problem {
  return { ok: false, field, problem };
}

function isRecord(given: unknown): given is Record<string, unknown> {
  return typeof given === "object" && given !== null && !Array.isArray(given);
}

function includes<T extends string>(words: readonly T[], word: string): word is T {
  return (words as readonly string[]).includes(word);
}
