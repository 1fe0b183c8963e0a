// Lists of received mail: texts are searched for in the packed texts of days that are over.
import { spellings } from "../../http/like.ts";
import type { Tx } from "../../platform/database/db.ts";
import type { Page } from "../../platform/database/page.ts";
import { facetTexts, type Text } from "../../platform/packed/packed-lines.ts";
import { searchRows } from "../../platform/packed/search.ts";
import * as list from "../read/list-queries.ts";
import { FACETS } from "./pack-queries.ts";

const SOURCE = { table: "inbound_email", as: "e", packed: "inbound_email_texts", columns: list.LISTED };
const COLUMNS = { q: "words", from: "senders", to: "recipients", subject: "subjects", envelope_sender: "envelopes" };

const PACKED = new Set<string>([...Object.keys(COLUMNS), ...Object.keys(FACETS)]);

/** One page and the total. Only in the order of receipt packed texts lead to the page; the total they give for each. */
export function searchReceived(
  tx: Tx,
  orgId: string,
  filter: list.EmailFilter,
  page: Page & { now_ms: number } & list.Order,
) {
  const given = Object.entries(filter).filter(([, value]) => value !== undefined && value !== "");
  const isBound = (name: string) => name === "id_from" || name === "id_to";
  const part = (belongs: (name: string) => boolean): list.EmailFilter =>
    Object.fromEntries(given.filter(([name]) => belongs(name) || isBound(name)));
  const packed = part((name) => PACKED.has(name));
  const others = part((name) => !PACKED.has(name));
  return searchRows<list.EmailListRow>(
    tx,
    orgId,
    {
      source: SOURCE,
      texts: textsOf(packed),
      words: [filter.q, filter.from, filter.to, filter.subject, filter.envelope_sender],
      all: (values) => list.where(filter, values),
      textual: (values) => list.where(packed, values),
      others: given.some(([name]) => !PACKED.has(name) && !isBound(name))
        ? (values) => list.where(others, values)
        : null,
      bounds: { id_from: filter.id_from, id_to: filter.id_to },
      is_selective: filter.thread_id !== undefined,
      list: () => list.listEmails(tx, orgId, filter, page),
      count: () => list.countEmails(tx, orgId, filter),
    },
    { ...page, is_by_id: page.sort === "received_at" },
  );
}

function textsOf(filter: list.EmailFilter): Text[] {
  const names = Object.keys(COLUMNS) as (keyof typeof COLUMNS)[];
  const texts = names.flatMap((name): Text[] => {
    const text = filter[name];
    return text ? [{ column: COLUMNS[name], needles: spellings(text) }] : [];
  });
  const { environment, domain_id, alias_id, has_attachments } = filter;
  return [...texts, ...facetTexts(FACETS, { environment, domain_id, alias_id, has_attachments })];
}
