-- Webhooks: endpoints, the bodies that are sent (once an event, for all endpoints), the queue of deliveries under way,
-- and the log of finished ones. A lane is an endpoint's place in the queue: what one endpoint has waiting is one row
-- for whoever looks for work, however much it is.

create table webhook (
  org_id uuid not null references organization,
  id uuid not null,
  webhook_url text not null,
  event_types text[] not null,
  domain_id uuid,                     -- null: all domains
  match_pattern text,
  enabled boolean not null default true,
  disabled_reason text check (disabled_reason in ('asked', 'gone')),
  disabled_at timestamptz,
  secret bytea,                       -- sealed
  previous_secret bytea,              -- sealed; signs beside the newer one until it expires
  previous_secret_expires_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org_id, id)
);
call protect_tenant_table('webhook');

-- next_at: when to look for work here again; 'infinity' while there is none. A producer holds a key-share lock on the
-- lane from before it inserts until it commits, so nobody can send the lane to sleep past rows that are not visible yet.
create table webhook_lane (
  org_id uuid not null references organization,
  webhook_id uuid not null,
  next_at timestamptz not null default 'infinity',
  consecutive_failures integer not null default 0,
  last_success_at timestamptz,
  primary key (org_id, webhook_id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index webhook_lane_due on webhook_lane (next_at);
call protect_tenant_table('webhook_lane');

create table webhook_event (
  org_id uuid not null,
  id uuid not null,                   -- event_id
  event text not null,
  created_at timestamptz not null,
  body bytea not null,                -- the exact bytes of every attempt
  primary key (org_id, id)
) partition by range (id);
call protect_tenant_table('webhook_event');

create table webhook_queue (
  org_id uuid not null,
  id uuid not null,
  webhook_id uuid not null,
  event_id uuid not null,
  event text not null,
  body_bytes integer not null,
  created_at timestamptz not null,
  attempt smallint not null default 0,    -- attempts made
  next_attempt_at timestamptz not null,
  claim_id uuid,                          -- who works on it; the fence of its outcome; null: free to claim
  lease_until timestamptz,                -- the database's own clock
  status_code smallint,                   -- of the last attempt, as are the next three
  error text,
  duration_ms integer,
  attempt_id uuid,
  primary key (org_id, id)
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index webhook_queue_claim on webhook_queue (org_id, webhook_id, next_attempt_at);
create index webhook_queue_leased on webhook_queue (lease_until) where claim_id is not null;
create index webhook_queue_by_event on webhook_queue (org_id, event_id);
call protect_tenant_table('webhook_queue');

create table webhook_delivery (
  org_id uuid not null,
  id uuid not null,
  webhook_id uuid not null,
  event_id uuid not null,
  event text not null,
  created_at timestamptz not null,
  finished_at timestamptz not null,
  attempt smallint not null,
  status text not null check (status in ('delivered', 'failed')),
  status_code smallint,
  error text,
  duration_ms integer,
  attempt_id uuid,
  replayed_at timestamptz,
  primary key (org_id, id)
) partition by range (id);
create index webhook_delivery_by_webhook on webhook_delivery (org_id, webhook_id, id);
create index webhook_delivery_by_event on webhook_delivery (org_id, event_id);
call protect_tenant_table('webhook_delivery');

-- Bodies are kept at least 36 days: longer than failed deliveries may be replayed (30 days) plus their attempts.
insert into day_partitioned (table_name, retention_class, storage) values
  ('webhook_event', 'body', 'with (toast_tuple_target = 8160)'),
  ('webhook_delivery', 'event', '');

call make_day_partitions((now() at time zone 'UTC')::date - 1, (now() at time zone 'UTC')::date + 3);
