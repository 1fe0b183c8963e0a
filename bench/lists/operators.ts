// The lists that operators have in the dashboard alone: sending addresses, relays and the installation's own mail, 10,000 of each
// beside 1,000,000 e-mails, half of the addresses and all relays with mail that waits. They are asked without HTTP.
import { pageOperatorMail } from "../../src/inbound/read/operator-views.ts";
import { OPERATOR_ORG_ID } from "../../src/inbound/receive/own-addresses.ts";
import { listRelays } from "../../src/outbound/operate/relayed.ts";
import { listSources } from "../../src/outbound/operate/sources.ts";
import type { Db } from "../../src/platform/database/db.ts";
import type { World } from "../../src/platform/world.ts";

const DELIVERIES_A_LANE = 10;

const FILLINGS = [
  `insert into source (id, org_id, pool, ip, warmup_started_at)
   select gen_random_uuid(), $1, 'pool' || n % 100, '10.0.0.0'::inet + n, case when n % 10 = 0 then now() - interval '3 days' end
     from generate_series(1, $2) n`,
  `insert into relay (org_id, domain_id, host, port, tls, mode, created_at, updated_at)
   select org_id, id, 'smtp' || row_number() over (order by id) || '.relay.example', 587, 'starttls',
          case when id::text > '7' then 'always' else 'fallback' end, now(), now()
     from domain where org_id = $1 order by id limit $2`,
  `insert into lane (org_id, source_id, slot, domain, class, next_at, touched_at, relay_domain_id)
   select $1, (select id from source where ip is null), 0, host, 0, now(), now(), domain_id from relay where org_id = $1 and $2 > 0`,
  `insert into lane (org_id, source_id, slot, domain, class, next_at, touched_at)
   select $1, id, 0, 'gmail.example', 0, now(), now() from source where org_id = $1 and ip is not null limit $2 / 2`,
  `insert into delivery (org_id, message_id, position, lane_id, email, due_at, created_at, expires_at, attempts, return_path_host)
   select org_id, gen_random_uuid(), 0, id, 'a@gmail.example', now(), now(), now() + interval '30 days', 1, 'bounce.example'
     from lane, generate_series(1, ${DELIVERIES_A_LANE}) where org_id = $1 and $2 > 0`,
  `insert into inbound_email (org_id, id, raw_id, environment, kind, route, recipient, envelope_from, status, received_at, processed_at,
       message_id, from_address, subject, size, has_attachments)
   select '${OPERATOR_ORG_ID}', uuid_floor(now() - n * interval '1 minute'), gen_random_uuid(), 'live', 'operator',
          '{"kind":"operator","mailbox":"abuse"}', 'abuse@mx.example', 'c' || n || '@mail.example', 'delivered', now() - n * interval '1 minute',
          now(), n || '@mail.example', 'c' || n || '@mail.example', 'order ' || n, 900, false
     from generate_series(1, $2) n`,
];

/** Fills the lists of the organization with the most: `rows` rows of each. */
export async function fillOperators(db: Db, orgId: string, rows: number): Promise<void> {
  for (const text of FILLINGS)
    await db.execute(text.replaceAll("$1", `'${orgId}'::uuid`).replaceAll("$2", `${rows}::int`));
}

/** What is asked, in the words of the table. */
export function operatorQuestions(
  world: World,
): { operation: string; asks: string; ask(): Promise<{ total: number }> }[] {
  const sources = [
    {},
    { state: "unavailable" },
    { query: "10.0.7." },
    { query: "nobody-at-all" },
    { after: AFTER_SOURCE },
  ];
  const relays = [{}, { state: "standby" }, { query: "smtp77" }, { query: "nobody-at-all" }];
  const mails = [{}, { mailbox: "abuse" }, { mailbox: "security" }, { text: "c77@mail" }, { text: "nobody-at-all" }];
  const named = (query: object) =>
    Object.entries(query)
      .map(([name, value]) => `${name}=${value}`)
      .join("&") || "(first page)";
  return [
    ...sources.map((query) => ({
      ...{ operation: "operator: sources", asks: named(query) },
      ask: () => listSources(world, { ...query, limit: 50 }),
    })),
    ...relays.map((query) => ({
      ...{ operation: "operator: relays", asks: named(query) },
      ask: () => listRelays(world, { ...query, limit: 50 }),
    })),
    ...mails.map((query) => ({
      ...{ operation: "operator: mail", asks: named(query) },
      ask: () => pageOperatorMail(world, { ...query, limit: 50 }),
    })),
  ];
}

const AFTER_SOURCE = "10.0.20.0 00000000-0000-0000-0000-000000000000";
