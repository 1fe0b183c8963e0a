// An organization with very many rows of everything that is listed, put into the tables by SQL, for measuring and judging
// what the first page of each list costs.
import { indexPastDays } from "../../src/platform/database/day-indexes.ts";
import type { TestApi } from "./api.ts";

/** UUIDv7 by number, all of one minute so many days ago: later numbers are newer. */
const idOf = (daysAgo: number): string =>
  `(select lpad(to_hex((extract(epoch from date_trunc('minute', now())) * 1000)::bigint - ${daysAgo * 86_400_000}), 12, '0')
  || '7000' || '8000' || lpad(to_hex(n), 12, '0'))::uuid`;
const ID = idOf(0);
/** Received mail has the indexes of its orders once its day is over. */
const YESTERDAY = idOf(1);

/** $1 is the organization, $2 how many rows, $3 the domain, alias or webhook that they belong to, $4 a sealed text. */
const ROWS: string[] = [
  `insert into api_key (org_id, id, name, environment, digest, key_prefix, last_four, created_at)
   select $1, ${ID}, 'k', 'test', sha256(n::text::bytea), 'svc_test_', '0000', now() from generate_series(1, $2) n`,
  `insert into domain (org_id, id, domain, type, ownership_token, dmarc_token, watch_since, next_check_at, created_at, updated_at)
   select $1, ${ID}, n || '.lists.example', 'outbound', n::text, $1::text || n, now(), now() + interval '1 day', now(), now()
     from generate_series(1, $2) n`,
  `insert into domain (org_id, id, domain, type, ownership_token, dmarc_token, watch_since, next_check_at, created_at, updated_at)
   select $1, $3, 'one.lists.example', 'both', 'one', $1::text || 'one', now(), now() + interval '1 day', now(), now()`,
  `insert into webhook (org_id, id, webhook_url, event_types, created_at, updated_at)
   select $1, ${ID}, 'https://lists.example/', '{email.bounced}', now(), now() from generate_series(1, 100) n`,
  "insert into webhook_lane (org_id, webhook_id) select org_id, id from webhook where org_id = $1",
  `with t as (insert into template (org_id, id, slug, name, active, version, created_at, updated_at)
     select $1, ${ID}, 't-' || n, 't', true, 1, now() + n * interval '1 ms', now() from generate_series(1, $2) n  returning id)
   insert into template_version (org_id, template_id, version, subject, text_body, variables, created_at)
   select $1, id, 1, 's', 'text', '[]', now() from t`,
  `insert into alias (org_id, id, domain_id, domain, local_part, is_glob, action, created_at, updated_at)
   select $1, ${ID}, $3, 'one.lists.example', 'a' || n, false, 'store', now(), now() from generate_series(1, $2) n`,
  `insert into inbound_rule (org_id, id, domain_id, name, priority, match, action, created_at, updated_at)
   select $1, ${ID}, (select id from domain where org_id = $1 order by domain limit 1 offset n / 100), 'r', n, '{"all":[]}',
     'store', now(), now() from generate_series(1, 3000) n`,
  `insert into message (org_id, id, environment, domain_id, message_id, from_address, from_header, subject, status, size,
     recipient_count, created_at)
   select $1, ${ID}, 'live', $3, n || '@lists.example', 'a@one.lists.example', 'a@one.lists.example', 'Number ' || n, 'delivered',
     1000, 1, now() from generate_series(1, $2) n`,
  `insert into recipient (org_id, message_id, position, email, kind, status)
   select org_id, id, 0, 'r@lists.example', 'to', 'delivered' from message
    where org_id = $1`,
  // One in a thousand was not read: it has no subject, and comes last by it.
  `insert into inbound_email (org_id, id, raw_id, environment, kind, route, recipient, envelope_from, status, received_at, size,
     subject, from_address, spam_score, processed_at)
   select $1, ${YESTERDAY}, ${YESTERDAY}, 'live', 'alias', '{}', 'a@one.lists.example', 'r@lists.example', 'delivered', now(), 1000,
     s, s || '@lists.example', length(s), now() + length(s) * interval '1 s'
     from generate_series(1, $2) n, lateral (select case when n % 1000 > 0 then 'Number ' || n % 1000 end as s) t`,
  `insert into webhook_delivery (org_id, id, webhook_id, event_id, event, created_at, finished_at, attempt, status)
   select $1, ${ID}, $3, ${ID}, 'email.bounced', now(), now(), 1, 'delivered' from generate_series(1, $2) n`,
  `insert into audit_entry (org_id, id, at, actor, name, operation)
   select $1, ${ID}, now(), 'key', 'k', 'createDomain' from generate_series(1, $2) n`,
  `insert into suppression (org_id, id, email, reason, scope_type, source, created_at)
   select $1, ${ID}, 'u' || n || '@lists.example', 'manual', 'org', 'manual', now() from generate_series(1, $2) n`,
  `insert into ip_pool (org_id, id, name, created_at, updated_at)
   select $1, ${ID}, 'p' || n, now(), now() from generate_series(1, $2) n`,
  `insert into dmarc_report (org_id, id, domain_id, fingerprint, status, via, received_at, schema, policy_domain,
     report_id, org_name, begin_at, end_at, first_day, last_day, disposition)
   select $1, ${ID}, $3, sha256(n::text::bytea), 'counted', 'mail', now(), 'rfc7489', 'one.lists.example', n::text,
     'o', now(), now(), current_date, current_date, '{"none":0,"pass":0,"quarantine":0,"reject":0}' from generate_series(1, $2) n`,
  `insert into masked_alias (org_id, id, environment, domain, local_part, created_at, updated_at)
   select $1, ${ID}, 'live', 'masked.postern.test', 'm' || n, now(), now() from generate_series(1, $2) n`,
  `insert into masked_alias (org_id, id, environment, domain, local_part, created_at, updated_at)
   select $1, $3, 'live', 'masked.postern.test', 'one', now(), now()`,
  `insert into masked_destination (org_id, id, environment, digest, sealed, status, created_at, updated_at)
   select $1, ${ID}, 'live', sha256(n::text::bytea), $4, 'verified', now(), now() from generate_series(1, $2) n`,
  `insert into masked_contact (org_id, id, alias_id, digest, sealed, source, created_at, updated_at)
   select $1, ${ID}, $3, sha256(n::text::bytea), $4, 'inbound', now(), now() from generate_series(1, $2) n`,
  `insert into masked_activity (org_id, id, alias_id, type, outcome, at)
   select $1, ${ID}, $3, 'forward', 'sent', now() from generate_series(1, $2) n`,
];

