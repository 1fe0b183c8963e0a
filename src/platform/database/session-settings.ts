// The settings that statements run with. PostgreSQL takes them when a session starts; a pooler such as PgBouncer refuses that, and hands
// each transaction another session, so there they are set in the transaction and end with it. A setting that stayed behind would give the
// next client another one's rights, so nothing is ever set for a session.

/** Of one process, if nothing else is set, and the least that all its work goes on with. */
export const CONNECTIONS_MAX = 30;
export const CONNECTIONS_MIN = 9;

export type Setting = readonly [name: string, value: string];

/** As the start of a session takes them. Values are our own: digits, words, UUIDs. */
export function startUpOptions(settings: readonly Setting[]): string {
  return settings.map(([name, value]) => `-c ${name}=${value}`).join(" ");
}

/** The beginning of a transaction that has them, of two for one name the later one. */
export function beginWith(settings: readonly Setting[]): string {
  return ["begin", ...settings.map(([name, value]) => `set local ${name} = '${value}'`)].join("; ");
}
