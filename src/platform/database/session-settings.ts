// The settings that statements run with. PostgreSQL takes them when a session starts; a pooler such as PgBouncer refuses that, and hands
// each transaction another session, so there they are set in the transaction and end with it. A setting that stayed behind would give the
// next client another one's rights, so nothing is ever set for a session. Citus, which runs statements in sessions of its own on another
// server, passes on what is set in a transaction, and nothing else: there, too, they are set in each.

/** How many connections one process has if nothing else is set, and the fewest with which all its work goes on. */
export const CONNECTIONS_MAX = 30;
export const CONNECTIONS_MIN = 9;

export type Setting = readonly [name: string, value: string];

/** Makes Citus pass on what the transaction sets after it. PostgreSQL without Citus knows no such setting, and ignores it. */
const PASSED_ON: Setting = ["citus.propagate_set_commands", "local"];

/** The beginning of a transaction that sees every organization's rows, wherever the database keeps them. */
export const BEGIN_AS_SYSTEM = beginWith([PASSED_ON, ["postern.scope", "system"]]);

/** The settings for transactions of sessions whose statements another server may run. */
export function passedOn(settings: readonly Setting[]): Setting[] {
  return [PASSED_ON, ...settings];
}

/** As the start of a session takes them. Values are our own: digits, words, UUIDs. */
export function startUpOptions(settings: readonly Setting[]): string {
  return settings.map(([name, value]) => `-c ${name}=${value}`).join(" ");
}

/** The beginning of a transaction of this kind that has them, of two for one name the later one. */
export function beginWith(settings: readonly Setting[], begin = "begin"): string {
  return [begin, ...settings.map(([name, value]) => `set local ${name} = '${value}'`)].join("; ");
}

/** The further statements of this transaction may take so long each, where they look at all rows of an organization. */
export function allowTime(tx: { execute(text: string): Promise<number> }, seconds: number): Promise<number> {
  return tx.execute(`set local statement_timeout = '${seconds}s'`);
}
