// Fills every list of an organization: mail over the last thirty days, in the day's partitions, as senders of several products
// send it. By SQL (generate_series), with rows as the product writes them. Not here: what is asked of it (questions.ts).
import type { Db } from "../../src/platform/database/db.ts";
import { FILLING_MS } from "../support/bench.ts";

export const DAYS = 30;

/** How many rows the first organization gets; each of the others gets a hundredth of them. */
export type Sizes = {
  emails: number;
  suppressions: number;
  deliveries: number;
  inbound: number;
  masked_mail: number;
  audit: number;
  events: number;
  others: number;
};

/** As many of each as an installation with so many e-mails has. */
export function sizesFor(emails: number): Sizes {
  const part = (divisor: number) => Math.max(1, Math.round(emails / divisor));
  return {
    emails,
    suppressions: part(5),
    deliveries: part(100),
    inbound: part(5),
    masked_mail: part(10),
    audit: part(10),
    events: part(10),
    others: part(100),
  };
}

/** What is the same for all rows of an organization: the domain that most of its mail is of, and so on. */
export const ONE = "01000000-0000-7000-8000-000000000001";

const HEX = (number: string, digits: number) => `lpad(to_hex((${number})::bigint), ${digits}, '0')`;
/** UUIDv7 of number n of `count`: spread evenly over the days, later numbers newer. The same n of two tables, the same id. */
const idOf = (n: string) =>
  `(${HEX(`$3::bigint - (($2::bigint - ${n})::numeric * ${DAYS} * 86400000 / $2::bigint)::bigint`, 12)} || '70008000' || ${HEX(n, 12)})::uuid`;
const ID = idOf("n");
const AT = `to_timestamp(($3::bigint - (($2::bigint - n)::numeric * ${DAYS} * 86400000 / $2::bigint)) / 1000.0)`;
const ROWS = "generate_series($5::bigint, $6::bigint) n";
/** One of several texts, in turns. */
const turn = (...texts: string[]) => `(array[${texts.map((text) => `'${text}'`).join(", ")}])[1 + n % ${texts.length}]`;

type Filling = { rows: keyof Sizes; text: string };

