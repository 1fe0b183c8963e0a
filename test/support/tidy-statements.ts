// Shapes of statements and migrations that PostgreSQL with Citus refuses on the tables of a distributed schema (docs/scaling.md). What a
// statement assembles from pieces is seen piece by piece; the long test of cells runs the statements themselves.
import type { Violation } from "./tidy-rules.ts";
import type { Source } from "./tidy-source.ts";

const VOLATILE = String.raw`\b(?:clock_timestamp|timeofday|random|gen_random_uuid|nextval)\s*\(`;
/** Their value depends on the session's settings; Citus refuses them where they are of a column. */
const STABLE = String.raw`\b(?:concat|concat_ws|array_to_string)\s*\(|\b(?:date_trunc|date_bin|to_char)\s*\('[^']*',\s*[a-z]|[a-z]_(?:at|until)\s*[+-]\s*(?:interval|make_interval)\b`;
const CHANGE = String.raw`(?:\bupdate\s+\w+\s+(?:as\s+)?(?:\w+\s+)?set\b|\bdelete\s+from\b|\bdo\s+update\b)[^;]*?`;
const NUMBERS = String.raw`\b(?:pg_current_xact_id|pg_current_snapshot|txid_current)\w*\s*\(`;
const REFUSED: { shape: RegExp; why(found: string): string }[] = [
  {
    shape: new RegExp(`${CHANGE}(${VOLATILE})`, "i"),
    why: (found) => `changes rows with ${found}), which Citus refuses: take statement_timestamp() or a parameter`,
  },
  {
    shape: new RegExp(`${CHANGE}(${STABLE})`, "i"),
    why: (found) =>
      `changes rows with ${found}…, a stable function of a column, which Citus refuses: compute it from a parameter`,
  },
  {
    // A date or a time as text.
    shape: /\bupdate\s+\w+[^;]*?\b(returning\b[^;]*?\b(?:day|at|\w+_at|\w+_on)::text)/i,
    why: (found) => `changes rows ${found}, which depends on settings, and which Citus refuses: return it as it is`,
  },
  {
    shape: new RegExp(`(?:${CHANGE}|\\binsert\\s+into\\b[^;]*?)(${NUMBERS})`, "i"),
    why: (found) =>
      `changes rows with ${found}), which Citus asks of a server that does not keep them: take it from citus/transaction-numbers.ts`,
  },
];
/** The first migration that keeps to it: those before are rewritten when a schema is distributed. */
const FIRST = 215;

/** An insert of rows that a select gives; up to its end, or to the end of the part of the statement that it is. */
const INSERTS = /\binsert\s+into\s+\w+(?:\s+as\s+\w+)?\s*\((?:[^()]|\([^()]*\))*\)\s*select\b[^;]*/gi;

/** Functions that give another value for each row stand in no update, delete or `on conflict do update`. */
export function checkStatements(source: Source): Violation[] {
  if (/\.(test|fixture)\.ts$/.test(source.path)) return [];
  const copied = source.literals.flatMap(({ what, line }) =>
    [...what.matchAll(INSERTS)]
      .filter(([insert]) => !/\breturning\b|\bon conflict\b|\?\s*\)?$/i.test(insert))
      .map(() => ({
        rule: "statements",
        path: source.path,
        line,
        message:
          "inserts what a select gives without `returning` or `on conflict`: Citus would COPY, past row-level security",
      })),
  );
  const changed = source.literals.flatMap(({ what, line }) =>
    REFUSED.flatMap(({ shape, why }) => {
      const found = shape.exec(what)?.[1];
      return found ? [{ rule: "statements", path: source.path, line, message: why(found) }] : [];
    }),
  );
  return [...copied, ...changed];
}

/** Migrations make no triggers on tables, and policies by procedures alone, which know the form that is needed. */
export function checkMigration(path: string, text: string): Violation[] {
  const number = Number(/\/(\d{4})_/.exec(path)?.[1] ?? 0);
  if (number <= FIRST) return [];
  const report = (message: string) => ({ rule: "statements", path, line: 1, message });
  const code = text.replaceAll(/--[^\n]*/g, "");
  return [
    ...(/\bcreate\s+(or\s+replace\s+)?trigger\b/i.test(code)
      ? [report("makes a trigger, which Citus refuses: let the statements do it")]
      : []),
    ...(/\bcreate\s+policy\b[^;]*\bselect\b/i.test(code)
      ? [report("makes a policy with a select, which Citus refuses: call protect_tenant_table or protect_system_table")]
      : []),
  ];
}