/** Fills every list of an organization with `count` rows, and lets PostgreSQL learn how many there are. */
export async function fillLists({ world }: TestApi, orgId: string, count: number): Promise<{ one: string }> {
  const one = "01000000-0000-7000-8000-000000000001";
  const sealed = world.seal.seal(
    Buffer.from(JSON.stringify({ email: "r@lists.example", name: null, reply_local: "r" })),
    `masked:${orgId}`,
  );
  await world.db.execute("call make_day_partitions(current_date - 1, current_date)");
  await world.db.transaction(async (tx) => {
    await tx.execute("set local postern.sums = ''"); // written past the statements that count: triggers do
    const values = [`'${orgId}'::uuid`, String(count), `'${one}'::uuid`, `'\\x${sealed.toString("hex")}'::bytea`];
    for (const text of ROWS) await tx.execute(text.replaceAll(/\$([1-4])/g, (_, at) => values[Number(at) - 1]!));
  }, 600_000);
  await indexPastDays(world);
  await world.db.execute("analyze");
  return { one };
}

/** Received mail in every other order. */
export function sortedPages(): string[] {
  const sorts = ["processed_at", "from", "to", "subject", "spam_score", "size"];
  return sorts.flatMap((sort) => ["asc", "desc"].map((way) => `/v1/inbound-emails?sort=${sort}&direction=${way}`));
}

/**
 * The first page of every list, as it is asked for without a filter. Not the sources of DMARC reports: they are sums over
 * weeks and days, ordered by the sums (src/dmarc/weeks.test.ts).
 */
export function firstPages(one: string): string[] {
  return [
    "/v1/emails",
    "/v1/inbound-emails",
    "/v1/webhook-deliveries",
    "/v1/audit-log",
    "/v1/suppressions",
    "/v1/api-keys",
    "/v1/domains",
    "/v1/webhooks",
    "/v1/templates",
    "/v1/aliases",
    "/v1/inbound-rules",
    "/v1/ip-pools",
    `/v1/domains/${one}/dmarc/reports`,
    "/v1/masked/aliases",
    "/v1/masked/destinations",
    `/v1/masked/aliases/${one}/contacts`,
    `/v1/masked/aliases/${one}/activity`,
  ];
}
