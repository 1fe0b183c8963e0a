// Templates: stored, versioned, previewed, and rendered for sending. Face of the feature. The language is in
// templates/language; here is what belongs to an organization: names, versions, which variables must be given.

import type { Account } from "../http/http.ts";
import { spelled } from "../http/like.ts";
import { readName } from "../http/one-line.ts";
import { isDuplicate, type Tx } from "../platform/database/db.ts";
import type { Page } from "../platform/database/page.ts";
import { type Total, totalOf } from "../platform/database/totals.ts";
import { coalesceByOrg, type OrgKey } from "../platform/fair/coalesce.ts";
import { spentHere } from "../platform/fair/processor-shares.ts";
import { createTurns, type InTurn } from "../platform/fair/turns.ts";
import { invalid, notFound, Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import * as queries from "./queries.ts";
import { checkSlug, readReference, slugFrom } from "./slug.ts";
import { parseSources, renderSources } from "./sources.ts";
import type {
  NewTemplate,
  ParsedSources,
  Preview,
  Sources,
  StoredTemplate,
  TemplateChange,
  TemplateRow,
  TemplateVariable,
} from "./types.ts";
import { allVariables, checkedVariables, missingVariables, readDeclared, unusedVariables } from "./variables.ts";
import { parsedVersions } from "./versions.ts";
import { warningsFor } from "./warnings.ts";

const NAME_LENGTH_MAX = 191;
/** The most bytes of bodies in one page of the list: a hundred templates may hold 100 MiB. */
const LISTED_BODY_BYTES_MAX = 4 * 1024 * 1024;

/** Reading a source of half a MiB takes as long as hundreds of other requests: it waits for its turn. */
export type Workshop = Pick<World, "db" | "clock" | "random"> & { inTurn: InTurn };

/** Who makes a version. */
export type Author = Pick<Account, "org_id" | "key_name">;

/** Each round is lost only to somebody who made a version meanwhile. */
const ROUNDS_MAX = 100;

/** Creates version 1. 400 for a source that is not in the language (`template_error`), 409 for a slug that is taken. */
export async function createTemplate(world: Workshop, author: Author, request: NewTemplate): Promise<TemplateRow> {
  const orgId = author.org_id;
  const id = world.random.uuid();
  const now = new Date(world.clock.now());
  const blank: StoredTemplate = {
    id,
    org_id: orgId,
    name: "",
    slug: "",
    description: null,
    subject: "",
    html_body: null,
    text_body: null,
    variables: [],
    declared: null,
    active: true,
    version: 0,
    created_at: now,
    updated_at: now,
  };
  const given = { ...request, slug: request.slug ?? slugFrom(request.name, id) };
  const row = await world.inTurn(orgId, () => withChange(blank, given, now));
  await refusingTakenSlug(row.slug, () =>
    world.db.asOrg(orgId, async (tx) => {
      await queries.insertTemplate(tx, orgId, row);
      await queries.insertVersion(tx, orgId, row, author.key_name);
    }),
  );
  return row;
}

/** The next version of `row`: what `change` names is taken from it, all is checked again. */
function withChange(row: StoredTemplate, change: TemplateChange, now: Date): StoredTemplate {
  const { variables, ...fields } = change;
  const next = { ...row, ...fields, version: row.version + 1, updated_at: now };
  // Older ones may be of more than one line.
  if (change.name !== undefined) next.name = checkText("name", readName("name", change.name, NAME_LENGTH_MAX));
  next.slug = checkSlug(next.slug);
  next.description = checkDescription(next.description);
  const sources = parseSources(next);
  if (variables !== undefined) next.declared = variables && readDeclared(variables);
  next.variables = allVariables(next.declared, sources);
  return next;
}

function checkDescription(text: string | null): string | null {
  return text === null ? null : checkText("description", text);
}

// PostgreSQL can keep neither of the two.
function checkText(field: string, text: string): string {
  if (text.includes("\0") || !text.isWellFormed()) {
    throw invalid(field, `the '${field}' field holds a NUL character or is not valid Unicode`);
  }
  return text;
}

async function refusingTakenSlug<T>(slug: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isDuplicate(error, "template_slug")) throw error;
    throw new Refusal("already_exists", `there is already a template with the slug '${slug}'; give another 'slug'`, {
      field: "slug",
    });
  }
}

