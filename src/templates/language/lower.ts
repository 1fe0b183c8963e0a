// From the syntax tree of @handlebars/parser to our own nodes. What is not in our language ends here with a sentence and a
// place. Names are decided now: which paths start at the variables, which of them a reader cannot do without.
import type { EachNode, Expression, IfNode, LoopValue, Node, Path, Place, PrintNode, Variable } from "./nodes.ts";
import { PATH_KEYS_MAX, PATH_LENGTH_MAX } from "./nodes.ts";
import { unmaskName, unmaskText } from "./scan.ts";

/** The parts of the parser's tree that we read. */
export type Ast = {
  type: string;
  loc?: { start: Place };
  body?: Ast[];
  value?: unknown;
  escaped?: boolean;
  path?: Ast;
  params?: Ast[];
  hash?: unknown;
  blockParams?: unknown;
  program?: Ast | null;
  inverse?: Ast | null;
  data?: boolean;
  depth?: number;
  parts?: unknown[];
  original?: unknown;
};

export type Lowering = {
  variables: Map<string, Variable>;
  reads_all: boolean;
  problem: ({ message: string } & Place) | null;
  /** How many loops stand around the place we are at. */
  loops: number;
  /** Above 0 inside `default`, `if`, `unless`: a variable read here may be absent. */
  guards: number;
};

