// Long expressions as lists of short ones, so that each can be read: the tables of words (*.json in mail/) and some constants.

/** The source of an expression that matches where one of these matches. */
export function anyOf(alternatives: string | readonly (string | RegExp)[]): string {
  if (typeof alternatives === "string") return alternatives;
  return alternatives.map((one) => (typeof one === "string" ? one : one.source)).join("|");
}
