// The header fields that programs answering by themselves set, besides Auto-Submitted (RFC 3834 §5): vacation programs,
// responders, tickets. One list for whoever must not answer a machine, or not take its answer for a person's.

type First = (name: string) => string | null | undefined;

const FIELDS: readonly [name: string, value: RegExp][] = [
  ["x-autoreply", /\S/],
  ["x-autorespond", /\S/],
  ["x-autoresponder", /\S/],
  ["x-mail-autoreply", /\S/],
  ["x-auto-reply-from", /\S/],
  ["precedence", /auto[-_]?reply/i],
  ["x-precedence", /auto[-_]?reply/i],
  ["x-vacation", /\S/],
];

/** The name of the field that says so, null when none does; `first` gives the first value of a field in lower case. */
export function automaticMark(first: First): string | null {
  return FIELDS.find(([name, value]) => value.test(first(name) ?? ""))?.[0] ?? null;
}
