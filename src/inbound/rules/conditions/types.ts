// The words of routing rules: what of a mail can be asked for, how it is compared, and the tree of conditions.

export const TEXT_FIELDS = [
  "sender",
  "sender_domain",
  "envelope_sender",
  "recipient",
  "recipient_tag",
  "subject",
  "header",
] as const;
export const VERDICT_FIELDS = ["spf", "dkim", "dmarc"] as const;
export const NUMBER_FIELDS = ["spam_score", "size"] as const;
export const FLAG_FIELDS = ["has_attachments", "auto_submitted"] as const;
export const FIELDS = [...TEXT_FIELDS, ...VERDICT_FIELDS, ...NUMBER_FIELDS, ...FLAG_FIELDS] as const;
export type Field = (typeof FIELDS)[number];
export type TextField = (typeof TEXT_FIELDS)[number];

export const TEXT_COMPARATORS = [
  "equals",
  "not_equals",
  "contains",
  "not_contains",
  "starts_with",
  "ends_with",
  "in",
  "matches",
  "exists",
] as const;
export const NUMBER_COMPARATORS = ["equals", "not_equals", "gt", "gte", "lt", "lte", "exists"] as const;
export const FLAG_COMPARATORS = ["equals", "not_equals", "exists"] as const;
export const COMPARATORS = [...TEXT_COMPARATORS, "gt", "gte", "lt", "lte"] as const;
export type Comparator = (typeof COMPARATORS)[number];

/**
 * `value`: a list with `in`, true or false with `exists` and for flags, a number for numbers, else a text. What exists: a
 * text that is not empty, a verdict that is not none, a score that was given, a flag that is set.
 */
export type Leaf = {
  field: Field;
  comparator: Comparator;
  value: string | number | boolean | string[];
  /** Which header field is meant; only where `field` is `header`. */
  header_name?: string;
};

export type Tree = { all: Tree[] } | { any: Tree[] } | { not: Tree } | Leaf;

/** What rules know of a mail. A text field has any number of values; `spam_score` is null when nobody judged. */
export type Facts = Record<Exclude<TextField, "header">, string[]> & {
  headers: { name: string; value: string }[];
  spf: string;
  dkim: string;
  dmarc: string;
  spam_score: number | null;
  size: number;
  has_attachments: boolean;
  auto_submitted: boolean;
};

/** One condition of a trace: `path` as in errors (`match.all[1]`), `found` the values compared, cut short. */
export type TraceStep = Leaf & { path: string; found: (string | number | boolean)[]; matched: boolean };
