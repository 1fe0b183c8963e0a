// The suppression list as CSV (RFC 4180, UTF-8, CRLF), written page by page while it is read, so that its size does not
// matter. A cell that a spreadsheet would take for a formula gets an apostrophe; our own import takes it off again.
import { uuidFloor } from "../platform/random.ts";
import type { World } from "../platform/world.ts";
import * as queries from "./queries.ts";
import { type ListRequest, readFilter } from "./suppressions.ts";
import type { Entry } from "./types.ts";

const PAGE_ROWS = 500;
const COLUMNS = [
  "id",
  "email",
  "reason",
  "scope_type",
  "scope_id",
  "source",
  "source_message_id",
  "bounce_code",
  "diag_code",
  "feedback_type",
  "note",
  "expires_at",
  "created_at",
] as const satisfies readonly (keyof Entry)[];
/** Above every id: ids are times, and this one is in the year 10889. */
const ABOVE_ALL = uuidFloor(2 ** 48 - 1);

/** The entries that a list with this filter would show, the newest first, as pieces of one CSV file. */
export function exportSuppressions(
  world: Pick<World, "db" | "clock">,
  orgId: string,
  request: ListRequest,
): AsyncGenerator<string> {
  // Read here, so that a refusal comes before the first byte of the answer.
  return pages(world, orgId, readFilter(request));
}

async function* pages(
  world: Pick<World, "db" | "clock">,
  orgId: string,
  filter: ReturnType<typeof readFilter>,
): AsyncGenerator<string> {
  const now = new Date(world.clock.now());
  yield `${COLUMNS.join(",")}\r\n`;
  let below = ABOVE_ALL;
  for (;;) {
    const part = { now, filter, below, limit: PAGE_ROWS };
    const rows = await world.db.asOrg(orgId, (tx) => queries.exportPage(tx, orgId, part));
    if (rows.length > 0) yield rows.map(toLine).join("");
    if (rows.length < PAGE_ROWS) return;
    below = rows.at(-1)?.id as string;
  }
}

function toLine(entry: Entry): string {
  return `${COLUMNS.map((column) => toCell(entry[column])).join(",")}\r\n`;
}

/**
 * One cell. OWASP "CSV injection": `=`, `+`, `-`, `@`, tab and CR at the start begin a formula. What looks as if it were guarded
 * gets an apostrophe too, so that taking one off brings each back.
 */
function toCell(value: string | Date | null): string {
  if (value === null) return "";
  const text = value instanceof Date ? value.toISOString() : value;
  const safe = /^'*[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
