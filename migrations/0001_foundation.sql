-- What every later migration stands on: tenancy, day partitions, organizations, API keys, messages, the queue, the
-- event log. Ids are UUIDv7; a day partition is a range of ids, so a row's partition follows from its id alone.

create function postern_org() returns uuid language sql stable parallel safe
  as $$ select nullif(current_setting('postern.org_id', true), '')::uuid $$;

create function postern_system() returns boolean language sql stable parallel safe
  as $$ select coalesce(current_setting('postern.scope', true), '') = 'system' $$;

-- Forces row-level security: a statement that forgets the organization sees nothing, the owner included. The
-- sub-selects are evaluated once a statement, not once a row.
create procedure protect_tenant_table(table_name regclass, org_column text default 'org_id') language plpgsql as $$
begin
  execute format('alter table %s enable row level security', table_name);
  execute format('alter table %s force row level security', table_name);
  execute format('create policy tenant on %s using ((select postern_system()) or %I = (select postern_org()))',
    table_name, org_column);
end $$;

-- Day partitions over UUIDv7 keys --------------------------------------------------------------------------------

create function uuid_floor(at timestamptz) returns uuid language sql immutable parallel safe as $$
  select (substr(h, 1, 8) || '-' || substr(h, 9, 4) || '-0000-0000-000000000000')::uuid
  from (select lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') as h) as hex $$;

-- storage: options for the leaf tables (a partitioned table itself can have none).
create table day_partitioned (
  table_name text primary key,
  retention_class text not null,
  storage text not null default ''
);

create procedure make_day_partitions(first_day date, last_day date) language plpgsql as $$
declare
  parent record;
  day date;
  leaf text;
begin
  for parent in select * from day_partitioned order by table_name loop
    for day in select d::date from generate_series(first_day, last_day, interval '1 day') as d loop
      leaf := parent.table_name || '_' || to_char(day, 'YYYYMMDD');
      if to_regclass(leaf) is null then
        execute format('create table %I partition of %I for values from (%L) to (%L) %s', leaf, parent.table_name,
          uuid_floor(day::timestamp at time zone 'UTC'), uuid_floor((day + 1)::timestamp at time zone 'UTC'),
          parent.storage);
      end if;
    end loop;
  end loop;
end $$;

-- Accounts ---------------------------------------------------------------------------------------------------------

create table organization (
  id uuid primary key,
  name text not null,
  plan text not null check (plan in ('free', 'starter', 'growth', 'scale', 'enterprise')),
  state text not null check (state in ('pending_review', 'active', 'suspended')),
  monthly_quota bigint,          -- null: the plan's own
  requests_per_second integer,   -- null: the plan's own
  settings jsonb not null default '{}',
  created_at timestamptz not null default now()
);
call protect_tenant_table('organization', 'id');

create table api_key (
  org_id uuid not null references organization,
  id uuid not null,
  name text not null,
  environment text not null check (environment in ('live', 'test')),
  digest bytea not null,
  key_prefix text not null,
  last_four text not null,
  created_at timestamptz not null,
  last_used_at timestamptz,
  revoked_at timestamptz,
  primary key (org_id, id)
);
create unique index api_key_digest on api_key (digest);
call protect_tenant_table('api_key');

-- Sending ----------------------------------------------------------------------------------------------------------

create table message (
  org_id uuid not null,
  id uuid not null,
  environment text not null,
  api_key_id uuid,
  domain_id uuid not null,
  message_id text not null,      -- without angle brackets
  from_address text not null,    -- addr-spec
  from_header text not null,     -- as given, Name <addr>
  reply_to jsonb not null default '[]',
  subject text not null,
  tags jsonb not null default '[]',
  metadata jsonb not null default '{}',
  template_id uuid,
  template_version integer,
  class smallint not null default 0,      -- 0 transactional, 1 bulk
  status text not null,
  size integer not null,
  recipient_count smallint not null,
  require_tls boolean not null default false,
  ip_pool text,
  unsubscribe_list text,
  origin text not null default 'api',     -- api, submission, forward, masked, system
  created_at timestamptz not null,
  scheduled_at timestamptz,
  expires_at timestamptz,
  completed_at timestamptz,
  primary key (org_id, id)
) partition by range (id);
create index message_by_message_id on message (org_id, message_id);
call protect_tenant_table('message');

create table message_body (
  org_id uuid not null,
  id uuid not null,
  mime bytea,                    -- canonical CRLF, without our DKIM-Signature
  blob_key text,                 -- instead of mime when larger than 256 KiB
  primary key (org_id, id)
) partition by range (id);
alter table message_body alter column mime set storage external;
call protect_tenant_table('message_body');

create table recipient (
  org_id uuid not null,
  message_id uuid not null,
  position smallint not null,
  email text not null,
  kind text not null check (kind in ('to', 'cc', 'bcc')),
  status text not null,
  attempts smallint not null default 0,
  next_attempt_at timestamptz,
  delivered_at timestamptz,
  bounce_type text,
  bounce_code text,
  diag_code text,
  diag_message text,
  bounce_class text,
  isp text,
  primary key (org_id, message_id, position)
) partition by range (message_id);
call protect_tenant_table('recipient');

create table idempotency (
  org_id uuid not null,
  environment text not null,
  key text not null,
  request_hash bytea not null,
  status smallint not null,
  answer text not null,
  created_at timestamptz not null,
  primary key (org_id, environment, key)
);
create index idempotency_age on idempotency (created_at);
call protect_tenant_table('idempotency');

-- What may still be sent: one row per counted window (an organization's month, a domain's day, hour, minute). The row is
-- raised in the statement that accepts the mail; the check makes an excess fail the whole statement, so no limit is
-- ever exceeded by one, on any number of nodes.
create table allowance (
  org_id uuid not null,
  scope_id uuid not null,        -- the organization or the domain
  kind text not null check (kind in ('monthly_quota', 'daily', 'hourly', 'per_minute')),
  starts_at timestamptz not null,
  used bigint not null,
  ceiling bigint not null,
  primary key (org_id, scope_id, kind, starts_at),
  constraint allowance_not_exceeded check (used <= ceiling)
);
create index allowance_age on allowance (starts_at);
call protect_tenant_table('allowance');

-- The queue --------------------------------------------------------------------------------------------------------

create table source (
  id uuid primary key,
  org_id uuid,                   -- null: shared by all
  pool text,
  ip inet,                       -- null: the machine's default address
  ehlo text,
  slots smallint not null default 16,
  created_at timestamptz not null default now()
);
insert into source (id) values ('00000000-0000-7000-8000-000000000001');

-- A process that sends. Its id is new at every start and serves as the fence: once a node is declared dead its row is
-- gone, its deliveries are free again, and whatever it still writes touches no row. Lease times are this database's.
create table node (
  id bigint generated always as identity primary key,
  machine text not null,         -- machine and process-id space: a restarted process may bury its predecessor at once
  pid integer not null,
  roles text[] not null,
  started_at timestamptz not null default now(),
  seen_at timestamptz not null default now()
);

create table lease (
  source_id uuid not null references source on delete cascade,
  slot smallint not null,
  node_id bigint,
  primary key (source_id, slot)
);
insert into lease (source_id, slot)
  select '00000000-0000-7000-8000-000000000001', slot from generate_series(0, 15) as slot;

create table lane (
  id bigint generated always as identity primary key,
  org_id uuid not null,
  source_id uuid not null references source,
  slot smallint not null,
  domain text not null,
  class smallint not null,
  next_at timestamptz not null,
  paused_until timestamptz,
  reason text,
  touched_at timestamptz not null,
  unique (org_id, source_id, domain, class)
) with (fillfactor = 70);
create index lane_due on lane (source_id, slot, next_at);
call protect_tenant_table('lane');

create table delivery (
  org_id uuid not null,
  message_id uuid not null,
  position smallint not null,
  lane_id bigint not null,
  email text not null,
  due_at timestamptz not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  attempts smallint not null default 0,
  owner bigint,                  -- node.id; null: free to claim
  deferred_event_at timestamptz, -- when the last email.deferred was sent
  absent_since timestamptz,      -- first NXDOMAIN; a second one an hour later is final
  return_path_host text not null,
  primary key (org_id, message_id, position)
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index delivery_claim on delivery (lane_id, due_at) where owner is null;
create index delivery_owned on delivery (owner) where owner is not null;
create index delivery_expiry on delivery (expires_at) where owner is null;
call protect_tenant_table('delivery');

-- An e-mail's status is a fold of its recipients' (completions §2). Suppressed recipients were never tried: they count
-- only when there is nobody else.
create function fold_status(statuses text[]) returns text language sql immutable parallel safe as $$
  select case
    when 'simulated' = any(statuses) then 'simulated'
    when statuses && '{queued,deferred,scheduled}' then
      case when 'deferred' = any(statuses) then 'deferred'
           when statuses && '{delivered,complained,bounced,failed,expired,canceled}' then 'sending'
           when 'scheduled' = any(statuses) then 'scheduled'
           else 'queued' end
    when statuses && '{delivered,complained}' then
      case when statuses && '{bounced,failed,expired,canceled}' then 'partially_delivered'
           when 'complained' = any(statuses) then 'complained'
           else 'delivered' end
    when 'bounced' = any(statuses) then 'bounced'
    when 'failed' = any(statuses) then 'failed'
    when 'expired' = any(statuses) then 'expired'
    when 'canceled' = any(statuses) then 'canceled'
    else 'suppressed' end $$;

-- The event log ----------------------------------------------------------------------------------------------------

create table event (
  org_id uuid not null,
  id uuid not null,
  message_id uuid not null,
  event_type text not null,
  recipient text,
  at timestamptz not null,
  attempt smallint,
  smtp_code text,
  enhanced_code text,
  message text,
  mx_host text,
  mx_ip text,
  source_ip text,
  tls text,
  duration_ms integer,
  class text,
  primary key (org_id, id)
) partition by range (id);
create index event_by_message on event (org_id, message_id);
call protect_tenant_table('event');

-- Leaf storage: bodies up to 8 KB stay in the row, neither compressed nor out of line: compressing them costs more
-- than the disk they save at this size.
insert into day_partitioned (table_name, retention_class, storage) values
  ('message', 'message', 'with (fillfactor = 90)'),
  ('message_body', 'body', 'with (toast_tuple_target = 8160)'),
  ('recipient', 'message', 'with (fillfactor = 90)'),
  ('event', 'event', '');

call make_day_partitions((now() at time zone 'UTC')::date - 1, (now() at time zone 'UTC')::date + 3);
