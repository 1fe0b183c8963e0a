// The house style as rules over what tidy-source.ts reads. A rule answers violations; which of them are put up with is
// decided in test/tidy-exemptions.json. The order of the features is written down once, here.
import { basename, posix } from "node:path";
import type { Export, Import, Source } from "./tidy-source.ts";

export type Violation = { rule: string; path: string; line: number; message: string };
export type Exemption = { rule: string; path: string; reason: string };

/** Each may import only those before it. */
export const FEATURES = [
  ..."accounts audit people domains dkim templates suppressions warming stats webhooks events".split(" "),
  ..."outbound sending submission aliases dmarc inbound masked privacy".split(" "),
];

/** Bytes in, values out: no SQL, clock, environment or network. Each imports nothing but itself and mail/. */
const PURE_PATHS = [
  "src/mail/",
  "src/text/",
  "src/masked/rewrite/",
  "src/inbound/rules/conditions/",
  "src/suppressions/import/",
  "src/templates/language/",
];

/** Of these neither may use the other, since one is there to find the mistakes of the other. */
const STRANGERS = [["src/masked/rewrite/gate/", "src/masked/rewrite/scrub/"]];

const FILE_LINES_MAX = 500;
const FUNCTION_LINES_MAX = 70;
const EXPRESSION_CHARS_MAX = 200;
const PARAMETERS_MAX = 4;
const BANNED_ANYWHERE = /^(manager|managers|helper|helpers|util|utils|common)$/;
const BANNED_AS_NAME_OR_SUFFIX = /^(base|service|services|data|info)$/;

/** What a pure library may take from the modules of Node that reach outside. */
const PURE_PARTS = new Map([
  ["net", ["isIP", "isIPv4", "isIPv6"]],
  ["timers/promises", ["setImmediate"]],
  ["tls", ["createSecureContext", "checkServerIdentity", "rootCertificates"]],
  ...["dgram", "dns", "dns/promises", "fs", "fs/promises", "http", "http2", "https", "os"].map(none),
  ...["child_process", "cluster", "worker_threads", "sqlite"].map(none),
]);
const PACKAGES_OF_THE_WORLD = /^(pg|undici|fastify|pino|@prometheus-io\/client|s3mini)(\/|$)/;

function none(module: string): [string, string[]] {
  return [module, []];
}

/** Every violation of the rules that look at one file. */
export function checkSource(source: Source): Violation[] {
  const rules = [
    ...[checkLayout, checkImports, checkSize, checkSyntax, checkNames, checkAmbient, checkHeader],
    checkCitations,
  ];
  return rules.flatMap((rule) => rule(source));
}

/** Tests and what only tests use: they may reach for anything, and a list of cases may be long. */
function isTest(path: string): boolean {
  return /\.(test|fixture)\.ts$/.test(path);
}

// Layers and imports -------------------------------------------------------------------------------------------------

type Layer =
  | "main"
  | "app"
  | "config"
  | "ports"
  | "dashboard"
  | "api"
  | "feature"
  | "http"
  | "parsing"
  | "mail"
  | "platform"
  | "text"
  | "unknown";

/** Where a process or a thread begins. */
const MAINS = ["main.ts", "heavy-worker.ts", "heavy-service.ts"];
/** What stands beside the features and may look into all of them. */
const APP = ["app.ts", "world.ts", "doctor.ts"];

function layerOf(path: string): Layer {
  const [, first = "", ...rest] = path.split("/");
  if (rest.length === 0) return MAINS.includes(first) ? "main" : APP.includes(first) ? "app" : ofFile(path);
  if (first === "settings") return "config";
  if (first === "commands") return "main";
  if (["doctor", "backup", "cells", "certificates", "moving", "setup"].includes(first)) return "app";
  if (isLayer(first)) return first;
  return FEATURES.includes(first) ? "feature" : "unknown";
}

/** The folders of src/ that are a layer each. */
function isLayer(folder: string): folder is "dashboard" | "api" | "http" | "parsing" | "mail" | "platform" | "text" {
  return ["dashboard", "api", "http", "parsing", "mail", "platform", "text"].includes(folder);
}

