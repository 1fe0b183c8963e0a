// What the house style needs to know about a source file, read from its syntax tree by TypeScript's own parser
// (typescript/unstable: the programmatic interface of TypeScript 7, pinned by package.json). Knows no rule.
import * as ts from "typescript/unstable/ast";
import { createVirtualFileSystem } from "typescript/unstable/fs";
import { API } from "typescript/unstable/sync";

export type Import = {
  specifier: string;
  /** The values it brings in, under the names they have where they come from; `*` for all. */
  names: string[];
  /** Types and values, and of a namespace the members that are used. */
  taken: string[];
  type_only: boolean;
  line: number;
};
export type Found = { what: string; line: number };
/** `type`: a type or interface declared here. */
export type Export = Found & { type: boolean };

export type Source = {
  /** From the root of the repository, with forward slashes: `src/mail/address.ts`. */
  path: string;
  text: string;
  lines: number;
  imports: Import[];
  exports: Export[];
  functions: { name: string; line: number; lines: number; parameters: number }[];
  /** Enums, namespaces, decorators, parameter properties, default exports. */
  syntax: Found[];
  /** Clock, randomness, environment, fetch, sleeping: what comes in through World elsewhere. */
  ambient: Found[];
  /** String and template literals; `${…}` reads `?`. */
  literals: Found[];
  /** Regular expressions that are written as such. */
  expressions: Found[];
};

type Reader = Source & { file: ts.SourceFile; line_starts: number[] };

const AMBIENT_CALLS = new Map([
  ["Date.now", "the clock"],
  ["Date", "the clock"],
  ["performance.now", "the clock"],
  ["process.hrtime", "the clock"],
  ["process.hrtime.bigint", "the clock"],
  ["Math.random", "randomness"],
  ["crypto.randomUUID", "randomness"],
  ["crypto.randomBytes", "randomness"],
  ["crypto.getRandomValues", "randomness"],
  ["globalThis.fetch", "fetch"],
]);
const RANDOM_OF_CRYPTO = /^(random|getRandomValues|webcrypto)/;

// One parser process for all calls; each call parses in a folder of its own.
const files = createVirtualFileSystem({});
let parser: API | null = null;
let batches = 0;

/** Parses files given as path → text. Throws when one of them is not in the syntax of TypeScript. */
export function readSources(texts: ReadonlyMap<string, string>): Source[] {
  batches += 1;
  const folder = `/batch-${batches}`;
  const options = { noLib: true, noResolve: true, types: [], allowImportingTsExtensions: true, noEmit: true };
  files.writeFile!(`${folder}/tsconfig.json`, JSON.stringify({ compilerOptions: options, files: [...texts.keys()] }));
  for (const [path, text] of texts) files.writeFile!(`${folder}/${path}`, text);
  parser ??= new API({ cwd: "/", fs: files });
  const snapshot = parser.updateSnapshot({ openProjects: [`${folder}/tsconfig.json`] });
  const { program } = snapshot.getProject(`${folder}/tsconfig.json`)!;
  const sources = [...texts.keys()].map((path) => {
    const wrong = program.getSyntacticDiagnostics(`${folder}/${path}`)[0];
    if (wrong) throw new Error(`${path}: ${wrong.text}`);
    return readSource(path, program.getSourceFile(`${folder}/${path}`)!);
  });
  snapshot.dispose();
  return sources;
}

/** Ends the parser's process. */
export function closeParser(): void {
  parser?.close();
  parser = null;
}

function readSource(path: string, file: ts.SourceFile): Source {
  const { text } = file;
  const reader: Reader = {
    file,
    line_starts: [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)],
    path,
    text,
    lines: text.endsWith("\n") ? text.split("\n").length - 1 : text.split("\n").length,
    imports: [],
    exports: [],
    functions: [],
    syntax: [],
    ambient: [],
    literals: [],
    expressions: [],
  };
  visit(reader, file);
  const { file: _file, line_starts: _starts, ...source } = reader;
  return source;
}

function visit(reader: Reader, node: ts.Node): void {
  readImport(reader, node);
  readExport(reader, node);
  readFunction(reader, node);
  readSyntax(reader, node);
  readAmbient(reader, node);
  readLiteral(reader, node);
  node.forEachChild((child) => visit(reader, child));
}

function lineOf(reader: Reader, node: ts.Node): number {
  return lineAt(reader, node.getStart(reader.file));
}

function lineAt(reader: Reader, position: number): number {
  const next = reader.line_starts.findIndex((start) => start > position);
  return next === -1 ? reader.line_starts.length : next;
}

function found(reader: Reader, node: ts.Node, what: string): Found {
  return { what, line: lineOf(reader, node) };
}

// Imports and exports ------------------------------------------------------------------------------------------------

