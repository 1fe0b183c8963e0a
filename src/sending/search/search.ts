// Lists of sent mail: texts and tags are searched for in the packed texts of days that are over.
import { spellings } from "../../http/like.ts";
import type { Tx } from "../../platform/database/db.ts";
import type { Page } from "../../platform/database/page.ts";
import { facetTexts, PART_END, type Text } from "../../platform/packed/packed-lines.ts";
import { searchRows } from "../../platform/packed/search.ts";
import { EMAIL, type EmailRow } from "../queries.ts";
import { countEmails, type EmailFilter, listEmails, where } from "./list-queries.ts";
import { FACETS } from "./pack-queries.ts";

const SOURCE = { table: "message", as: "m", packed: "message_texts", columns: EMAIL };

/** `status` changes after the day of the mail: it is read from rows, as a Message-ID is. */
const PACKED = new Set(["from", "to", "subject", "tag", ...Object.keys(FACETS)]);

/** One page of e-mails, newest first, and the total. */
export function searchEmails(tx: Tx, orgId: string, filter: EmailFilter, page: Page & { now_ms: number }) {
  const given = Object.entries(filter).filter(([, value]) => value !== undefined && value !== "");
  const isBound = (name: string) => name === "id_from" || name === "id_to";
  const part = (belongs: (name: string) => boolean): EmailFilter =>
    Object.fromEntries(given.filter(([name]) => belongs(name) || isBound(name)));
  const packed = part((name) => PACKED.has(name));
  const others = part((name) => !PACKED.has(name));
  return searchRows<EmailRow>(
    tx,
    orgId,
    {
      source: SOURCE,
      texts: textsOf(packed),
      words: [filter.from, filter.to, filter.subject, filter.tag],
      all: (values) => where(filter, values),
      textual: (values) => where(packed, values),
      others: given.some(([name]) => !PACKED.has(name) && !isBound(name)) ? (values) => where(others, values) : null,
      bounds: { id_from: filter.id_from, id_to: filter.id_to },
      is_selective: filter.message_id !== undefined,
      list: () => listEmails(tx, orgId, filter, page),
      count: () => countEmails(tx, orgId, filter),
    },
    { ...page, direction: "desc", is_by_id: true },
  );
}

function textsOf({ from, to, subject, tag, environment, domain_id }: EmailFilter): Text[] {
  const texts: Text[] = facetTexts(FACETS, { environment, domain_id });
  if (from) texts.push({ column: "senders", needles: spellings(from) });
  if (to) texts.push({ column: "recipients", needles: spellings(to) });
  if (subject) texts.push({ column: "subjects", needles: spellings(subject) });
  if (tag) texts.push({ column: "tags", needles: [PART_END + tag + PART_END], as_is: true });
  return texts;
}
