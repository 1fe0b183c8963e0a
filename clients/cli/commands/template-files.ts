// A template as files: template.json (name, subject, description, active, and the variables that have a default; also the slug,
// which is the folder's name, and nothing else), body.html and body.txt; values.json beside them is for previews alone and never leaves the machine.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { createTwoFilesPatch } from "diff";
import type { Template } from "../../node/src/postern.ts";
import { CliError } from "../exit.ts";
import { makeFolder } from "../folders.ts";
import { nearestName } from "../nearest.ts";
import type { Output } from "../output.ts";

const HEAD = "template.json";
/** `slug` may stand there, too: the folder's name. */
const HEAD_FIELDS = ["name", "slug", "subject", "description", "active", "variables"];
const BODIES = { html_body: "body.html", text_body: "body.txt" } as const;

/** Texts by file name. */
export type Files = Record<string, string>;
export type Fields = {
  name: string;
  subject: string;
  description: string | null;
  active: boolean;
  variables: unknown[];
  html_body: string | null;
  text_body: string | null;
};
export type Local = { files: Files; fields: Fields };

export function isTemplate(folder: string): boolean {
  return existsSync(join(folder, HEAD));
}

/** The slugs of all templates in a folder. */
export function slugsIn(folder: string): string[] {
  if (!existsSync(folder)) throw new CliError(`there is no folder ${folder}: postern templates pull ${folder}`);
  const slugs = readdirSync(folder).filter((name) => isTemplate(join(folder, name)));
  if (slugs.length === 0) throw new CliError(`${folder} holds no template: each is a folder with a ${HEAD}`);
  return slugs.sort();
}

/** The server's template as files. A variable without a default is found in the sources again, so it is not written. */
export function filesOf({ name, subject, description, active, variables, html_body, text_body }: Template): Files {
  const declared = variables.filter((variable) => variable.default !== null);
  const head = { name, subject, description, active, variables: declared };
  return {
    [HEAD]: `${JSON.stringify(head, null, 2)}\n`,
    ...(html_body === null ? {} : { [BODIES.html_body]: html_body }),
    ...(text_body === null ? {} : { [BODIES.text_body]: text_body }),
  };
}

/** Null where there is none; throws where its head is not JSON, or says what a push would leave out. */
export function readLocal(folder: string): Local | null {
  if (!isTemplate(folder)) return null;
  const files: Files = {};
  for (const name of [HEAD, ...Object.values(BODIES)]) {
    if (existsSync(join(folder, name))) files[name] = readFileSync(join(folder, name), "utf8");
  }
  return { files, fields: fieldsOf(folder, files) };
}

/** What files say of a template; `folder` is for complaints. */
export function fieldsOf(folder: string, files: Files): Fields {
  const head = headOf(folder, files[HEAD] ?? "");
  const { name, subject, description = null, active = true, variables = [] } = head;
  if (typeof name !== "string" || typeof subject !== "string") {
    throw new CliError(`${join(folder, HEAD)} needs a 'name' and a 'subject'`);
  }
  const html_body = files[BODIES.html_body] ?? null;
  const text_body = files[BODIES.text_body] ?? null;
  return { name, subject, description, active, variables, html_body, text_body };
}

function headOf(folder: string, text: string): Partial<Fields> {
  const file = join(folder, HEAD);
  let head: Partial<Fields> & { slug?: unknown };
  try {
    head = JSON.parse(text);
  } catch (error) {
    throw new CliError(`${file} is not JSON: ${(error as Error).message}`);
  }
  if (typeof head !== "object" || head === null || Array.isArray(head))
    throw new CliError(`${file} holds no JSON object`);
  const unknown = Object.keys(head).find((name) => !HEAD_FIELDS.includes(name));
  if (unknown !== undefined) throw new CliError(`${file} has an unknown field '${unknown}': ${insteadOf(unknown)}`);
  const slug = basename(resolve(folder));
  if (head.slug !== undefined && head.slug !== slug)
    throw new CliError(
      `${file} has the slug ${JSON.stringify(head.slug)}, and its folder is called ${slug}: the folder's name is the slug, so rename it or take the field out`,
    );
  return head;
}

function insteadOf(unknown: string): string {
  if (Object.hasOwn(BODIES, unknown)) return `a body is a file beside it, ${BODIES[unknown as keyof typeof BODIES]}`;
  const near = nearestName(unknown, HEAD_FIELDS);
  return near === null ? `it takes ${HEAD_FIELDS.join(", ")}` : `is '${near}' meant?`;
}

/** Makes the folder hold these files; a body that the template has not goes. */
export function writeFiles(folder: string, files: Files): void {
  makeFolder(folder);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  for (const name of Object.values(BODIES)) if (files[name] === undefined) rmSync(join(folder, name), { force: true });
}

/** What changes, as a unified diff. */
export function differenceOf(slug: string, before: Files, after: Files, { paint }: Pick<Output, "paint">): string {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  const patches = names
    .filter((name) => before[name] !== after[name])
    .map((name) => createTwoFilesPatch(`${slug}/${name}`, `${slug}/${name}`, before[name] ?? "", after[name] ?? ""));
  const style = (line: string) =>
    line.startsWith("+") ? paint("green", line) : line.startsWith("-") ? paint("red", line) : line;
  const lines = patches.flatMap((patch) => patch.trimEnd().split("\n").slice(1));
  return lines.map(style).join("\n");
}
