// How long a text is: in characters (code points), as JSON Schema's `maxLength`, PostgreSQL's `length` and people count, not
// in units of UTF-16, of which an emoji has two.

/** True if the text has more than `charactersMax` characters. */
export function isLonger(text: string, charactersMax: number): boolean {
  return text.length > charactersMax && (text.length > 2 * charactersMax || [...text].length > charactersMax);
}