function readImport(reader: Reader, node: ts.Node): void {
  if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) {
    const specifier = node.moduleSpecifier.text;
    const clause = node.importClause?.getText(reader.file) ?? "";
    const type_only = /^type\b/.test(clause) || /^\{(\s*type\s[^,}]+,?)+\s*\}$/.test(clause);
    const taken = [...namedIn(clause), ...membersOf(reader, node)];
    reader.imports.push({ specifier, names: importedValues(clause), taken, type_only, line: lineOf(reader, node) });
  } else if (ts.isExportDeclaration(node) && node.moduleSpecifier && ts.isStringLiteral(node.moduleSpecifier)) {
    const type_only = /^export type\b/.test(node.getText(reader.file));
    reader.imports.push({
      specifier: node.moduleSpecifier.text,
      names: type_only ? [] : ["*"],
      taken: node.exportClause ? namedIn(node.exportClause.getText(reader.file)) : ["*"],
      type_only,
      line: lineOf(reader, node),
    });
  } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
    const [argument] = node.arguments;
    if (argument && ts.isStringLiteral(argument)) {
      const all = { names: ["*"], taken: ["*"], type_only: false };
      reader.imports.push({ specifier: argument.text, ...all, line: lineOf(reader, node) });
    }
  } else if (ts.isImportTypeNode(node)) {
    const specifier = /^(?:typeof\s+)?import\(\s*"([^"]*)"/.exec(node.getText(reader.file))?.[1] ?? "";
    reader.imports.push({ specifier, names: [], taken: ["*"], type_only: true, line: lineOf(reader, node) });
  }
}

/** The names in braces, values and types. */
function namedIn(clause: string): string[] {
  const braces = /\{([^}]*)\}/.exec(clause)?.[1] ?? "";
  const names = braces.split(",").map((part) => part.trim().replace(/^type\s+/, ""));
  return names.map((name) => name.split(/\s+as\s+/)[0] ?? "").filter((name) => name !== "");
}

/** What is used of a namespace; `*` when it is passed on whole. */
function membersOf(reader: Reader, declaration: ts.ImportDeclaration): string[] {
  const bindings = declaration.importClause?.namedBindings;
  if (!bindings || !ts.isNamespaceImport(bindings)) return [];
  const { text } = bindings.name;
  const members: string[] = [];
  const look = (node: ts.Node): void => {
    if (ts.isIdentifier(node) && node.text === text && !isNameOf(node)) members.push(memberOf(reader, node));
    node.forEachChild(look);
  };
  look(reader.file);
  return members;
}

/** The name that something is declared or reached by (`b.a`, `{ a: 1 }`), and not a use of what is imported as `a`. */
function isNameOf(node: ts.Node): boolean {
  return (node.parent as { name?: ts.Node }).name === node && !ts.isShorthandPropertyAssignment(node.parent);
}

function memberOf(reader: Reader, { parent }: ts.Identifier): string {
  if (ts.isPropertyAccessExpression(parent)) return parent.name.getText(reader.file);
  return ts.isQualifiedName(parent) ? parent.right.getText(reader.file) : "*";
}

/** The values an import clause brings in, under the names they have where they come from; `*` for all of them. */
function importedValues(clause: string): string[] {
  if (clause === "" || /^type\b/.test(clause)) return [];
  const braces = /\{([^}]*)\}/.exec(clause)?.[1] ?? "";
  const named = braces.split(",").map((part) => part.trim().split(/\s+as\s+/)[0] ?? "");
  const whole = clause
    .replace(/\{[^}]*\}/, "")
    .replaceAll(",", "")
    .trim();
  return [...named.filter((name) => name !== "" && !name.startsWith("type ")), ...(whole === "" ? [] : ["*"])];
}

function readExport(reader: Reader, node: ts.Node): void {
  if (ts.isExportAssignment(node)) reader.syntax.push(found(reader, node, "export default"));
  if (ts.isExportDeclaration(node) && node.exportClause && ts.isNamedExports(node.exportClause)) {
    for (const element of node.exportClause.elements) {
      reader.exports.push({ ...found(reader, element, element.name.getText(reader.file)), type: false });
    }
  }
  const modifiers = modifiersOf(node);
  if (!modifiers.includes(ts.SyntaxKind.ExportKeyword)) return;
  if (modifiers.includes(ts.SyntaxKind.DefaultKeyword)) reader.syntax.push(found(reader, node, "export default"));
  const type = ts.isTypeAliasDeclaration(node) || ts.isInterfaceDeclaration(node);
  for (const name of declaredNames(node)) {
    reader.exports.push({ ...found(reader, node, name.getText(reader.file)), type });
  }
}

function modifiersOf(node: ts.Node): ts.SyntaxKind[] {
  const { modifiers } = node as { modifiers?: readonly ts.Node[] };
  return (modifiers ?? []).map((modifier) => modifier.kind);
}

function declaredNames(node: ts.Node): ts.Node[] {
  if (ts.isVariableStatement(node)) return node.declarationList.declarations.map((declaration) => declaration.name);
  const { name } = node as { name?: ts.Node };
  return name ? [name] : [];
}

// Functions and syntax -----------------------------------------------------------------------------------------------

