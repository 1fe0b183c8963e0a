// Slugs: the name of a template in requests and paths. A slug never looks like a UUID, so that `{id}` in a path is one or
// the other, never both.
import { isUuid } from "../platform/database/db.ts";
import { invalid } from "../platform/refusal.ts";

export const SLUG_LENGTH_MAX = 100;
export const SLUG_PATTERN = "^[a-z0-9][a-z0-9-]*[a-z0-9]$";
const SLUG = new RegExp(SLUG_PATTERN);

/** A UUID in lower case or a slug, or null when `text` can be neither (and so names no template). */
export function readReference(text: string): { id: string } | { slug: string } | null {
  const lower = text.toLowerCase();
  if (isUuid(lower)) return { id: lower };
  return isSlug(text) ? { slug: text } : null;
}

function isSlug(text: string): boolean {
  return text.length >= 2 && text.length <= SLUG_LENGTH_MAX && SLUG.test(text);
}

/** 400 unless `slug` is one; a slug in the form of a UUID is none. */
export function checkSlug(slug: string): string {
  if (!isSlug(slug)) {
    throw invalid(
      "slug",
      "the 'slug' field must have 2 to 100 lower-case letters, digits and hyphens, and no hyphen at either end",
    );
  }
  if (isUuid(slug)) throw invalid("slug", "the 'slug' field must not look like a UUID");
  return slug;
}

/** A slug from a template's name (`Passwort zurücksetzen!` → `passwort-zurucksetzen`), else from its id. */
export function slugFrom(name: string, id: string): string {
  const words = name
    .normalize("NFKD")
    .replace(/\p{M}+/gu, "")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== "");
  const slug = words.join("-").slice(0, SLUG_LENGTH_MAX).replace(/-+$/, "");
  return isSlug(slug) && !isUuid(slug) ? slug : `template-${id.slice(-12)}`;
}
