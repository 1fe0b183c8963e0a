// What is typed into fields, and what is said of one that is wrong. Pure.

/** Addresses between commas, semicolons, line ends, or spaces where they have no name: `Ada <ada@b.example>, c@d.example`. */
export function splitAddresses(text: string): string[] {
  const parts = text.match(/(?:"(?:[^"\\]|\\.)*"|<[^>]*>|[^,;\n])+/g) ?? [];
  return parts.flatMap((part) => (part.includes("<") ? [part.trim()] : part.split(/\s+/))).filter(Boolean);
}

/** The server's sentence at its field: without the name that programs use, but for a path; with the `entry` of a list that is wrong. */
export function sayOfField(sentence: string, entry?: string): string {
  const rest = sentence.replace(/^The '\w+(?:\[\d+\])?' field (?:is not allowed: )?/, "");
  if (entry !== undefined && rest !== sentence) return `“${entry}” ${rest}`;
  return rest.charAt(0).toUpperCase() + rest.slice(1);
}
