// A command for every operation of the API, made from operations.json: `postern domains list`, `postern templates create …`.
import { readFileSync } from "node:fs";
import { Command, Option } from "commander";
import type { Page } from "../../node/src/postern.ts";
import { CliError } from "../exit.ts";
import { recordOf, tableOf } from "../output.ts";
import { acting, readInput, readNamed, type Session, type Surroundings, withGlobals } from "../session.ts";

export type Field = {
  name: string;
  kind: "text" | "number" | "boolean" | "list" | "json";
  values?: string[];
  required: boolean;
  description: string;
};
export type Row = {
  id: string;
  resource: string[];
  method: string;
  summary: string;
  http: string;
  path: string;
  answer: "json" | "text" | "bytes";
  page: string | null;
  unwrap: string | null;
  arguments: { name: string; description: string }[];
  query: Field[];
  body: "json" | "bytes" | null;
  needs_body: boolean;
  fields: Field[];
};

const OPERATIONS = new URL("../operations.json", import.meta.url);
/** Options that all commands have; a field of the same name is given by `--data`. */
const TAKEN = new Set(["profile", "base-url", "json", "quiet", "data", "all", "yes", "file"]);

/** Fields that hold a whole file, by their names: `@path` reads one. */
const WHOLE_FILES = new Set(["csv", "html_body", "text_body", "raw", "public_key"]);
const FROM_FILE = "@path reads it from a file";

export function readOperations(): Row[] {
  return JSON.parse(readFileSync(OPERATIONS, "utf8")) as Row[];
}

/** Adds them all; a command that is written by hand (`send`, `domains add`) stands beside them. */
export function addResources(program: Command, around: Surroundings): void {
  for (const row of readOperations()) addOperation(groupOf(program, row.resource), around, row);
}

/** `masked.aliases` is `postern masked aliases`. */
export function groupOf(program: Command, resource: readonly string[]): Command {
  let group = program;
  for (const [at, part] of resource.entries()) {
    const name = kebab(part);
    const found = group.commands.find((command) => command.name() === name);
    group = found ?? addGroup(group, name, describeGroup(resource.slice(0, at + 1)));
  }
  return group;
}

function addGroup(parent: Command, name: string, description: string): Command {
  return parent.command(name).description(description).helpGroup("Every operation of the API:");
}

const GROUPS: Record<string, string> = {
  aliases: "addresses of your domains, and what happens to their mail",
  api_keys: "keys that authenticate requests",
  audit_log: "who changed what, when and from where",
  dkim: "signing keys of a domain",
  dmarc: "reports about a domain, and who sends in its name",
  "dmarc.reports": "aggregate reports",
  domains: "domains: records, verification, settings",
  "domains.relay": "the server that a domain's mail leaves by instead",
  "domains.spam": "how received mail is judged",
  emails: "sent mail: lists, timelines, content, retry, cancel",
  events: "what would be posted to a webhook, read instead",
  inbound: "received mail: lists, download, replay, simulate",
  inbound_rules: "rules that choose what happens to received mail",
  ip_pools: "sending addresses of your own",
  masked: "addresses that hide the real ones behind them",
  "masked.aliases": "masked addresses and their activity",
  "masked.contacts": "who writes to a masked address",
  "masked.destinations": "the real mailboxes, and their consent",
  "masked.people": "what is kept of one person",
  "masked.domain": "the service's own masked domain",
  "masked.settings": "limits of masked addresses",
  me: "who the key acts for",
  stats: "figures of a domain",
  suppressions: "addresses that get no more mail",
  "suppressions.imports": "lists of other providers",
  templates: "stored subjects and bodies with variables",
  usage: "how much of the plan is used",
  warming: "sending limits of a young domain",
  webhooks: "where events are posted",
  "webhooks.deliveries": "the log of what was posted",
};

function describeGroup(resource: readonly string[]): string {
  return GROUPS[resource.join(".")] ?? resource.join(" ").replaceAll("_", " ");
}

function addOperation(group: Command, around: Surroundings, row: Row): void {
  const command = withGlobals(new Command(kebab(row.method))).description(row.summary);
  for (const { name, description } of row.arguments) command.argument(`<${kebab(name)}>`, description);
  for (const field of [...row.query, ...row.fields]) addField(command, field);
  if (row.body === "json")
    command.option("--data <json>", "the whole body as JSON; @file reads it from a file, - from standard input");
  if (row.body === "bytes") command.requiredOption("--file <path>", "the file to upload");
  if (row.page !== null) command.option("--all", "every page, not only the first");
  if (row.http === "DELETE") command.option("--yes", "do not ask");
  command.action(acting(around, (session, ...args) => perform(session, row, args as unknown[])));
  group.addCommand(command);
}

function addField(command: Command, { name, kind, values, description }: Field): void {
  const flag = kebab(name);
  if (TAKEN.has(flag) || command.options.some(({ long }) => long === `--${flag}`)) return;
  const word = values ? "choice" : kind === "json" ? "json" : kind === "number" ? "number" : "text";
  const text =
    kind === "boolean" ? `--${flag} [true|false]` : kind === "list" ? `--${flag} <text...>` : `--${flag} <${word}>`;
  const about = shortened(description);
  const option = new Option(text, kind === "text" && WHOLE_FILES.has(name) ? `${about}; ${FROM_FILE}` : about);
  if (values && kind === "text") option.choices(values);
  command.addOption(option);
}