/** In the statements: $1 the organization, $2 how many rows it will have, $3 now, $4 a sealed text, $5 and $6 from which to which. */
const FILLINGS: Filling[] = [
  {
    rows: "others",
    text: `insert into domain (org_id, id, domain, type, ownership_token, dmarc_token, watch_since, next_check_at, created_at, updated_at)
      select $1, ${ID}, n || '.' || left($1::text, 8) || '.example', 'outbound', n::text, $1::text || n, now(), now() + interval '1 day', ${AT}, ${AT}
        from ${ROWS}`,
  },
  {
    rows: "others",
    text: `insert into api_key (org_id, id, name, environment, digest, key_prefix, last_four, created_at)
      select $1, ${ID}, 'Shop ' || n, 'test', sha256(($1::text || n)::bytea), 'svc_test_', '0000', ${AT} from ${ROWS}`,
  },
  {
    rows: "others",
    text: `with made as (
        insert into template (org_id, id, slug, name, description, active, version, created_at, updated_at)
        select $1, case when n = $2 then $7::uuid else ${ID} end, 'order-' || n, 'Order ' || n, 'Sent when an order is paid', n % 50 > 0,
               case when n = $2 then 1000 else 1 end, ${AT}, ${AT} from ${ROWS}
        returning id, version)
      insert into template_version (org_id, template_id, version, subject, text_body, variables, created_at)
      select $1, id, v, 'Your order {{number}}', 'Thank you', '[]', now() from made, lateral generate_series(1, version) v`,
  },
  {
    rows: "others",
    text: `insert into alias (org_id, id, domain_id, domain, local_part, is_glob, action, description, created_at, updated_at)
      select $1, case when n = $2 then $7::uuid else ${ID} end, $7, left($1::text, 8) || '.example', 'support' || n, false,
             ${turn("webhook", "webhook", "webhook", "forward", "store")}, 'Mail of product ' || n % 20, ${AT}, ${AT} from ${ROWS}`,
  },
  {
    rows: "others",
    text: `insert into inbound_rule (org_id, id, domain_id, name, priority, active, match, action, created_at, updated_at)
      select $1, ${ID}, (select id from domain where org_id = $1 order by id limit 1 offset n / 100), 'Rule ' || n, n, n % 10 > 0,
             '{"all":[]}', 'store', ${AT}, ${AT} from ${ROWS}`,
  },
  {
    rows: "others",
    text: `insert into ip_pool (org_id, id, name, created_at, updated_at) select $1, ${ID}, 'pool' || n, ${AT}, ${AT} from ${ROWS}`,
  },
  {
    rows: "others",
    text: `insert into dmarc_report (org_id, id, domain_id, fingerprint, status, via, received_at, schema, policy_domain, report_id,
        org_name, begin_at, end_at, first_day, last_day, disposition)
      select $1, ${ID}, $7, sha256(n::text::bytea), 'counted', 'mail', ${AT}, 'rfc7489', 'one.example', n::text,
             ${turn("google.com", "Outlook.com", "Yahoo")}, ${AT}, ${AT}, ${AT}::date, ${AT}::date,
             '{"none":0,"pass":0,"quarantine":0,"reject":0}' from ${ROWS}`,
  },
  {
    rows: "others",
    text: `insert into dmarc_day_source (org_id, domain_id, day, source_ip, total, pass_dkim, pass_spf, aligned, forwarded, dkim_domains,
        dkim_passed, spf_domains, spf_passed, reporters)
      select $1, $7, current_date - (n % ${DAYS})::int, '10.0.0.0'::inet + n, 1 + n % 90, 1, 1, 1, 0, '{}', '{}', '{}', '{}', '{google.com}'
        from ${ROWS}`,
  },
  {
    rows: "emails",
    text: `insert into message (org_id, id, environment, domain_id, message_id, from_address, from_header, subject, tags, metadata, status,
        size, recipient_count, created_at, completed_at)
      select $1, ${ID}, case when n % 50 = 7 then 'test' else 'live' end,
             case when n % 10 = 3 then (select id from domain where org_id = $1 order by id limit 1) else $7::uuid end,
             md5(n::text) || '@shop.example', sender || '@shop.example', 'Shop <' || sender || '@shop.example>',
             case n % 4 when 0 then 'Your order ' || n || ' is on its way' when 1 then 'Confirm your address'
               when 2 then 'Your invoice for May' else 'What is new this week' end,
             case n % 3 when 0 then '["order"]' when 1 then '["invoice", "monthly"]' else '[]' end::jsonb,
             '{"customer": 1}', case when n % 50 = 7 then 'simulated' when n % 40 = 1 then 'bounced' when n % 200 = 2 then 'deferred'
               when n % 1000 = 3 then 'complained' when n % 100000 = 4 then 'failed' else 'delivered' end,
             4096, 1, ${AT}, ${AT} from ${ROWS}, lateral (select ${turn("orders", "news", "accounts", "billing", "team")} as sender) s`,
  },
  {
    rows: "emails",
    text: `insert into recipient (org_id, message_id, position, email, kind, status, attempts, delivered_at)
      select $1, ${ID}, 0, 'customer' || n % 50000 || '@' || ${turn("gmail.example", "outlook.example", "mail.example")}, 'to', 'delivered', 1, ${AT}
        from ${ROWS}`,
  },
  {
    rows: "suppressions",
    text: `insert into suppression (org_id, id, email, reason, scope_type, scope_id, source, note, created_at)
      select $1, ${ID}, 'customer' || n || '@mail.example', ${turn("hard_bounce", "hard_bounce", "complaint", "unsubscribe")},
             case when n % 20 = 3 then 'list' else 'org' end, case when n % 20 = 3 then 'list-' || n % 5 else '' end,
             ${turn("import:sendgrid", "bounce", "complaint", "unsubscribe", "bounce")}, '550 5.1.1 no such user', ${AT} from ${ROWS}`,
  },
  {
    rows: "deliveries",
    text: `insert into webhook (org_id, id, webhook_url, event_types, created_at, updated_at)
      select $1, case when n = 1 then $7::uuid else gen_random_uuid() end, 'https://shop.example/' || n, '{email.bounced}', now(), now()
        from generate_series(1, 100) n where $5 = 1`,
  },
  {
    rows: "deliveries",
    text: "insert into webhook_lane (org_id, webhook_id) select org_id, id from webhook where org_id = $1 and $5 = 1",
  },
  {
    rows: "deliveries",
    text: `insert into webhook_queue (org_id, id, webhook_id, event_id, event, body_bytes, created_at, attempt, next_attempt_at)
      select $1, ${ID}, $7, ${ID}, 'email.delivered', 300, ${AT}, n / 20 % 2, now() + interval '1 day' from ${ROWS} where n % 20 = 0`,
  },
  {
    rows: "deliveries",
    text: `insert into webhook_delivery (org_id, id, webhook_id, event_id, event, created_at, finished_at, attempt, status, status_code)
      select $1, ${ID}, hook, ${ID}, ${turn("email.delivered", "email.delivered", "email.bounced", "email.received")}, ${AT}, ${AT}, 1,
             case when n % 50 = 0 then 'failed' else 'delivered' end, case when n % 50 = 0 then 500 else 200 end
        from ${ROWS}, lateral (select case when n % 10 = 1 then $7::uuid else
          (select id from webhook where org_id = $1 order by id limit 1 offset n % 90) end as hook) h`,
  },
  {
    rows: "events",
    text: `insert into webhook_event (org_id, id, event, created_at, body, listened, environment)
      select $1, ${ID}, ${turn("email.delivered", "email.delivered", "email.bounced", "email.received")}, ${AT}, '{"event":"email.delivered"}',
             pg_current_xact_id(), 'live' from ${ROWS}`,
  },
  {
    rows: "inbound",
    text: `insert into inbound_email (org_id, id, raw_id, environment, kind, route, recipient, envelope_from, domain_id, alias_id, status,
        received_at, processed_at, message_id, from_address, subject, size, has_attachments, thread_id, spam_score)
      select $1, ${ID}, ${ID}, 'live', 'alias', '{}', 'support' || n % 40 || '@shop.example', 'c' || n % 9000 || '@mail.example', $7,
             (select id from alias where org_id = $1 order by id limit 1 offset n % 10),
             case when n % 100 = 0 then 'quarantined' when n % 1000 = 1 then 'failed' else 'delivered' end, ${AT}, ${AT},
             md5(n::text) || '@mail.example', case when n % 1000 = 5 then null else 'c' || n % 9000 || '@mail.example' end,
             case when n % 1000 = 5 then null else 'A question about order ' || n end, 1000 + n % 90000, n % 8 = 0,
             case when n % 20 = 0 then $7::uuid end, n % 10 from ${ROWS}`,
  },
  {
    rows: "audit",
    text: `insert into audit_entry (org_id, id, at, actor, name, operation, key_id)
      select $1, ${ID}, ${AT}, 'key', 'Shop', ${turn("createDomain", "updateTemplate", "addSuppression")},
             (select id from api_key where org_id = $1 order by id limit 1 offset n % 5) from ${ROWS}`,
  },
  {
    rows: "masked_mail",
    text: `insert into masked_alias (org_id, id, environment, domain, local_part, masked_description, active, deleted_at, created_at, updated_at)
      select $1, case when n = $2 then $7::uuid else ${ID} end, 'live', 'masked.postern.test', left($1::text, 8) || 'm' || n,
             'For shop ' || n % 500, n % 30 > 0, case when n % 100 = 1 then now() end, ${AT}, ${AT} from ${ROWS}`,
  },
  {
    rows: "masked_mail",
    text: `insert into masked_destination (org_id, id, environment, digest, sealed, status, created_at, updated_at)
      select $1, case when n = $2 then $7::uuid else ${ID} end, 'live', sha256(n::text::bytea), $4, ${turn("verified", "verified", "verified", "pending", "suspended")}, ${AT}, ${AT}
        from ${ROWS}`,
  },
  {
    rows: "others",
    text: `insert into masked_pattern (org_id, id, environment, destination_id, domain, local_pattern, aliases_hour, aliases_day, created_at)
      select $1, ${ID}, 'live', $7, 'masked.postern.test', left($1::text, 8) || 'p' || n || '-*', 10, 50, ${AT} from ${ROWS}`,
  },
  {
    rows: "masked_mail",
    text: `insert into masked_alias_destination (org_id, alias_id, destination_id, position)
      select org_id, id, id, 0 from masked_alias
       where org_id = $1 and $5 = 1`,
  },
  {
    rows: "masked_mail",
    text: `insert into masked_contact (org_id, id, alias_id, digest, sealed, source, blocked, created_at, updated_at)
      select $1, ${ID}, $7, sha256(n::text::bytea), $4, 'inbound', n % 100 = 0, ${AT}, ${AT} from ${ROWS}`,
  },
  {
    rows: "masked_mail",
    text: `insert into masked_activity (org_id, id, alias_id, type, outcome, at)
      select $1, ${ID}, $7, ${turn("forward", "forward", "forward", "reply", "block", "bounce")},
             ${turn("sent", "sent", "sent", "sent", "dropped", "sent", "deferred")}, ${AT} from ${ROWS}`,
  },
  {
    rows: "others",
    text: `with one as (
        insert into warming (org_id, domain_id, phase, warming_started_at, phase_started_at, judged_from, decided_through, next_look_at)
        select $1, $7, 'warmed', now(), now(), now(), current_date, now() + interval '1 day' where $5 = 1)
      insert into warming_day (org_id, domain_id, date, phase, sent, delivered, bounced, hard_bounced, complained, decision)
      select $1, $7, current_date - n::int, 'warmed', 100, 99, 1, 1, 0, 'continued' from generate_series(1, 200) n where $5 = 1`,
  },
];

