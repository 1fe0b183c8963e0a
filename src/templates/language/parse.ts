// Templates: a bounded subset of the Handlebars language. Syntax by @handlebars/parser, behind our own pass that limits
// it (scan.ts); the result is a tree of our own (lower.ts) that is interpreted (render.ts), never compiled to code.
// The language: {{name}} {{{raw}}} {{&raw}} a.b.c a/b items[0].name [any name] this ../name @root.name;
// {{#if}} {{#unless}} {{#each}} with {{else}} and {{else if}}; @index @first @last @key; {{default name "friend"}};
// {{! comments}}; ~ takes white space away; \{{ is text. Lines that hold nothing but a block tag or a comment leave no
// empty line behind, as in Handlebars.
import { parse, parseWithoutProcessing } from "@handlebars/parser";
import { type Ast, type Lowering, lowerProgram } from "./lower.ts";
import { type Place, SOURCE_BYTES_MAX, type Template, type TemplateProblem, type Variable } from "./nodes.ts";
import { scanTemplate, unmaskText } from "./scan.ts";

export type Parsed = { ok: true; template: Template } | TemplateProblem;

// Trees that came from here. A tree from anywhere else (Handlebars CVE-2026-33937: JSON handed in as a parsed template)
// is not a template, whatever it looks like.
const made = new WeakSet<object>();

/**
 * Parses a source of at most 512 KiB. A source that is not text, or not in the language, gives a sentence with line and
 * column (from 1). Takes at most about 0.3 s for the worst source, 10 µs a tag for an ordinary one.
 */
export function parseTemplate(source: string): Parsed {
  // Deliberate: the parser takes an object for a parsed template; only text gets to it.
  if (typeof source !== "string") return { ok: false, message: "a template must be text", line: 1, column: 1 };
  const bytes = Buffer.byteLength(source);
  if (bytes > SOURCE_BYTES_MAX) {
    return { ok: false, message: `the source is larger than ${SOURCE_BYTES_MAX / 1024} KiB`, line: 1, column: 1 };
  }
  const nul = source.indexOf("\0");
  if (nul !== -1) return { ok: false, message: "there is a NUL character here", ...placeAt(source, nul) };
  const scan = scanTemplate(source);
  if (!scan.ok) return { ok: false, message: scan.message, ...placeAt(source, scan.at) };
  const tree = readTree(scan.text);
  if ("message" in tree) return { ok: false, ...tree };
  return lower(tree, scan.tags, bytes);
}

/** True if `value` was made by `parseTemplate`. */
export function isTemplate(value: unknown): value is Template {
  return typeof value === "object" && value !== null && made.has(value);
}

/** The variables that a template reads, in the order of their first use. */
export function variablesOf(template: Template): readonly Variable[] {
  return template.variables;
}

/** Reads the name of a variable as it would stand in a tag (`user.name`, `items[0]`); null when it is not one. */
export function parseVariableName(text: string): { name: string; keys: readonly string[] } | null {
  const parsed = parseTemplate(`{{${text}}}`);
  if (!parsed.ok || parsed.template.nodes.length !== 1) return null;
  const node = parsed.template.nodes[0];
  const isPlain = node?.kind === "print" && !node.raw && node.fallback === null && node.value.kind === "path";
  const variable = parsed.template.variables[0];
  return isPlain && variable ? { name: variable.name, keys: variable.keys } : null;
}

function lower(tree: Ast, tags: number, bytes: number): Parsed {
  const lowering: Lowering = { variables: new Map(), reads_all: false, problem: null, loops: 0, guards: 0 };
  const nodes = lowerProgram(tree, lowering);
  if (lowering.problem) return { ok: false, ...lowering.problem };
  const template: Template = Object.freeze({
    nodes,
    variables: [...lowering.variables.values()],
    reads_all: lowering.reads_all,
    tags,
    bytes,
  });
  made.add(template);
  return { ok: true, template };
}

function placeAt(source: string, at: number): Place {
  const before = source.slice(0, at).split(/\r\n?|\n/);
  return { line: before.length, column: (before.at(-1) as string).length + 1 };
}

const MESSAGE_LENGTH_MAX = 200;

type GrammarError = Error & {
  lineNumber?: number;
  column?: number;
  hash?: { text: string; token: string | null; line: number; loc?: { last_line: number; last_column: number } };
};

function readTree(text: string): Ast | ({ message: string } & Place) {
  try {
    return parse(parseWithoutProcessing(text) as unknown as string) as Ast;
  } catch (error) {
    const problem = grammarProblem(error as GrammarError);
    if (!problem) throw error;
    return problem;
  }
}

// The parser has two kinds of errors: its own with a line number, and its generated automaton's with a hash.
function grammarProblem(error: GrammarError): ({ message: string } & Place) | null {
  if (typeof error.lineNumber === "number") {
    const message = unmaskText(error.message.replace(/ - \d+:\d+$/, "")).slice(0, MESSAGE_LENGTH_MAX);
    return { message, line: error.lineNumber, column: (error.column ?? 0) + 1 };
  }
  if (!error.hash) return null;
  const { text, token, line, loc } = error.hash;
  const what =
    token === "EOF" ? "the template ends here too early" : `'${unmaskText(text).slice(0, 40)}' is not expected`;
  return { message: `${what} here`, line: loc?.last_line ?? line + 1, column: (loc?.last_column ?? 0) + 1 };
}
