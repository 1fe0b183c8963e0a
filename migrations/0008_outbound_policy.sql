-- What decides over which way, from which address and under which TLS policy mail leaves.

-- MTA-STS (RFC 8461) -----------------------------------------------------------------------------------------------

-- The policies of the domains we deliver to; of all organizations, as the domains are the world's. A policy counts until
-- it expires, whatever becomes of its DNS record meanwhile.
create table sts_policy (
  domain text collate "C" primary key,   -- the recipient domain: ASCII, lower case
  policy_id text not null,               -- of the TXT record under which it was fetched
  mode text not null check (mode in ('enforce', 'testing', 'none')),
  mx text[] not null,                    -- host names and *. patterns
  max_age_s integer not null,
  fetched_at timestamptz not null,
  expires_at timestamptz not null,
  refresh_at timestamptz not null,       -- the clock role fetches it anew, long before it expires
  used_at timestamptz not null           -- kept within a day; policies that nobody needs are let expire
);
create index sts_policy_refresh on sts_policy (refresh_at);
create index sts_policy_expiry on sts_policy (expires_at);

-- Outgoing TLS reports (RFC 8460) ------------------------------------------------------------------------------------

-- What a domain's policy was, as its report must repeat it; named by the digest of its text.
create table tls_policy_text (
  policy_hash bytea primary key,
  policy_type text not null check (policy_type in ('tlsa', 'sts', 'no-policy-found')),
  policy_domain text not null,           -- the recipient domain, or the TLSA base domain
  policy_strings text[] not null,
  last_day date not null
);

-- Sessions a day, by recipient domain, policy and result ('success' or a failure type of RFC 8460 §4.3). Each process
-- gathers its counts in memory and adds them every few seconds: no row is hot, and a crash costs seconds of statistics.
create table tls_result (
  day date not null,
  domain text collate "C" not null,
  policy_hash bytea not null,
  result text not null,
  mx_host text not null,                 -- '' for successes, which are not told apart, and where there was none
  mx_ip text not null,
  source_ip text not null,
  sessions bigint not null,
  detail text,                           -- the last failure's own words
  primary key (day, domain, policy_hash, result, mx_host, mx_ip, source_ip)
);

-- Relays -----------------------------------------------------------------------------------------------------------

-- The server that a sender domain's mail leaves through instead of going to the recipients' own: always, or while the
-- machine cannot reach port 25 of anybody.
create table relay (
  org_id uuid not null,
  domain_id uuid not null,
  host text not null,                    -- a name, or a public address
  port integer not null,
  username text,
  password bytea,                        -- sealed
  tls text not null check (tls in ('starttls', 'implicit', 'none')),
  mode text not null check (mode in ('always', 'fallback')),
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org_id, domain_id),
  foreign key (org_id, domain_id) references domain (org_id, id) on delete cascade,
  check ((username is null) = (password is null))
);
call protect_tenant_table('relay');

-- Mail through a relay has lanes of its own: that a relay is dead must not park the direct mail of another domain, nor
-- the other way round. Null: direct.
alter table lane add column relay_domain_id uuid;
alter table lane drop constraint lane_org_id_source_id_domain_class_key;
alter table lane add constraint lane_name unique nulls not distinct (org_id, source_id, domain, class, relay_domain_id);

-- Machines from which nobody's port 25 can be reached, as their processes found; each looks again every minute.
create table port_closed (
  machine text primary key,              -- as in node
  since timestamptz not null,
  seen_at timestamptz not null,
  targets text[] not null                -- addresses to look at
);

-- Pools of dedicated addresses -------------------------------------------------------------------------------------

create table ip_pool (
  org_id uuid not null references organization,
  id uuid not null,
  name text collate "C" not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org_id, id),
  unique (org_id, name)
);
call protect_tenant_table('ip_pool');

-- A source of a pool is an address of some sending machine. One that was taken out of its pool stays until its lanes are
-- empty: others of the pool send what waits in them, or, without any, the shared address.
alter table source
  add column weight smallint not null default 1 check (weight between 1 and 100),
  add column warmup_started_at timestamptz,   -- null: it may send without a daily limit
  add column removed_at timestamptz;
-- An address is one organization's at a time.
create unique index source_address on source (ip) where ip is not null and removed_at is null;
create index source_by_pool on source (org_id, pool);
call protect_tenant_table('source');

-- What an address did on a day. `granted` are attempts set aside under its warm-up limit, in one row for all processes, so
-- that the limit holds exactly; the outcomes are gathered by each process and added every few seconds.
create table source_day (
  source_id uuid not null references source on delete cascade,
  day date not null,
  granted bigint not null default 0,
  delivered bigint not null default 0,
  deferred bigint not null default 0,
  bounced bigint not null default 0,
  blocked bigint not null default 0,       -- of the deferred and bounced: refused for the address itself
  primary key (source_id, day)
);

-- Which addresses of pools a sending process can bind: a slot of a source goes to those that have its address.
alter table node add column addresses inet[] not null default '{}';