function ofFile(path: string): Layer {
  return path === "src/config.ts" ? "config" : path === "src/ports.ts" ? "ports" : "unknown";
}

/** Which layers each may import, besides its own folder. */
const BELOW: Record<Layer, Layer[]> = {
  main: [
    "main",
    "app",
    "config",
    "ports",
    "dashboard",
    "api",
    "feature",
    "http",
    "parsing",
    "mail",
    "platform",
    "text",
  ],
  app: ["app", "config", "ports", "dashboard", "api", "feature", "http", "parsing", "mail", "platform", "text"],
  ports: ["api", "feature", "http", "mail", "platform", "text"],
  config: ["config", "mail", "platform", "text"],
  dashboard: ["api", "feature", "http", "mail", "platform", "text"],
  api: ["feature", "http", "parsing", "mail", "platform", "text"],
  feature: ["feature", "http", "parsing", "mail", "platform", "text"],
  http: ["mail", "platform", "text"],
  parsing: ["mail", "platform", "text"],
  platform: ["text"],
  mail: ["text"],
  text: [],
  unknown: [],
};

function checkLayout(source: Source): Violation[] {
  const { path } = source;
  const violations: Violation[] = [];
  const report = (message: string) => violations.push({ rule: "layout", path, line: 1, message });
  if (layerOf(path) === "unknown" && !isTest(path)) {
    report(
      "is at home in no layer: src/ holds main.ts, heavy-worker.ts, heavy-service.ts, app.ts, ports.ts, world.ts, doctor.ts, config.ts, commands/, settings/, doctor/, backup/, cells/, certificates/, moving/, setup/, dashboard/, api/, http/, parsing/, mail/, platform/, text/ and the features",
    );
  }
  if (!/^[a-z0-9]+(-[a-z0-9]+)*(\.((long\.)?test|fixture|d))?\.ts$/.test(basename(path)))
    report("is not named in kebab-case");
  if (basename(path) === "index.ts") report("is a barrel: import the file that holds the thing");
  return violations;
}

function checkImports(source: Source): Violation[] {
  if (isTest(source.path)) return [];
  return source.imports.flatMap((wanted) => {
    const message = wanted.specifier.startsWith(".") ? whyNotFile(source.path, wanted) : whyNotModule(source, wanted);
    return message === null ? [] : [{ rule: "imports", path: source.path, line: wanted.line, message }];
  });
}

function whyNotFile(path: string, wanted: Import): string | null {
  const target = posix.join(posix.dirname(path), wanted.specifier);
  const [from, to] = [layerOf(path), layerOf(target)];
  if (from === "main" && target === "clients/cli/cli.ts") return null; // one program for operators and for clients
  if (!target.startsWith("src/")) return `reaches outside src/: ${target}`;
  if (isTest(target)) return `imports what only tests use: ${target}`;
  const apart = whyApart(path, target);
  if (apart !== null) return apart;
  if (posix.basename(target) === "config.ts" && wanted.type_only && from !== "mail") return null;
  const [fromFolder, toFolder] = [folderOf(path), folderOf(target)];
  if (fromFolder === toFolder && fromFolder !== "") return null;
  if (path === `src/${toFolder}.ts`) return null; // doctor.ts is the face of doctor/
  if (from === "parsing" && purePathOf(target) !== undefined) return null; // its threads run pure code
  if (!BELOW[from].includes(to))
    return `${from} may not import ${target}: the way is main → app → ports, dashboard → api → features → http, parsing → mail, platform → text`;
  if (to !== "feature" || from === "app" || from === "ports") return null; // these wire whole features
  if (from === "feature" && FEATURES.indexOf(toFolder) > FEATURES.indexOf(fromFolder)) {
    return `${fromFolder} comes before ${toFolder} and may not import it: let app.ts pass a function or a value in`;
  }
  return target === `src/${toFolder}/${toFolder}.ts` || target === `src/${toFolder}/types.ts`
    ? null
    : `only ${toFolder}.ts and types.ts of ${toFolder}/ are its face: ${target}`;
}