/** The first sentence: the rest is in the reference. */
function shortened(text: string): string {
  const [first = ""] = text.split(/(?<=\.)\s/);
  return first.replace(/\.$/, "");
}

async function perform(session: Session, row: Row, args: unknown[]): Promise<void> {
  const command = args.at(-1) as Command;
  const options = command.opts() as Record<string, unknown>;
  const path = args.slice(0, row.arguments.length) as string[];
  if (row.http === "DELETE") await confirm(session, `${row.summary}: ${path.join(" ")}?`, options.yes === true);
  const input =
    row.body === "json"
      ? await bodyOf(session, row, options)
      : row.body === "bytes"
        ? readNamed(String(options.file), "--file")
        : queryOf(row, options);
  const takesInput = row.body !== null || row.query.length > 0;
  const answer = await callOf(session, row)(...path, ...(takesInput ? [input] : []));
  if (row.page !== null) return showPage(session, row, answer as Page<Record<string, unknown>>, options.all === true);
  show(session, row, answer);
}

/** The library's method for an operation. */
export function callOf(session: Session, { resource, method }: Row): (...args: unknown[]) => Promise<unknown> {
  let at = session.client() as unknown as Record<string, unknown>;
  for (const part of resource) at = at[camel(part)] as Record<string, unknown>;
  return at[camel(method)] as never;
}

function queryOf(row: Row, options: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(row.query.flatMap((field) => optionValue(field, options)));
}

async function bodyOf(session: Session, row: Row, options: Record<string, unknown>): Promise<unknown> {
  const fields = Object.fromEntries(row.fields.flatMap((field) => optionValue(field, options)));
  if (options.data === undefined) {
    const lacking = row.fields.filter(({ name, required }) => required && fields[name] === undefined);
    if (lacking.length > 0 && row.needs_body) {
      throw new CliError(
        `missing: ${lacking.map(({ name }) => `--${kebab(name)}`).join(", ")} (or give the body by --data)`,
      );
    }
    return fields;
  }
  const given = await jsonOf(session, String(options.data), "--data");
  return Array.isArray(given) ? given : { ...(given as object), ...fields };
}

function optionValue({ name, kind }: Field, options: Record<string, unknown>): [string, unknown][] {
  const given = options[camel(kebab(name).replaceAll("-", "_"))];
  if (given === undefined) return [];
  if (kind === "boolean") {
    if (given !== true && given !== "true" && given !== "false")
      throw new CliError(`--${kebab(name)} takes true or false, not '${given}'`);
    return [[name, given !== "false"]];
  }
  if (kind === "number") {
    if (!/^-?\d+(\.\d+)?$/.test(String(given))) throw new CliError(`--${kebab(name)} takes a number, not '${given}'`);
    return [[name, Number(given)]];
  }
  const text = String(given);
  if (kind === "text" && WHOLE_FILES.has(name) && text.startsWith("@")) {
    return [[name, readNamed(text.slice(1), `--${kebab(name)}`).toString()]];
  }
  return [[name, kind === "json" ? parsed(text, `--${kebab(name)}`) : given]];
}

async function jsonOf(session: Session, text: string, option: string): Promise<unknown> {
  if (text === "-") return parsed((await readInput(session)).toString(), option);
  return parsed(text.startsWith("@") ? readNamed(text.slice(1), option).toString() : text, option);
}

function parsed(text: string, option: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CliError(`${option} is not JSON: ${(error as Error).message}`);
  }
}

async function showPage({ out }: Session, row: Row, page: Page<Record<string, unknown>>, all: boolean): Promise<void> {
  const rows = [...page.items];
  if (all) for (let next = await page.next(); next; next = await next.next()) rows.push(...next.items);
  const more = page.has_more && !all;
  if (out.isJson) return void out.data({ [row.page as string]: rows, total: page.total, has_more: more });
  if (rows.length === 0) return void out.say("Nothing here yet.");
  out.line(tableOf(rows, out));
  if (more)
    out.say(`${rows.length} of ${page.total}${page.total_is_at_least ? " or more" : ""}; --all shows every page`);
}

function show({ out, stdout }: Session, row: Row, answer: unknown): void {
  if (row.answer !== "json") return void stdout.write(answer as string);
  if (out.isJson || answer === null || typeof answer !== "object") return void out.data(answer);
  const [list, ...others] = Object.values(answer).filter(Array.isArray) as Record<string, unknown>[][];
  const isList =
    list !== undefined && others.length === 0 && Object.keys(answer).length <= 2 && typeof list[0] === "object";
  out.line(isList ? tableOf(list, out) : recordOf(answer as Record<string, unknown>, out));
}

/** What is removed or changed is asked for at a terminal; a program says `--yes`. */
export async function confirm(
  { stdin, stderr }: Session,
  question: string,
  yes: boolean,
  does = "this removes something",
): Promise<void> {
  if (yes) return;
  if (stdin.isTTY !== true) throw new CliError(`${does}: say --yes`);
  stderr.write(`${question} [y/N] `);
  for await (const part of stdin) {
    if (/^y(es)?\s*$/i.test(String(part))) return;
    break;
  }
  throw new CliError("nothing was done", 1);
}

export function kebab(name: string): string {
  return name.replaceAll("_", "-");
}

export function camel(name: string): string {
  return name.replace(/[_-]([a-z])/g, (_all, letter: string) => letter.toUpperCase());
}
