// The conditions of a routing rule while somebody edits them, and their way to and from the API's form. Pure. Not here: whether they
// are right; the server says so, with the place.

export const TEXT_FIELDS = [
  "sender",
  "sender_domain",
  "envelope_sender",
  "recipient",
  "recipient_tag",
  "subject",
  "header",
];
const VERDICT_FIELDS = ["spf", "dkim", "dmarc"];
export const NUMBER_FIELDS = ["spam_score", "size"];
export const FLAG_FIELDS = ["has_attachments", "auto_submitted"];
export const FIELDS = [...TEXT_FIELDS, ...VERDICT_FIELDS, ...NUMBER_FIELDS, ...FLAG_FIELDS];

const TEXT_COMPARATORS = [
  ...["equals", "not_equals", "contains", "not_contains", "starts_with", "ends_with"],
  ...["in", "matches", "exists"],
];
const NUMBER_COMPARATORS = ["equals", "not_equals", "gt", "gte", "lt", "lte", "exists"];
const FLAG_COMPARATORS = ["equals", "not_equals", "exists"];

export const FIELD_WORDS: Record<string, string> = {
  sender: "Sender",
  sender_domain: "Sender's domain",
  envelope_sender: "Envelope sender",
  recipient: "Recipient",
  recipient_tag: "Tag after +",
  subject: "Subject",
  header: "Header",
  spf: "SPF",
  dkim: "DKIM",
  dmarc: "DMARC",
  spam_score: "Spam score",
  size: "Size in bytes",
  has_attachments: "Has attachments",
  auto_submitted: "Written by a machine",
};
export const COMPARATOR_WORDS: Record<string, string> = {
  equals: "is",
  not_equals: "is not",
  contains: "contains",
  not_contains: "does not contain",
  starts_with: "starts with",
  ends_with: "ends with",
  in: "is one of",
  matches: "matches",
  exists: "is there",
  gt: "is more than",
  gte: "is at least",
  lt: "is less than",
  lte: "is at most",
};

export type LeafDraft = { id: number; field: string; comparator: string; value: string; header_name: string };
export type Mode = "all" | "any" | "none";
export type GroupDraft = { id: number; mode: Mode; children: Draft[] };
export type Draft = GroupDraft | LeafDraft;

type Match = Record<string, unknown>;
let lastId = 0;

export function isGroup(draft: Draft): draft is GroupDraft {
  return "children" in draft;
}

export function newLeaf(): LeafDraft {
  lastId += 1;
  return { id: lastId, field: "subject", comparator: "contains", value: "", header_name: "" };
}

export function newGroup(mode: Mode = "any", children: Draft[] = [newLeaf()]): GroupDraft {
  lastId += 1;
  return { id: lastId, mode, children };
}

export function comparatorsOf(field: string): readonly string[] {
  if (NUMBER_FIELDS.includes(field)) return NUMBER_COMPARATORS;
  return FLAG_FIELDS.includes(field) ? FLAG_COMPARATORS : TEXT_COMPARATORS;
}

/** What the API gave, always with a group outside. */
export function toDraft(match: Match): GroupDraft {
  const draft = read(match);
  return isGroup(draft) ? draft : newGroup("all", [draft]);
}

function read(match: Match): Draft {
  const list = (value: unknown) => (value as Match[]).map(read);
  if ("all" in match) return newGroup("all", list(match.all));
  if ("any" in match) return newGroup("any", list(match.any));
  if ("not" in match) {
    const inner = read(match.not as Match);
    return newGroup("none", isGroup(inner) && inner.mode === "any" ? inner.children : [inner]);
  }
  const { field, comparator, value, header_name } = match;
  const shown = Array.isArray(value) ? joinValues(value) : String(value ?? "");
  return {
    ...newLeaf(),
    field: String(field),
    comparator: String(comparator),
    value: shown,
    header_name: String(header_name ?? ""),
  };
}

/** As the API takes it. */
export function toMatch(draft: Draft): Match {
  if (isGroup(draft)) {
    const children = draft.children.map(toMatch);
    if (draft.mode !== "none") return { [draft.mode]: children };
    return { not: children.length === 1 ? children[0] : { any: children } };
  }
  const { field, comparator, header_name } = draft;
  return { field, comparator, value: valueFor(draft), ...(field === "header" ? { header_name } : {}) };
}

function valueFor({ field, comparator, value }: LeafDraft): unknown {
  if (comparator === "exists" || FLAG_FIELDS.includes(field)) return value !== "false";
  if (comparator === "in") return splitValues(value);
  const isNumber = NUMBER_FIELDS.includes(field) && value.trim() !== "" && Number.isFinite(Number(value));
  return isNumber ? Number(value) : value;
}

/** `invoice, "Lind, Maja"`: with commas between them; one that holds a comma stands in quotes. */
function joinValues(values: readonly unknown[]): string {
  return values
    .map(String)
    .map((one) => (/^"|,|^\s|\s$/.test(one) ? `"${one.replaceAll('"', '""')}"` : one))
    .join(", ");
}

function splitValues(text: string): string[] {
  const found = text.matchAll(/\s*(?:"((?:[^"]|"")*)"|([^,]*))\s*(?:,|$)/g);
  return [...found]
    .map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain?.trim() ?? "")
    .filter((one) => one !== "");
}

/** The tree with one of its parts changed, or taken out (null). */
export function change(tree: GroupDraft, id: number, to: (draft: Draft) => Draft | null): GroupDraft {
  if (tree.id === id) return (to(tree) ?? tree) as GroupDraft;
  return { ...tree, children: tree.children.flatMap((child) => changed(child, id, to)) };
}

function changed(child: Draft, id: number, to: (draft: Draft) => Draft | null): Draft[] {
  if (child.id === id) return [to(child) ?? []].flat();
  return [isGroup(child) ? change(child, id, to) : child];
}

const JOINS: Record<Mode, [before: string, between: string]> = {
  all: ["", " and "],
  any: ["", " or "],
  none: ["none of: ", " or "],
};

/** `subject contains “invoice” and (SPF is “pass” or size is more than 1000)`. */
export function sayTree(match: Match, isInner = false): string {
  const draft = read(match);
  if (!isGroup(draft)) return sayLeaf(draft);
  const [before, between] = JOINS[draft.mode];
  const words = before + draft.children.map((child) => sayTree(toMatch(child), true)).join(between);
  return isInner && draft.children.length > 1 ? `(${words})` : words;
}

/** One condition as a sentence part. */
function sayLeaf({ field, comparator, value, header_name }: LeafDraft): string {
  const name = field === "header" ? `header ${header_name}` : (FIELD_WORDS[field] ?? field);
  if (comparator === "exists") return value === "false" ? `${name} is not there` : `${name} is there`;
  if (FLAG_FIELDS.includes(field))
    return `${name} ${COMPARATOR_WORDS[comparator]} ${value === "false" ? "false" : "true"}`;
  return `${name} ${COMPARATOR_WORDS[comparator] ?? comparator} ${NUMBER_FIELDS.includes(field) ? value : `“${value}”`}`;
}