/** What stands in the way of this import whatever the layers say: purity, and rooms that check each other. */
function whyApart(path: string, target: string): string | null {
  const pure = purePathOf(path);
  if (
    pure !== undefined &&
    !["mail", "text"].includes(layerOf(target)) &&
    layerOf(path) !== "mail" &&
    !target.startsWith(pure)
  ) {
    return `${pure} is pure and may not import ${target}`;
  }
  const isBetween = STRANGERS.some(
    ([one = "", other = ""]) =>
      (path.startsWith(one) && target.startsWith(other)) || (path.startsWith(other) && target.startsWith(one)),
  );
  return isBetween ? `may not share code with what it checks or is checked by: ${target}` : null;
}

function purePathOf(path: string): string | undefined {
  return PURE_PATHS.find((pure) => path.startsWith(pure));
}

/** The folder below src/ a file belongs to; empty for the files in src/ itself. */
function folderOf(path: string): string {
  const parts = path.split("/");
  return parts.length > 2 ? parts[1]! : "";
}

function whyNotModule(source: Source, wanted: Import): string | null {
  const home = purePathOf(source.path);
  if (home === undefined || wanted.type_only) return null;
  const module = wanted.specifier.replace(/^node:/, "");
  const pure = PURE_PARTS.get(module);
  if (PACKAGES_OF_THE_WORLD.test(module)) return `${home} is pure: ${module} belongs to the outside world`;
  if (!pure || wanted.names.every((name) => pure.includes(name))) return null;
  return `${home} is pure: it may not use ${wanted.names.filter((name) => !pure.includes(name)).join(", ")} of ${wanted.specifier}`;
}

// Size, syntax, names ------------------------------------------------------------------------------------------------

function checkSize(source: Source): Violation[] {
  const { path, lines } = source;
  const violations: Violation[] = [];
  const report = (line: number, message: string) => violations.push({ rule: "size", path, line, message });
  if (lines > FILE_LINES_MAX) report(1, `has ${lines} lines, more than ${FILE_LINES_MAX}`);
  if (isTest(path)) return violations;
  for (const { what, line } of source.expressions) {
    if (what.length > EXPRESSION_CHARS_MAX)
      report(
        line,
        `a regular expression has ${what.length} characters, more than ${EXPRESSION_CHARS_MAX}: anyOf() takes a list`,
      );
  }
  for (const { name, line, lines: length, parameters } of source.functions) {
    if (length > FUNCTION_LINES_MAX) report(line, `${name} has ${length} lines, more than ${FUNCTION_LINES_MAX}`);
    if (parameters > PARAMETERS_MAX) report(line, `${name} has ${parameters} parameters, more than ${PARAMETERS_MAX}`);
  }
  return violations;
}

function checkSyntax(source: Source): Violation[] {
  return source.syntax.map(({ what, line }) => ({ rule: "syntax", path: source.path, line, message: `uses ${what}` }));
}

function checkNames(source: Source): Violation[] {
  const { path } = source;
  const stem = basename(path).split(".")[0] ?? "";
  const names = [{ what: stem, line: 1 }, ...(isTest(path) ? [] : source.exports)];
  return names.flatMap(({ what, line }) => {
    const word = bannedWord(what);
    return word === null ? [] : [{ rule: "names", path, line, message: `"${what}" says nothing: ${word}` }];
  });
}

/** `data` is also a command of SMTP: as a part of a verb's name it stands for what it is, as a type's last word not. */
function bannedWord(name: string): string | null {
  const words = name.split(/[-_]|(?<=[a-z0-9])(?=[A-Z])/).map((word) => word.toLowerCase());
  const anywhere = words.find((word) => BANNED_ANYWHERE.test(word));
  if (anywhere !== undefined) return anywhere;
  const last = words.at(-1) ?? "";
  const alone = words.length === 1 || /^[A-Z][a-z]/.test(name);
  return alone && BANNED_AS_NAME_OR_SUFFIX.test(last) ? last : null;
}

// The world and the head of a file -----------------------------------------------------------------------------------

function checkAmbient(source: Source): Violation[] {
  const { path } = source;
  const layer = layerOf(path);
  if (isTest(path) || layer === "main" || layer === "config") return [];
  return source.ambient
    .filter(({ what }) => what === "the environment" || layer !== "platform")
    .map(({ what, line }) => ({
      rule: "ambient",
      path,
      line,
      message: what === "the environment" ? "only config.ts reads it" : `${what} comes in through World`,
    }));
}

