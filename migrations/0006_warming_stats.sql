-- Warming of sender domains (how much a domain may send today, and what was decided each day), and the counters behind
-- the statistics. The windows that warming sets are counted in allowance (0001).

-- A domain without a row has not started. The day of a phase follows from phase_started_at, paused_days and today's date,
-- so that a limit rises at midnight (UTC) without anybody's doing; the clock role only decides what comes next.
create table warming (
  org_id uuid not null,
  domain_id uuid not null,
  phase text not null check (phase in ('phase_1', 'phase_2', 'phase_3', 'phase_4', 'warmed')),
  warming_started_at timestamptz not null,
  phase_started_at timestamptz not null,
  paused_days integer not null default 0,   -- days of this phase that do not count, because it was paused
  paused_at timestamptz,                    -- null: not paused
  paused_reason text,
  held_reason text,
  judged_from timestamptz not null,         -- figures from before do not count: a start and a resume begin anew
  decided_through date not null,            -- the last day that was decided
  idle_days integer not null default 0,
  next_look_at timestamptz not null,
  primary key (org_id, domain_id),
  foreign key (org_id, domain_id) references domain (org_id, id) on delete cascade
);
create index warming_due on warming (next_look_at);
call protect_tenant_table('warming');

create table warming_day (
  org_id uuid not null,
  domain_id uuid not null,
  date date not null,
  phase text not null,
  daily_limit integer,                      -- null: there was none
  sent bigint not null,
  delivered bigint not null,
  bounced bigint not null,
  hard_bounced bigint not null,
  complained bigint not null,
  decision text not null check (decision in ('continued', 'advanced', 'held', 'paused', 'stepped_back')),
  reason text,
  primary key (org_id, domain_id, date),
  foreign key (org_id, domain_id) references warming (org_id, domain_id) on delete cascade
);
create index warming_day_age on warming_day (date);
call protect_tenant_table('warming_day');

-- Counters, raised in the transaction that records the events, so that a question about 90 days adds up some thousand
-- rows however many events there were. No row is hot: concurrent writers are different sessions of the server, and each
-- session writes the shard of its process id; the clock role merges spans that are over into shard 0. Hours do not tell
-- mailbox providers apart (isp is ''), days do.
create table stat (
  org_id uuid not null,
  domain_id uuid not null,
  span text collate "C" not null check (span in ('hour', 'day')),
  starts_at timestamptz not null,
  isp text collate "C" not null,
  shard smallint not null,
  total_sent bigint not null,
  total_delivered bigint not null,
  total_deferred bigint not null,
  total_bounced bigint not null,
  total_hard_bounce bigint not null,
  total_complaints bigint not null,
  total_suppressed bigint not null,
  total_failed bigint not null,
  primary key (org_id, domain_id, span, starts_at, isp, shard)
) with (fillfactor = 70);   -- room for updates in place
create index stat_unmerged on stat (starts_at) where shard > 0;
create index stat_age on stat (starts_at);
call protect_tenant_table('stat');

-- Why mail bounced, a day and provider.
create table stat_reason (
  org_id uuid not null,
  domain_id uuid not null,
  starts_at timestamptz not null,
  isp text collate "C" not null,
  reason text collate "C" not null,   -- the bounce class
  code text collate "C" not null,     -- enhanced status code; '' when there was none
  shard smallint not null,
  count bigint not null,
  primary key (org_id, domain_id, starts_at, isp, reason, code, shard)
) with (fillfactor = 70);
create index stat_reason_unmerged on stat_reason (starts_at) where shard > 0;
create index stat_reason_age on stat_reason (starts_at);
call protect_tenant_table('stat_reason');
