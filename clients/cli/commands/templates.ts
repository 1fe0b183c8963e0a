// `postern templates pull|push|preview`: templates as files in a folder, one folder each, named by its slug. Not here: how they
// are read and compared (template-files.ts).
import { existsSync, mkdtempSync, readFileSync, watch, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { isDeepStrictEqual } from "node:util";
import type { Command } from "commander";
import { NotFoundError, type Template, type TemplatePreview } from "../../node/src/postern.ts";
import { openInBrowser } from "../browser.ts";
import { CliError, STATUS } from "../exit.ts";
import { printable } from "../output.ts";
import { acting, type Session, type Surroundings, withGlobals } from "../session.ts";
import { pageOf } from "./preview-page.ts";
import { confirm, groupOf } from "./resources.ts";
import {
  differenceOf,
  fieldsOf,
  filesOf,
  isTemplate,
  type Local,
  readLocal,
  slugsIn,
  writeFiles,
} from "./template-files.ts";

const LOOK_MS = 300;

export function addTemplates(program: Command, around: Surroundings): void {
  const templates = groupOf(program, ["templates"]);
  withGlobals(templates.command("pull"))
    .description("write templates into a folder, one folder each; what is there already is shown before it changes")
    .argument("<folder>")
    .argument("[slugs...]", "these alone; without any, all of them")
    .option("--yes", "do not ask before files change")
    .action(acting(around, pull));
  withGlobals(templates.command("push"))
    .description("change the server's templates to what the folder has, after showing what changes; none is deleted")
    .argument("<folder>")
    .argument("[slugs...]", "these alone; without any, all of the folder")
    .option("--yes", "do not ask")
    .action(acting(around, push));
  const generated = templates.commands.findIndex((command) => command.name() === "preview");
  if (generated >= 0) (templates.commands as Command[]).splice(generated, 1);
  withGlobals(templates.command("preview"))
    .description("what a recipient would get, of a template's folder or of one on the server; nothing is stored")
    .argument("<id>", "an id or a slug, or the folder of one template (templates/welcome)")
    .option("--variables <json>", "values; without them those of values.json in the folder")
    .option("--out <file>", "the page to write; without it a file in the system's folder for temporary files")
    .option("--open", "show the page in the browser")
    .option("--watch", "render again whenever a file of the folder changes; the page reloads itself")
    .action(acting(around, preview));
}

async function pull(
  session: Session,
  folder: string,
  slugs: string[],
  { yes = false }: { yes?: boolean },
): Promise<void> {
  const { out } = session;
  const templates = await wanted(session, slugs);
  const changed = templates
    .filter((template) => !isSame(readLocal(join(folder, template.slug)), template))
    .map((template) => ({ slug: template.slug, files: filesOf(template) }));
  let overwritten = 0;
  for (const { slug, files } of changed) {
    const before = readLocal(join(folder, slug))?.files;
    if (before === undefined) continue;
    overwritten += 1;
    out.say(differenceOf(slug, before, files, out));
  }
  if (overwritten > 0)
    await confirm(session, `Change the files of ${overwritten} templates?`, yes, "this changes files");
  for (const { slug, files } of changed) writeFiles(join(folder, slug), files);
  const result = { folder, written: changed.map(({ slug }) => slug), same: templates.length - changed.length };
  if (out.isJson) return void out.data(result);
  for (const slug of result.written) out.line(`written  ${join(folder, slug)}`);
  out.say(`${result.written.length} written, ${result.same} were the same`);
}

async function wanted(session: Session, slugs: string[]): Promise<Template[]> {
  const { templates } = session.client();
  if (slugs.length > 0) return Promise.all(slugs.map((slug) => templates.get(slug)));
  const found: Template[] = [];
  // A long list leaves bodies out.
  for await (const one of await templates.list({ limit: 100 })) {
    const isWhole = one.html_body !== null || one.text_body !== null;
    found.push(isWhole ? one : await templates.get(one.id));
  }
  return found;
}

async function push(
  session: Session,
  folder: string,
  slugs: string[],
  { yes = false }: { yes?: boolean },
): Promise<void> {
  const { out } = session;
  const { templates } = session.client();
  const locals = (slugs.length > 0 ? slugs : slugsIn(folder)).map((slug) => ({ slug, local: localIn(folder, slug) }));
  const changes: { slug: string; local: Local; there: Template | null }[] = [];
  for (const { slug, local } of locals) {
    const there = await stored(session, slug);
    if (there && isSame(local, there)) continue;
    changes.push({ slug, local, there });
    out.say(differenceOf(slug, there === null ? {} : filesOf(there), local.files, out));
  }
  if (changes.length > 0) await confirm(session, `Push ${changes.length} templates?`, yes, "this changes templates");
  const done: { slug: string; version: number }[] = [];
  for (const { slug, local, there } of changes) {
    const { variables, ...fields } = local.fields;
    const known = there && fieldsOf(slug, filesOf(there)).variables;
    const body = isDeepStrictEqual(known, variables) ? fields : { ...fields, variables };
    const pushing = there ? templates.update(there.id, body as never) : templates.create({ ...body, slug } as never);
    const pushed = await pushing.catch((error: unknown) => {
      out.say(`${slug} was not pushed:`);
      throw error;
    });
    done.push({ slug, version: pushed.version });
  }
  if (out.isJson) return void out.data({ pushed: done, same: locals.length - changes.length });
  for (const { slug, version } of done) out.line(`${out.paint("green", "pushed")}  ${slug}, version ${version}`);
  out.say(`${done.length} pushed, ${locals.length - changes.length} were the same`);
}

/** By what they mean: how a file is laid out is its author's matter. */
function isSame(local: Local | null, template: Template): boolean {
  return local !== null && isDeepStrictEqual(local.fields, fieldsOf(template.slug, filesOf(template)));
}

function localIn(folder: string, slug: string): Local {
  const local = readLocal(join(folder, slug));
  if (local === null) throw new CliError(`there is no template ${slug} in ${folder}: it takes ${slug}/template.json`);
  return local;
}

async function stored({ client }: Session, slug: string): Promise<Template | null> {
  return client()
    .templates.get(slug)
    .catch((error: unknown) => {
      if (error instanceof NotFoundError) return null;
      throw error;
    });
}

type PreviewOptions = { variables?: string; out?: string; open?: boolean; watch?: boolean };

async function preview(session: Session, what: string, options: PreviewOptions): Promise<void> {
  const { out } = session;
  const isFolder = isTemplate(what);
  if (!isFolder && /[/\\]/.test(what))
    throw new CliError(`${what} is not the folder of a template: it takes ${join(what, "template.json")}`);
  if (options.watch && !isFolder) throw new CliError(`--watch takes the folder of a template, and ${what} is not one`);
  const slug = isFolder ? basename(resolve(what)) : what;
  const file = resolve(options.out ?? join(mkdtempSync(join(tmpdir(), "postern-preview-")), `${basename(slug)}.html`));
  const render = async (): Promise<void> => {
    const shown = await rendered(session, what, isFolder, options);
    writeFileSync(file, pageOf(slug, shown, options.watch === true));
    if (out.isJson) return out.data({ slug, file, ...shown });
    out.line(`${out.paint("bold", "Subject")}  ${printable(shown.subject)}`);
    for (const name of shown.missing_variables) out.line(`${out.paint("yellow", "missing")}  ${name}`);
    for (const name of shown.unused_variables) out.line(`${out.paint("yellow", "unused")}   ${name}`);
    for (const { field, message } of shown.warnings)
      out.line(`${out.paint("yellow", "warning")}  ${field}: ${message}`);
  };
  await render();
  out.say(pathToFileURL(file).href);
  if (options.open) openInBrowser(file);
  if (options.watch) await again(session, what, render);
}

async function rendered(
  session: Session,
  what: string,
  isFolder: boolean,
  options: PreviewOptions,
): Promise<TemplatePreview> {
  const { templates } = session.client();
  const variables = valuesOf(options.variables ?? (isFolder ? readValues(what) : "{}"));
  if (!isFolder) return templates.preview(what, { variables } as never);
  const slug = basename(resolve(what));
  const { subject, html_body, text_body } = localIn(join(what, ".."), slug).fields;
  return templates.preview(slug, { variables, subject, html_body, text_body } as never).catch((error: unknown) => {
    if (!(error instanceof NotFoundError)) throw error;
    throw new CliError(
      `the server has no template ${slug} yet: postern templates push ${join(what, "..")} ${slug}`,
      STATUS.not_found,
    );
  });
}

function readValues(folder: string): string {
  const file = join(folder, "values.json");
  return existsSync(file) ? readFileSync(file, "utf8") : "{}";
}

function valuesOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CliError(`the values are not JSON: ${(error as Error).message}`);
  }
}

/** Until the person wants out. A mistake in a file is shown, and the next change is looked at as well. */
async function again(session: Session, folder: string, render: () => Promise<void>): Promise<void> {
  const { out, signal } = session;
  out.say("Waiting for changes; Ctrl-C ends it.");
  let timer: NodeJS.Timeout | undefined;
  let rendering = Promise.resolve();
  const changed = () => {
    clearTimeout(timer);
    // An editor writes a file in several steps.
    timer = setTimeout(() => {
      rendering = rendering.then(render).catch((error: Error) => out.say(`postern: ${error.message}`));
    }, LOOK_MS);
  };
  const watcher = watch(folder, changed);
  await new Promise<void>((done) => {
    if (signal.aborted) return done();
    signal.addEventListener("abort", () => done(), { once: true });
    watcher.once("error", () => done());
  });
  watcher.close();
  clearTimeout(timer);
  await rendering;
}
