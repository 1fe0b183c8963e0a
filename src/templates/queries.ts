// All SQL on template and template_version.

import type { Query, Tx } from "../platform/database/db.ts";
import type { Page } from "../platform/database/page.ts";
import { countUpToMax } from "../platform/database/totals.ts";
import type { DeclaredVariable, Sources, StoredTemplate, TemplateRow, TemplateVariable } from "./types.ts";

const SUMMARY = `t.id, t.org_id, t.name, t.slug, t.description, v.subject, v.variables, t.active, t.version, t.created_at,
  t.updated_at`;
const CURRENT = `template t join template_version v
    on v.org_id = t.org_id and v.template_id = t.id and v.version = t.version`;

export type Reference = { id: string } | { slug: string };

export function findTemplate(db: Query, orgId: string, reference: Reference) {
  return "id" in reference
    ? db.query<StoredTemplate>(
        `select ${SUMMARY}, v.html_body, v.text_body, v.declared from ${CURRENT} where t.org_id = $1 and t.id = $2`,
        [orgId, reference.id],
      )
    : db.query<StoredTemplate>(
        `select ${SUMMARY}, v.html_body, v.text_body, v.declared from ${CURRENT} where t.org_id = $1 and t.slug = $2`,
        [orgId, reference.slug],
      );
}

/** Holds the template against other changes; its version is read after this, so that none is lost. */
export function lockTemplate(tx: Tx, orgId: string, id: string) {
  return tx.query<{ version: number }>("select version from template where org_id = $1 and id = $2 for update", [
    orgId,
    id,
  ]);
}

export type ListFilter = { patterns: string[] | null; active: boolean | null };

const MATCHES = `t.org_id = $1 and ($2::boolean is null or t.active = $2)
  and ($3::text[] is null or t.name ilike any($3) or t.slug ilike any($3) or v.subject ilike any($3)
       or t.description ilike any($3))`;

type BoundedPage = Page & { body_bytes_max: number };

/**
 * With the bodies of the first rows, `body_bytes_max` together; those behind have null for both, and theirs (1 MiB each
 * template) stay in their TOAST tables, unread.
 */
export function listTemplates(db: Query, orgId: string, filter: ListFilter, page: BoundedPage) {
  return db.query<TemplateRow>(
    `select p.id, p.org_id, p.name, p.slug, p.description, p.subject, p.variables, p.active, p.version, p.created_at,
            p.updated_at, case when p.bytes <= $6 then p.html_body end as html_body,
            case when p.bytes <= $6 then p.text_body end as text_body
       from (select q.*, sum(coalesce(octet_length(q.html_body), 0) + coalesce(octet_length(q.text_body), 0))
                           over (order by q.id desc) as bytes
               from (select ${SUMMARY}, v.html_body, v.text_body from ${CURRENT} where ${MATCHES} and t.id < $7
                      order by t.id desc limit $4 offset $5) q) p
      order by p.id desc`,
    [orgId, filter.active, filter.patterns, page.limit, page.offset, page.body_bytes_max, page.below],
  );
}

export function countTemplates(db: Query, orgId: string, filter: ListFilter) {
  return countUpToMax(db, `${CURRENT} where ${MATCHES}`, [orgId, filter.active, filter.patterns]);
}

export type TemplateHead = Pick<
  StoredTemplate,
  "id" | "slug" | "name" | "description" | "active" | "version" | "created_at" | "updated_at"
>;

export function insertTemplate(tx: Tx, orgId: string, row: TemplateHead) {
  return tx.execute(
    `insert into template (org_id, id, slug, name, description, active, version, created_at, updated_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [orgId, row.id, row.slug, row.name, row.description, row.active, row.version, row.created_at, row.updated_at],
  );
}

export function updateTemplate(tx: Tx, orgId: string, row: TemplateHead) {
  return tx.execute(
    `update template set slug = $3, name = $4, description = $5, active = $6, version = $7, updated_at = $8
      where org_id = $1 and id = $2`,
    [orgId, row.id, row.slug, row.name, row.description, row.active, row.version, row.updated_at],
  );
}

export function insertVersion(tx: Tx, orgId: string, row: StoredTemplate, createdBy: string) {
  return tx.execute(
    `insert into template_version (org_id, template_id, version, subject, html_body, text_body, variables, declared,
       created_at, created_by)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    [
      orgId,
      row.id,
      row.version,
      row.subject,
      row.html_body,
      row.text_body,
      JSON.stringify(row.variables),
      row.declared && JSON.stringify(row.declared),
      row.updated_at,
      createdBy,
    ],
  );
}