function readFunction(reader: Reader, node: ts.Node): void {
  const { parameters, body } = node as { parameters?: readonly ts.ParameterDeclaration[]; body?: ts.Node };
  if (!parameters || !isFunction(node)) return;
  const line = lineOf(reader, node);
  const lastLine = lineAt(reader, node.getEnd());
  const own = parameters.filter((parameter) => parameter.name.getText(reader.file) !== "this");
  const lines = body ? lastLine - line + 1 : 0;
  reader.functions.push({ name: nameOf(reader, node), line, lines, parameters: own.length });
}

function isFunction(node: ts.Node): boolean {
  return (
    ts.isFunctionDeclaration(node) ||
    ts.isFunctionExpression(node) ||
    ts.isArrowFunction(node) ||
    ts.isMethodDeclaration(node) ||
    ts.isConstructorDeclaration(node) ||
    ts.isGetAccessorDeclaration(node) ||
    ts.isSetAccessorDeclaration(node)
  );
}

function nameOf(reader: Reader, node: ts.Node): string {
  const { name } = node as { name?: ts.Node };
  const holder = name ?? (node.parent as { name?: ts.Node } | undefined)?.name;
  return holder?.getText(reader.file) ?? "a function";
}

function readSyntax(reader: Reader, node: ts.Node): void {
  if (ts.isEnumDeclaration(node)) reader.syntax.push(found(reader, node, "enum"));
  if (ts.isModuleDeclaration(node) && !isGlobalOrModuleAugmentation(node)) {
    reader.syntax.push(found(reader, node, "namespace"));
  }
  if (ts.isDecorator(node)) reader.syntax.push(found(reader, node, "decorator"));
  if (ts.isParameterDeclaration(node) && modifiersOf(node).length > 0) {
    reader.syntax.push(found(reader, node, "parameter property"));
  }
}

/** `declare module "fastify"` only tells the type checker something; no code comes of it. */
function isGlobalOrModuleAugmentation(node: ts.ModuleDeclaration): boolean {
  return ts.isStringLiteral(node.name) || node.name.getText() === "global";
}

// Ambient effects ----------------------------------------------------------------------------------------------------

function readAmbient(reader: Reader, node: ts.Node): void {
  const push = (what: string) => reader.ambient.push(found(reader, node, what));
  if (ts.isImportDeclaration(node)) readAmbientImport(reader.imports.at(-1), push);
  if (ts.isPropertyAccessExpression(node) && node.getText(reader.file) === "process.env") push("the environment");
  if (ts.isNewExpression(node) && node.expression.getText(reader.file) === "Date" && !node.arguments?.length) {
    push("the clock");
  }
  if (!ts.isCallExpression(node)) return;
  const callee = node.expression.getText(reader.file);
  const effect = AMBIENT_CALLS.get(callee);
  if (effect) push(effect);
  if (callee === "fetch" && !declaresFetch(reader)) push("fetch");
  if (callee === "setTimeout" && resolvesPromise(reader, node)) push("sleeping");
}

function readAmbientImport(latest: Import | undefined, push: (what: string) => void): void {
  if (!latest || latest.type_only) return;
  const module = latest.specifier.replace(/^node:/, "");
  if (/^dns(\/|$)/.test(module)) push("DNS");
  if (module === "timers/promises" && latest.names.some((name) => name !== "setImmediate")) push("sleeping");
  if (module === "process" && latest.names.includes("env")) push("the environment");
  if (module === "perf_hooks" && latest.names.includes("performance")) push("the clock");
  if (module === "crypto" && latest.names.some((name) => RANDOM_OF_CRYPTO.test(name))) push("randomness");
}

/** A parameter, variable or import of that name is not the global one. */
function declaresFetch(reader: Reader): boolean {
  return /\b(?:const|let|function)\s+fetch\b|[({,]\s*fetch\s*[:,)}=]/.test(reader.text);
}

/** `new Promise((resolve) => setTimeout(resolve, …))`: waiting, not a limit on something else. */
function resolvesPromise(reader: Reader, call: ts.CallExpression): boolean {
  const first = call.arguments[0]?.getText(reader.file);
  for (let node: ts.Node | undefined = call.parent; node; node = node.parent) {
    if (!ts.isArrowFunction(node) && !ts.isFunctionExpression(node)) continue;
    const resolve = node.parameters[0]?.name.getText(reader.file);
    const isExecutor = ts.isNewExpression(node.parent) && node.parent.expression.getText(reader.file) === "Promise";
    if (isExecutor) return resolve !== undefined && (first === resolve || first === `() => ${resolve}()`);
  }
  return false;
}

function readLiteral(reader: Reader, node: ts.Node): void {
  if (ts.isRegularExpressionLiteral(node)) reader.expressions.push({ what: node.text, line: lineOf(reader, node) });
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) {
    reader.literals.push(found(reader, node, node.text));
  } else if (ts.isTemplateExpression(node)) {
    const text = node.head.text + node.templateSpans.map((span) => `?${span.literal.text}`).join("");
    reader.literals.push(found(reader, node, text));
  }
}