function checkHeader(source: Source): Violation[] {
  if (isTest(source.path) || /^(#!.*\n)?\s*(\/\/|\/\*)/.test(source.text)) return [];
  return [{ rule: "header", path: source.path, line: 1, message: "does not begin by saying what it does" }];
}

/** What a comment refers the reader to is in this repository, or is a standard. */
function checkCitations(source: Source): Violation[] {
  const cited = /\b(?:completions §|interface\.md|design\/[a-z-]+\.md)/.exec(source.text);
  if (!cited) return [];
  const line = source.text.slice(0, cited.index).split("\n").length;
  return [{ rule: "citations", path: source.path, line, message: `cites what is not in this repository: ${cited[0]}` }];
}

// Tables -------------------------------------------------------------------------------------------------------------

/** The tables the migrations create, partitions included. */
export function tablesOf(migrations: string[]): string[] {
  const name = /\bcreate\s+(?:unlogged\s+)?table\s+(?:if\s+not\s+exists\s+)?(?:public\.)?"?([a-z_][a-z0-9_]*)/gi;
  return [...new Set(migrations.flatMap((text) => [...text.matchAll(name)].map((match) => match[1]!.toLowerCase())))];
}

/** Who owns a table that several folders fill, or none does; several owners need the reason that makes them one room. */
export type GivenOwners = Record<string, { owners: string[]; reason: string }>;

/** A table is named only in its owner's queries. The owner is the folder whose queries insert into it, or is `given`. */
export function checkTables(sources: Source[], tables: string[], given: GivenOwners): Violation[] {
  const mentions = sources.filter(({ path }) => !isTest(path)).flatMap((source) => tableMentions(source, tables));
  const owners = ownersOf(mentions, given);
  return mentions.flatMap(({ table, path, line }) => {
    const owner = owners.get(table) ?? [];
    const report = (message: string) => [{ rule: "tables", path, line, message }];
    if (given[table]) return owner.includes(folderOf(path)) ? [] : report(`${table} belongs to ${owner.join(" and ")}`);
    if (owner.length > 1) return report(`${table} is filled by ${owner.join(" and ")}: one of them should own it`);
    if (owner.length === 1 && owner[0] !== folderOf(path)) return report(`${table} belongs to ${owner[0]}`);
    const isQueries = /(^|-)queries(-[a-z0-9-]+)?\.ts$/.test(basename(path)) || folderOf(path) === "platform";
    return isQueries ? [] : report(`names ${table} in SQL outside a queries file`);
  });
}

type Mention = { table: string; path: string; line: number; inserts: boolean };

function ownersOf(mentions: Mention[], given: GivenOwners): Map<string, string[]> {
  const owners = new Map<string, string[]>();
  for (const { table, path, inserts } of mentions) {
    if (!inserts) continue;
    owners.set(table, [...new Set([...(owners.get(table) ?? []), folderOf(path)])]);
  }
  for (const [table, { owners: folders }] of Object.entries(given)) owners.set(table, folders);
  return owners;
}

const SQL =
  /^\s*(?:--[^\n]*\n\s*)*(?:select|insert|update|delete|with|merge|copy|lock|truncate|alter|create|(?:left |inner |cross )?join|from)\b/i;
const BEFORE_A_TABLE = "(?:from|join|into|update|table|truncate|copy|references|only|using|lateral)";

function tableMentions(source: Source, tables: string[]): Mention[] {
  return source.literals
    .filter(({ what }) => SQL.test(what))
    .flatMap(({ what, line }) => {
      const local = new Set(
        [...what.matchAll(/(\w+)\s*(?:\([^()]*\)\s*)?\bas\s+(?:(?:not\s+)?materialized\s+)?\(/gi)].map(
          (match) => match[1],
        ),
      );
      return tables
        .filter((table) => !local.has(table) && mentionOf(table).test(what))
        .map((table) => ({ table, path: source.path, line, inserts: insertionInto(table).test(what) }));
    });
}

function mentionOf(table: string): RegExp {
  return new RegExp(`\\b${BEFORE_A_TABLE}\\s+(?:public\\.)?"?${table}"?(?![\\w.])`, "i");
}

function insertionInto(table: string): RegExp {
  return new RegExp(`\\b(?:insert\\s+into|merge\\s+into|copy)\\s+(?:public\\.)?"?${table}"?(?!\\w)`, "i");
}

// Exports ------------------------------------------------------------------------------------------------------------

/**
 * Whatever `sources` export is imported somewhere: in them, or in what stands beside them (tests, benches). A type may
 * also be exported because something exported here is made of it. What only tests import has a use in its own file.
 */
export function checkExports(sources: Source[], beside: Source[]): Violation[] {
  const [forTests, forUse] = [true, false].map((tests) =>
    takenBy([...sources, ...beside].filter(({ path }) => tests === (isTest(path) || path.startsWith("test/")))),
  );
  const has = (taken: Set<string>, path: string, what: string) =>
    [what, "*"].some((name) => taken.has(`${path} ${name}`));
  const whyIdle = ({ path, text }: Source, { what, type }: Export): string | null => {
    if (has(forUse!, path, what)) return null;
    const isTested = has(forTests!, path, what);
    if ((isTested || type) && isNamedTwice(text, what)) return null;
    return isTested ? `only tests import ${what}` : `nobody imports ${what}`;
  };
  return sources
    .filter(({ path }) => !isTest(path) && !path.endsWith(".d.ts"))
    .flatMap((source) =>
      source.exports.flatMap((exported) => {
        const message = whyIdle(source, exported);
        return message === null ? [] : [{ rule: "exports", path: source.path, line: exported.line, message }];
      }),
    );
}

/** `path name` of all that these import of the repository's own files. */
function takenBy(sources: Source[]): Set<string> {
  return new Set(
    sources.flatMap(({ path, imports }) =>
      imports
        .filter(({ specifier }) => specifier.startsWith("."))
        .flatMap(({ specifier, taken: names }) => {
          const target = posix.join(posix.dirname(path), specifier);
          return names.map((name) => `${target} ${name}`);
        }),
    ),
  );
}

function isNamedTwice(text: string, name: string): boolean {
  return [...text.matchAll(new RegExp(`\\b${name}\\b`, "g"))].length > 1;
}

// Documents and exemptions -------------------------------------------------------------------------------------------

/** ARCHITECTURE.md names every folder of src/, as `name/`. */
export function checkArchitecture(folders: string[], architecture: string | null): Violation[] {
  const path = "ARCHITECTURE.md";
  if (architecture === null) return [{ rule: "architecture", path, line: 1, message: "is missing" }];
  const missing = folders.filter((folder) => !new RegExp(`(^|[^\\w-])${basename(folder)}/`, "m").test(architecture));
  return missing.map((folder) => ({ rule: "architecture", path, line: 1, message: `does not name ${folder}/` }));
}

/** The files and folders that documents name in backticks are there. */
export function checkDocuments(documents: ReadonlyMap<string, string>, exists: (path: string) => boolean): Violation[] {
  return [...documents].flatMap(([path, text]) =>
    text.split("\n").flatMap((content, index) =>
      [...content.matchAll(/`((?:src|test|bench|docs|migrations)\/[\w./-]*)`/g)]
        .map((match) => match[1]!)
        .filter((named) => !exists(named))
        .map((named) => ({ rule: "documents", path, line: index + 1, message: `names ${named}, which is not there` })),
    ),
  );
}

/** What remains after the exemptions, and a violation for every exemption nothing needs any more. */
export function applyExemptions(violations: Violation[], exemptions: Exemption[]): Violation[] {
  const covers = (exemption: Exemption, { rule, path }: Violation) =>
    exemption.rule === rule && exemption.path === path;
  const open = violations.filter((violation) => !exemptions.some((exemption) => covers(exemption, violation)));
  const idle = exemptions.filter((exemption) => !violations.some((violation) => covers(exemption, violation)));
  return [
    ...open,
    ...idle.map(({ rule, path }) => ({ rule, path, line: 1, message: "is exempt and need not be: remove the entry" })),
  ];
}