export type Filled = { org_id: string; sealed: Buffer; now_ms: number };

const AT_ONCE = 50_000;

/** Rows of one organization, none of which may be there yet. */
export async function fillOrganization(db: Db, { org_id, sealed, now_ms }: Filled, sizes: Sizes): Promise<void> {
  const one = oneOf(org_id);
  await db.execute(
    `insert into domain (org_id, id, domain, type, ownership_token, dmarc_token, watch_since, next_check_at, created_at, updated_at)
     values ($1, $2, $3, 'both', 'one', $3, now(), now() + interval '1 day', now(), now())`,
    [org_id, one, `${org_id}.example`],
  );
  for (const { rows, text } of FILLINGS) {
    const count = sizes[rows];
    for (let from = 1; from <= count; from += AT_ONCE) {
      const values: Record<number, string> = {
        1: `'${org_id}'::uuid`,
        2: `${count}::bigint`,
        3: `${now_ms}::bigint`,
        4: `'\\x${sealed.toString("hex")}'::bytea`,
        5: `${from}::bigint`,
        6: `${Math.min(count, from + AT_ONCE - 1)}::bigint`,
        7: `'${one}'::uuid`,
      };
      await db.transaction(async (tx) => {
        await tx.execute("set local postern.sums = ''"); // written past the statements that count: triggers do
        await tx.execute(text.replaceAll(/\$([1-7])/g, (_, at) => values[Number(at)] as string));
      }, FILLING_MS);
    }
  }
}

/** The id of its most used domain, alias, webhook endpoint and masked address. */
export function oneOf(orgId: string): string {
  return ONE.slice(0, -12) + orgId.slice(-12);
}