const BLOCKS = new Set(["if", "unless", "each"]);
const RESERVED = new Set(["if", "unless", "each", "else", "default"]);
const LOOP_WORDS = new Set(["index", "first", "last", "key"]);
const PLAIN_NAME = /^[^\s!"#%-,./;->@[-^`{-~]+$/;
const NOT_A_NAME = /^(?:this|true|false|null|undefined|if|unless|each|else|default|as|-?\d+)$/;

/** Our nodes for a program; what cannot be taken over is in `lowering.problem` (the first one). */
export function lowerProgram(program: Ast | null | undefined, lowering: Lowering): Node[] {
  const nodes: Node[] = [];
  for (const statement of program?.body ?? []) {
    const node = lowerStatement(statement, lowering);
    if (lowering.problem) return nodes;
    if (node) nodes.push(node);
  }
  return nodes;
}

/** `user.name`, `items[0].name`, `[first name]`: the one spelling that we use for a path from the variables. */
function nameOf(keys: readonly string[]): string {
  return keys.map((key, place) => nameOfKey(key, place === 0)).join("");
}

function nameOfKey(key: string, isFirst: boolean): string {
  const dot = isFirst ? "" : ".";
  if (/^\d+$/.test(key)) return `[${key}]`;
  if (PLAIN_NAME.test(key) && !NOT_A_NAME.test(key)) return dot + key;
  return `${dot}[${key.replace(/[\\\]]/g, "\\$&")}]`;
}

function placeOf(node: Ast | undefined): Place {
  const start = node?.loc?.start;
  return { line: start?.line ?? 1, column: (start?.column ?? 0) + 1 };
}

function fail(lowering: Lowering, node: Ast | undefined, message: string): null {
  lowering.problem ??= { message, ...placeOf(node) };
  return null;
}

function lowerStatement(node: Ast, lowering: Lowering): Node | null {
  switch (node.type) {
    case "ContentStatement":
      return node.value === "" ? null : { kind: "text", text: String(node.value) };
    case "CommentStatement":
      return null;
    case "MustacheStatement":
      return lowerPrint(node, lowering);
    case "BlockStatement":
      return lowerBlock(node, lowering);
    default:
      return fail(lowering, node, "this is not part of the template language");
  }
}

function lowerPrint(node: Ast, lowering: Lowering): PrintNode | null {
  const word = wordOf(node.path);
  const params = node.params ?? [];
  if (node.hash) return fail(lowering, node, "name=value arguments are not part of the template language");
  if (word === "default") return lowerDefault(node, params, lowering);
  if (params.length > 0) {
    return fail(lowering, node, `there is no helper '${textOf(node.path)}'; the only one is {{default name "…"}}`);
  }
  if (word !== null && BLOCKS.has(word)) return fail(lowering, node, `'${word}' opens a block: {{#${word} …}}`);
  const value = lowerValue(node.path, lowering);
  return value && { kind: "print", value, fallback: null, raw: node.escaped === false, place: placeOf(node) };
}

function lowerDefault(node: Ast, params: Ast[], lowering: Lowering): PrintNode | null {
  if (params.length !== 2) return fail(lowering, node, `'default' takes a name and what to print instead of it`);
  lowering.guards += 1;
  const value = lowerValue(params[0], lowering);
  const fallback = lowerExpression(params[1], lowering);
  lowering.guards -= 1;
  if (!value || !fallback) return null;
  return { kind: "print", value, fallback, raw: node.escaped === false, place: placeOf(node) };
}

/** The single plain word that a path consists of, or null. */
function wordOf(path: Ast | undefined): string | null {
  if (path?.type !== "PathExpression" || path.data || path.depth !== 0 || path.parts?.length !== 1) return null;
  return typeof path.original === "string" && path.original === path.parts[0] ? path.original : null;
}

function textOf(path: Ast | undefined): string {
  return unmaskText(String(path?.original ?? "")).slice(0, 100);
}

function lowerBlock(node: Ast, lowering: Lowering): IfNode | EachNode | null {
  const word = wordOf(node.path);
  if (word === null || !BLOCKS.has(word)) {
    return fail(lowering, node, `there is no block '${textOf(node.path)}'; there are if, unless and each`);
  }
  if (node.hash) return fail(lowering, node, "name=value arguments are not part of the template language");
  if (node.params?.length !== 1) return fail(lowering, node, `'${word}' takes exactly one name`);
  return word === "each"
    ? lowerEach(node, node.params[0] as Ast, lowering)
    : lowerIf(node, node.params[0] as Ast, word === "unless", lowering);
}

function lowerIf(node: Ast, param: Ast, negated: boolean, lowering: Lowering): IfNode | null {
  lowering.guards += 1;
  const condition = lowerExpression(param, lowering);
  const body = lowerProgram(node.program, lowering);
  const otherwise = lowerProgram(node.inverse, lowering);
  lowering.guards -= 1;
  return condition && { kind: "if", condition, negated, body, otherwise, place: placeOf(node) };
}

// With an {{else}} the author has thought of an absent list.
function lowerEach(node: Ast, param: Ast, lowering: Lowering): EachNode | null {
  const guard = node.inverse ? 1 : 0;
  lowering.guards += guard;
  const list = lowerValue(param, lowering);
  lowering.guards -= guard;
  if (list && list.kind !== "path") return fail(lowering, param, "'each' takes the name of a list or an object");
  lowering.loops += 1;
  const body = lowerProgram(node.program, lowering);
  lowering.loops -= 1;
  const otherwise = lowerProgram(node.inverse, lowering);
  return list && { kind: "each", list, body, otherwise, place: placeOf(node) };
}

function lowerExpression(node: Ast | undefined, lowering: Lowering): Expression | null {
  switch (node?.type) {
    case "StringLiteral":
    case "NumberLiteral":
    case "BooleanLiteral":
      return { kind: "literal", value: node.value as string | number | boolean };
    case "NullLiteral":
    case "UndefinedLiteral":
      return { kind: "literal", value: null };
    default:
      return lowerValue(node, lowering);
  }
}

function lowerValue(node: Ast | undefined, lowering: Lowering): Path | LoopValue | null {
  if (node?.type !== "PathExpression") return fail(lowering, node, "the name of a variable is expected here");
  const keys: string[] = [];
  for (const part of node.parts ?? []) {
    const key = typeof part === "string" ? unmaskName(part) : null;
    if (key === null) return fail(lowering, node, `'${textOf(node)}' is not a name`);
    keys.push(key);
  }
  if (keys.length > PATH_KEYS_MAX) return fail(lowering, node, `a path has at most ${PATH_KEYS_MAX} names`);
  const word = wordOf(node);
  if (word !== null && RESERVED.has(word)) {
    return fail(lowering, node, `'${word}' is a word of the language; write [${word}] for a variable of that name`);
  }
  return node.data ? lowerAtName(node, keys, lowering) : lowerPath(node, keys, node.depth ?? 0, lowering);
}

function lowerAtName(node: Ast, keys: string[], lowering: Lowering): Path | LoopValue | null {
  const [word, ...rest] = keys;
  const up = node.depth ?? 0;
  if (word === "root" && up === 0) return lowerPath(node, rest, lowering.loops, lowering);
  if (word === undefined || !LOOP_WORDS.has(word) || rest.length > 0) {
    return fail(lowering, node, `there is no '${textOf(node)}'; there are @index, @first, @last, @key and @root`);
  }
  if (up >= lowering.loops) return fail(lowering, node, `'${textOf(node)}' has a value only inside {{#each}}`);
  return { kind: "loop", up, which: word as LoopValue["which"] };
}

function lowerPath(node: Ast, keys: string[], up: number, lowering: Lowering): Path | null {
  if (up > lowering.loops) return fail(lowering, node, "'../' leads out of a loop, and there is none around it");
  const name = nameOf(keys);
  if (name.length > PATH_LENGTH_MAX) return fail(lowering, node, `a path has at most ${PATH_LENGTH_MAX} characters`);
  if (up < lowering.loops) return { kind: "path", up, keys, name: null };
  if (keys.length === 0) lowering.reads_all = true;
  else noteVariable(name, keys, lowering);
  return { kind: "path", up, keys, name };
}

function noteVariable(name: string, keys: string[], lowering: Lowering): void {
  const required = lowering.guards === 0;
  const known = lowering.variables.get(name);
  if (!known) lowering.variables.set(name, { name, keys, required });
  else if (required) known.required = true;
}
