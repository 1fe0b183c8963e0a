// Groups of fields as message/delivery-status and message/feedback-report have them: RFC 3464 §2.1, RFC 5965 §3.
// Takes what writers get wrong: a missing empty line between two recipients, continuations without white space, a
// MIME head inside the group. It gives values as they stand, on one line; it knows no field's meaning.

/** Field names in lower case; all values of a field, in order. */
export type FieldGroup = Map<string, string[]>;

// The fields of the message and 500 recipients.
const groupsMax = 501;
const fieldsMax = 5_000;
const valueCharsMax = 4_000;
const lineCharsMax = 2_000;

const fieldForm = /^([A-Za-z][A-Za-z0-9-]{1,60})[ \t]*:[ \t]*(.*)$/;
// What opens a new recipient when the empty line was forgotten.
const recipientFields = new Set(["original-recipient", "final-recipient"]);

/** The groups of a field part. Bounded: 501 groups, 5,000 fields, 4,000 characters a value; the rest is passed over. */
export function readFieldGroups(text: string): FieldGroup[] {
  const groups: FieldGroup[] = [];
  let group: FieldGroup = new Map();
  let last: string[] | null = null;
  let fields = 0;
  const close = () => {
    if (group.size > 0) groups.push(group);
    group = new Map();
    last = null;
  };
  for (const line of text.split("\n")) {
    if (groups.length >= groupsMax || fields >= fieldsMax) break;
    if (line.trim() === "") {
      close();
      continue;
    }
    const field = fieldForm.exec(line.slice(0, lineCharsMax));
    if (field === null) {
      if (last !== null) continueValue(last, line);
      continue;
    }
    const name = field[1]!.toLowerCase();
    if (startsRecipient(group, name)) close();
    fields++;
    const values = group.get(name) ?? [];
    values.push(storable(field[2]!));
    group.set(name, values);
    last = values;
  }
  close();
  return groups;
}

/** The first value of a field that is not empty; "" when there is none. */
export function fieldValue(group: FieldGroup, ...names: string[]): string {
  for (const name of names) {
    const value = group.get(name)?.find((text) => text !== "");
    if (value !== undefined) return value;
  }
  return "";
}

function continueValue(values: string[], line: string): void {
  const value = values.pop() ?? "";
  // A value that is full stays as it is: a part can be nothing but continuations.
  values.push(
    value.length >= valueCharsMax ? value : `${value} ${storable(line)}`.slice(0, valueCharsMax).toWellFormed(),
  );
}

/** A value that fits into a database: cut, without controls, and without half of what the cut went through. */
export function storable(value: string): string {
  return value
    .slice(0, valueCharsMax)
    .replace(/(?!\t)\p{Cc}/gu, " ")
    .trim()
    .toWellFormed();
}

function startsRecipient(group: FieldGroup, name: string): boolean {
  // Original- and Final-Recipient of one recipient come in either order; the same one again is the next recipient.
  return recipientFields.has(name) && group.has(name);
}