/** One template by UUID or slug, with its bodies, or 404. */
export async function getTemplate(world: Pick<World, "db">, orgId: string, idOrSlug: string): Promise<StoredTemplate> {
  const row = await findTemplate(world, orgId, idOrSlug);
  if (!row) throw notFound("template");
  return row;
}

/** The same, or null where there is no such template. */
export async function findTemplate(
  world: Pick<World, "db">,
  orgId: string,
  idOrSlug: string,
): Promise<StoredTemplate | null> {
  const reference = readReference(idOrSlug);
  const [row] = reference ? await world.db.asOrg(orgId, (tx) => queries.findTemplate(tx, orgId, reference)) : [];
  return row ?? null;
}

/** True if the organization has a template with this id. */
export async function hasTemplate(tx: Tx, orgId: string, id: string): Promise<boolean> {
  return (await queries.findTemplate(tx, orgId, { id })).length > 0;
}

export type ListRequest = Page & { query?: string | undefined; active?: boolean | undefined };

/** One page, newest first, without the bodies. `query` is looked for in name, slug, subject and description. */
export async function listTemplates(
  world: Pick<World, "db">,
  orgId: string,
  { query, active, ...page }: ListRequest,
): Promise<{ templates: TemplateRow[]; limit: number; offset: number } & Total> {
  const filter = { active: active ?? null, patterns: query ? spelled(checkText("query", query)) : null };
  return world.db.asOrg(orgId, async (tx) => {
    const bounded = { ...page, body_bytes_max: LISTED_BODY_BYTES_MAX };
    const templates = await queries.listTemplates(tx, orgId, filter, bounded);
    const total = await totalOf(templates.length, page, () => queries.countTemplates(tx, orgId, filter));
    return { templates, ...total, ...page };
  });
}

/** Changes the fields that are named and makes a new version, whatever they are. 404, 409 for a slug that is taken. */
export async function updateTemplate(
  world: Workshop,
  author: Author,
  idOrSlug: string,
  change: TemplateChange,
): Promise<TemplateRow> {
  if (Object.keys(change).length === 0) throw invalid("body", "the body must name at least one field to change");
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const row = await getTemplate(world, author.org_id, idOrSlug);
    const next = await world.inTurn(author.org_id, () => withChange(row, change, new Date(world.clock.now())));
    if (await replaceVersion(world, author, row.version, next)) return next;
  }
  throw new Refusal("unavailable", "others change this template at this moment; try again shortly");
}

/** False when the template is not at `version` any more. Sources are read before: no lock waits for a turn. */
async function replaceVersion(
  world: Workshop,
  { org_id: orgId, key_name }: Author,
  version: number,
  next: StoredTemplate,
): Promise<boolean> {
  return refusingTakenSlug(next.slug, () =>
    world.db.asOrg(orgId, async (tx) => {
      const [locked] = await queries.lockTemplate(tx, orgId, next.id);
      if (!locked) throw notFound("template");
      if (locked.version !== version) return false;
      await queries.updateTemplate(tx, orgId, next);
      await queries.insertVersion(tx, orgId, next, key_name);
      return true;
    }),
  );
}

/** Deletes a template with its versions; mail that was rendered from it keeps what it says. Returns the id, or 404. */
export async function deleteTemplate(world: Pick<World, "db">, orgId: string, idOrSlug: string): Promise<string> {
  const reference = readReference(idOrSlug);
  const [gone] = reference ? await world.db.asOrg(orgId, (tx) => queries.deleteTemplate(tx, orgId, reference)) : [];
  if (!gone) throw notFound("template");
  return gone.id;
}

