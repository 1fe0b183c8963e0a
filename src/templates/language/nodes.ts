// What a template is once parsed: a small tree of our own, with nothing in it that could be called. Also the limits that
// hold at parse and at render. Not here: the syntax (scan.ts, lower.ts) and its meaning (render.ts).

/** 512 KiB of UTF-8 for one source. */
export const SOURCE_BYTES_MAX = 512 * 1024;
/** 2 MiB of UTF-8 for one rendered text. */
export const OUTPUT_BYTES_MAX = 2 * 1024 * 1024;
/** One step is one tag carried out or one turn of a loop. */
export const STEPS_MAX = 10_000;
export const RENDER_MS_MAX = 200;
/** More tags than steps could never all be carried out. */
export const TAGS_MAX = STEPS_MAX;
/** Names and separators inside tags: the parser takes 2–3 µs for each, so this bounds it to about 0.2 s. */
export const TAG_PARTS_MAX = 40_000;
/** Blocks within blocks; every `else if` counts as one, as it does in the parser's own stack. */
export const NESTING_MAX = 100;
export const PATH_KEYS_MAX = 20;
export const PATH_LENGTH_MAX = 256;

/**
 * Where a value comes from: `up` loops out from the innermost (or the variables themselves when `name` is set), then one
 * own property after another. `name` is the canonical name of a path that starts at the variables, else null.
 */
export type Path = { kind: "path"; up: number; keys: readonly string[]; name: string | null };
export type LoopValue = { kind: "loop"; up: number; which: "index" | "first" | "last" | "key" };
export type Literal = { kind: "literal"; value: string | number | boolean | null };
export type Expression = Path | LoopValue | Literal;

/** Line and column, both counted from 1. */
export type Place = { line: number; column: number };

export type TextNode = { kind: "text"; text: string };
export type PrintNode = {
  kind: "print";
  value: Path | LoopValue;
  /** The second argument of `{{default value fallback}}`. */
  fallback: Expression | null;
  raw: boolean;
  place: Place;
};
export type IfNode = {
  kind: "if";
  condition: Expression;
  /** `unless`. */
  negated: boolean;
  body: readonly Node[];
  otherwise: readonly Node[];
  place: Place;
};
export type EachNode = {
  kind: "each";
  list: Path;
  body: readonly Node[];
  otherwise: readonly Node[];
  place: Place;
};
export type Node = TextNode | PrintNode | IfNode | EachNode;

/** A variable that a source reads: `keys` lead to it; `required` when it is read outside `default`, `if` and `unless`. */
export type Variable = { name: string; keys: readonly string[]; required: boolean };

/** Made by `parseTemplate` only; `renderTemplate` takes nothing else. */
export type Template = {
  readonly nodes: readonly Node[];
  readonly variables: readonly Variable[];
  /** Reads the variables as a whole (`{{#each this}}`), so none of them is unused. */
  readonly reads_all: boolean;
  readonly tags: number;
  readonly bytes: number;
};

export type TemplateProblem = { ok: false; message: string } & Place;
