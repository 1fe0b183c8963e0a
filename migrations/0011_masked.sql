-- Masked addresses: aliases, the mailboxes behind them, the people who write to them, and what happened. Addresses of
-- people are sealed under the master key and looked up by keyed hash; activity holds neither subjects nor bodies.

-- Every address ever given out, for ever: a deleted alias is a tombstone here. Global, because one address has one owner.
create table masked_address (
  digest bytea primary key,           -- keyed hash of the address, lower case
  org_id uuid not null,
  kind text not null check (kind in ('alias', 'reverse')),
  alias_id uuid not null,
  contact_id uuid                     -- of a reverse address
);
call protect_tenant_table('masked_address');

create table masked_alias (
  org_id uuid not null references organization,
  id uuid not null,
  environment text not null check (environment in ('live', 'test')),
  domain_id uuid,                     -- null: the service's masked domain
  domain text not null,
  local_part text not null,           -- lower case
  masked_description text,
  display_name text,
  metadata jsonb not null default '{}',
  active boolean not null default true,
  disabled_reason text,
  on_disabled text not null default 'drop' check (on_disabled in ('drop', 'reject')),
  reply_enabled boolean not null default true,
  redact text not null default 'all' check (redact in ('all', 'quoted', 'off')),
  emails_received bigint not null default 0,
  emails_forwarded bigint not null default 0,
  emails_replied bigint not null default 0,
  emails_blocked bigint not null default 0,
  last_activity_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz,
  primary key (org_id, id)
) with (fillfactor = 70);
create index masked_alias_by_domain on masked_alias (org_id, domain_id) where domain_id is not null;
call protect_tenant_table('masked_alias');

create table masked_destination (
  org_id uuid not null references organization,
  id uuid not null,
  environment text not null check (environment in ('live', 'test')),
  digest bytea not null,              -- keyed hash of the address, lower case
  sealed bytea not null,              -- the address
  status text not null check (status in ('pending', 'verified', 'suspended')),
  suspended_reason text,
  confirmation_sent_at timestamptz,
  confirmations_sent smallint not null default 0,
  confirmed_at timestamptz,
  hard_bounces timestamptz[] not null default '{}',   -- of the last 24 hours
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org_id, id),
  constraint masked_destination_address unique (org_id, environment, digest)
) with (fillfactor = 80);
call protect_tenant_table('masked_destination');

create table masked_alias_destination (
  org_id uuid not null,
  alias_id uuid not null,
  destination_id uuid not null,
  position smallint not null,
  primary key (org_id, alias_id, destination_id),
  foreign key (org_id, alias_id) references masked_alias (org_id, id) on delete cascade,
  foreign key (org_id, destination_id) references masked_destination (org_id, id)
);
create index masked_alias_destination_back on masked_alias_destination (org_id, destination_id);
call protect_tenant_table('masked_alias_destination');

create table masked_contact (
  org_id uuid not null,
  id uuid not null,
  alias_id uuid not null,
  digest bytea not null,              -- keyed hash of alias and address
  sealed bytea not null,              -- address, name, and the local part of the reverse address
  blocked boolean not null default false,
  source text not null check (source in ('inbound', 'api')),
  received bigint not null default 0,
  sent bigint not null default 0,
  last_seen_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org_id, id),
  constraint masked_contact_address unique (org_id, alias_id, digest),
  foreign key (org_id, alias_id) references masked_alias (org_id, id) on delete cascade
) with (fillfactor = 80);
create index masked_contact_new on masked_contact (org_id, alias_id, created_at);
call protect_tenant_table('masked_contact');

-- The Message-IDs that both sides may know. counterpart: what stands for this one on the other side; null: itself.
create table masked_message_id (
  org_id uuid not null,
  alias_id uuid not null,
  digest bytea not null,
  counterpart bytea,                  -- sealed
  created_at timestamptz not null,
  primary key (org_id, alias_id, digest),
  foreign key (org_id, alias_id) references masked_alias (org_id, id) on delete cascade
);
create index masked_message_id_age on masked_message_id (created_at);
call protect_tenant_table('masked_message_id');

create table masked_activity (
  org_id uuid not null,
  id uuid not null,
  alias_id uuid not null,
  type text not null check (type in ('forward', 'reply', 'block', 'bounce', 'quarantine', 'auto_reply', 'config')),
  outcome text not null check (outcome in ('sent', 'deferred', 'failed', 'dropped', 'held')),
  reason text,
  contact_id uuid,
  destination_id uuid,
  message_id text,
  size integer,
  spf text,
  dkim text,
  dmarc text,
  spam_score real,
  redactions integer,
  at timestamptz not null,
  primary key (org_id, id)
) partition by range (id);
create index masked_activity_by_alias on masked_activity (org_id, alias_id, id);
call protect_tenant_table('masked_activity');

-- Counted windows of an alias: forwards a minute, replies an hour and a day.
create table masked_window (
  org_id uuid not null,
  alias_id uuid not null,
  kind text not null check (kind in ('forward_minute', 'reply_hour', 'reply_day')),
  starts_at timestamptz not null,
  used integer not null,
  primary key (org_id, alias_id, kind, starts_at)
);
create index masked_window_age on masked_window (starts_at);
call protect_tenant_table('masked_window');

-- The signing key of the service's masked domain; it belongs to no organization.
create table masked_key (
  domain text primary key,
  id uuid not null,
  selector text not null,
  public_key text not null,
  private_key bytea not null,         -- sealed
  created_at timestamptz not null
);

insert into day_partitioned (table_name, retention_class, storage) values ('masked_activity', 'event', '');
call make_day_partitions((now() at time zone 'UTC')::date - 1, (now() at time zone 'UTC')::date + 3);
