// What many targets check: bounds, text that can be stored, equality shown with both sides.
import assert from "node:assert/strict";

/** Fails unless a text is valid Unicode of at most `max` characters without NUL: what the database takes. */
export function assertStorable(what: string, text: string | null | undefined, max = Number.POSITIVE_INFINITY): void {
  if (text === null || text === undefined) return;
  assert.ok(text.length <= max, `${what} has ${text.length} characters, more than ${max}`);
  assert.ok(text.isWellFormed(), `${what} holds half of a surrogate pair`);
  assert.ok(!text.includes("\0"), `${what} holds NUL`);
}

/** Fails unless a text stands on one line, as what goes into a header field, a log or an SMTP command must. */
export function assertOneLine(what: string, text: string | null | undefined): void {
  if (text === null || text === undefined) return;
  assert.doesNotMatch(text, /[\r\n\0]/, `${what} holds CR, LF or NUL: ${JSON.stringify(text.slice(0, 200))}`);
}

/** Every text anywhere in a value: keys and strings, as they would be written as JSON. */
export function assertStorableAll(what: string, value: unknown): void {
  const json = JSON.stringify(value, (key, part) => {
    assertStorable(`a name in ${what}`, key);
    if (typeof part === "string") assertStorable(what, part);
    if (part instanceof Map) return [...part];
    if (part instanceof Set) return [...part];
    return Buffer.isBuffer(part) ? null : part;
  });
  assert.ok(json === undefined || json.isWellFormed());
}

/** Fails when two octet strings differ, and shows where. */
export function assertSameBytes(what: string, got: Buffer, want: Buffer): void {
  if (got.equals(want)) return;
  let at = 0;
  while (at < got.length && got[at] === want[at]) at += 1;
  const around = (bytes: Buffer) => JSON.stringify(bytes.toString("latin1", Math.max(0, at - 20), at + 40));
  assert.fail(
    `${what}: lengths ${got.length} and ${want.length}, different from ${at} on: ${around(got)}, ${around(want)}`,
  );
}

/** Nothing that an input names may have become a property of all objects. */
export function assertUnpolluted(): void {
  assert.equal(({} as Record<string, unknown>).polluted, undefined, "Object.prototype was written to");
  assert.deepEqual(Object.keys(Object.prototype), []);
}