export type PreviewRequest = Partial<Sources> & { variables?: Readonly<Record<string, unknown>> };

/**
 * Renders the current version, or the sources given in its place; missing variables print nothing and are named. An inactive
 * template can be previewed.
 */
export async function previewTemplate(
  world: Workshop,
  orgId: string,
  idOrSlug: string,
  { variables: values = {}, ...draft }: PreviewRequest,
): Promise<Preview> {
  const row = await getTemplate(world, orgId, idOrSlug);
  return world.inTurn(orgId, () => {
    const sources = parseSources({ ...row, ...draft });
    const isDraft = Object.keys(draft).length > 0;
    const variables = checkedVariables(isDraft ? variablesOfDraft(row, sources) : row.variables);
    const rendered = renderSources(sources, variables, values);
    return {
      ...rendered,
      missing_variables: missingVariables(variables, values),
      unused_variables: unusedVariables(sources, values),
      warnings: warningsFor(sources, rendered),
    };
  });
}

/** Which variables a draft needs, its own sources say; what stands for one that is absent, the template. */
function variablesOfDraft({ variables }: TemplateRow, sources: ParsedSources): TemplateVariable[] {
  return allVariables(
    variables.filter((variable) => variable.default !== null),
    sources,
  );
}

export type SendRendering = { template_id: string; version: number } & Sources;

/** `template` is a slug, `template_id` a UUID; each also takes the other, as paths do. */
export type RenderRequest = { template?: string; template_id?: string; variables: Readonly<Record<string, unknown>> };

/**
 * Renders for sending. All sends of one moment share one look-up of the current versions; sources are read and parsed
 * once per version and process. Refuses: 404 `not_found`; 409 `invalid_state` for an inactive template (409 is for
 * state, and the template can be activated); 400 `template_variable_missing` naming `variables.<name>`; 400 `template_error`.
 */
export function renderForSend(
  world: Pick<World, "db" | "clock" | "metrics">,
): (orgId: string, request: RenderRequest) => Promise<SendRendering> {
  const findCurrent = currentVersions(world);
  const findParsed = parsedVersions(world);
  const inTurn = createTurns(world.clock, spentHere(world));
  return async (orgId, { template, template_id, variables }) => {
    const field = template_id === undefined ? "template" : "template_id";
    const current = await findCurrent(orgId, template_id ?? template ?? "");
    const parsed = current && (await findParsed(current));
    if (!current || !parsed) throw new Refusal("not_found", "there is no such template", { field });
    if (!current.active) throw new Refusal("invalid_state", "the template is not active", { field });
    const missing = missingVariables(parsed.variables, variables);
    if (missing.length > 0) throw variableMissing(missing);
    const { sources, variables: declared } = parsed;
    const rendered = await inTurn(orgId, () => renderSources(sources, declared, variables));
    return { template_id: current.id, version: current.version, ...rendered };
  };
}

function currentVersions(world: Pick<World, "db">) {
  const lookUp = coalesceByOrg<queries.CurrentVersion>({
    keys_max: 500,
    lanes: 2,
    load: async (keys) => {
      const rows = await queries.findCurrentVersions(world.db, keys.map(readWanted));
      return rows.map((row) => [row.org_id, row.ref, row]);
    },
  });
  return async (orgId: string, idOrSlug: string): Promise<queries.CurrentVersion | undefined> => {
    const reference = readReference(idOrSlug);
    if (!reference) return undefined;
    return lookUp(orgId, "id" in reference ? reference.id : reference.slug);
  };
}

function readWanted({ org_id, key }: OrgKey): queries.Wanted {
  return { org_id, reference: readReference(key) as queries.Reference };
}

function variableMissing(missing: string[]): Refusal {
  const [first] = missing as [string];
  return new Refusal("template_variable_missing", `the template needs the variable '${first}', which is not given`, {
    field: `variables.${first}`,
    body: { missing_variables: missing },
  });
}