export type ListedVersion = Pick<TemplateRow, "subject" | "version" | "created_at"> & { created_by: string | null };

/** Newest first. Index: primary key. */
export function listVersions(
  db: Query,
  orgId: string,
  id: string,
  { before, limit, offset }: { before: number | null; limit: number; offset: number },
) {
  return db.query<ListedVersion>(
    `select version, subject, created_at, created_by from template_version
      where org_id = $1 and template_id = $2 and ($3::int is null or version < $3)
      order by version desc limit $4 offset $5`,
    [orgId, id, before, limit, offset],
  );
}

export function countVersions(db: Query, orgId: string, id: string) {
  return countUpToMax(db, "template_version where org_id = $1 and template_id = $2", [orgId, id]);
}

export function findVersion(db: Query, orgId: string, id: string, version: number) {
  return db.query<ListedVersion & Sources & { variables: TemplateVariable[]; declared: DeclaredVariable[] | null }>(
    `select version, subject, html_body, text_body, variables, declared, created_at, created_by from template_version
      where org_id = $1 and template_id = $2 and version = $3`,
    [orgId, id, version],
  );
}

export function deleteTemplate(tx: Tx, orgId: string, reference: Reference) {
  return "id" in reference
    ? tx.query<{ id: string }>("delete from template where org_id = $1 and id = $2 returning id", [orgId, reference.id])
    : tx.query<{ id: string }>("delete from template where org_id = $1 and slug = $2 returning id", [
        orgId,
        reference.slug,
      ]);
}

export type Wanted = { org_id: string; reference: Reference };
export type CurrentVersion = { org_id: string; ref: string; id: string; version: number; active: boolean };

/** For sends of many organizations at once; `ref` is the slug or id that was asked for. Index: template_slug, primary key. */
export function findCurrentVersions(db: Query, wanted: readonly Wanted[]) {
  const bySlug = wanted.flatMap(({ org_id, reference }) =>
    "slug" in reference ? [{ org_id, ref: reference.slug }] : [],
  );
  const byId = wanted.flatMap(({ org_id, reference }) => ("id" in reference ? [{ org_id, ref: reference.id }] : []));
  return db.query<CurrentVersion>(
    `select t.org_id, t.slug as ref, t.id, t.version, t.active
       from unnest($1::uuid[], $2::text[]) as wanted (org_id, slug)
       join template t on t.org_id = wanted.org_id and t.slug = wanted.slug
     union all
     select t.org_id, t.id::text, t.id, t.version, t.active
       from unnest($3::uuid[], $4::uuid[]) as wanted (org_id, id)
       join template t on t.org_id = wanted.org_id and t.id = wanted.id`,
    [
      bySlug.map(({ org_id }) => org_id),
      bySlug.map(({ ref }) => ref),
      byId.map(({ org_id }) => org_id),
      byId.map(({ ref }) => ref),
    ],
  );
}

export type VersionKey = { org_id: string; id: string; version: number };
export type VersionRow = Sources & VersionKey & { variables: TemplateVariable[]; declared: DeclaredVariable[] | null };

/** For sends of many organizations at once: the versions that this process has not parsed yet. */
export function findVersions(db: Query, wanted: readonly VersionKey[]) {
  return db.query<VersionRow>(
    `select v.org_id, v.template_id as id, v.version, v.subject, v.html_body, v.text_body, v.variables
       from unnest($1::uuid[], $2::uuid[], $3::int[]) as wanted (org_id, id, version)
       join template_version v
         on v.org_id = wanted.org_id and v.template_id = wanted.id and v.version = wanted.version`,
    [wanted.map(({ org_id }) => org_id), wanted.map(({ id }) => id), wanted.map(({ version }) => version)],
  );
}
