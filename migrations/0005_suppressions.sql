-- Who must not be mailed (suppression), how many that are (suppression_count), and lists brought from other providers
-- (suppression_import and the blocks of rows that a preview has read).

-- email and scope_id compare by bytes (collation C): the look-up of the send path is one descent of the unique index,
-- and locks taken in the order of that index never cross. scope_id is '' for the scope org.
create table suppression (
  org_id uuid not null,
  id uuid not null,
  email text collate "C" not null,
  reason text not null check (reason in ('hard_bounce', 'complaint', 'manual', 'unsubscribe')),
  scope_type text not null check (scope_type in ('org', 'domain', 'stream', 'template', 'list')),
  scope_id text collate "C" not null default '',
  source text not null,
  source_message_id uuid,
  bounce_code text,
  diag_code text,
  feedback_type text,
  note text,
  expires_at timestamptz,
  created_at timestamptz not null,
  primary key (org_id, id),
  constraint suppression_address unique (org_id, email, scope_type, scope_id),
  check ((scope_type = 'org') = (scope_id = ''))
);
-- `nulls last` is the point: lists of one kind or scope order by it, which the primary key cannot serve. Without it the
-- planner, who takes every kind for common, walks back through all entries to find the few (45 ms at 200,000 entries).
create index suppression_by_kind on suppression (org_id, source, reason, scope_type, id desc nulls last);
create index suppression_by_scope on suppression (org_id, scope_id, id desc nulls last) where scope_id <> '';
create index suppression_expiry on suppression (expires_at) where expires_at is not null;
call protect_tenant_table('suppression');

-- Of two reasons for one address and scope the stronger one stays.
create function suppression_rank(reason text) returns integer language sql immutable parallel safe as $$
  select case reason when 'complaint' then 3 when 'hard_bounce' then 2 when 'unsubscribe' then 1 else 0 end $$;

-- Exact totals without counting: every statement that changes suppression leaves its difference here, one row for each
-- kind it touched; a total is the sum. Rows are only appended, so that writers never wait for each other; the clock
-- role folds them. Measured: 0.15 ms however long the list is; count(*) walks all of it for every page.
create table suppression_count (
  org_id uuid not null,
  source text not null,
  reason text not null,
  scope_type text not null,
  entries bigint not null
);
create index suppression_count_org on suppression_count (org_id);
call protect_tenant_table('suppression_count');

create function count_suppressions() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into suppression_count (org_id, source, reason, scope_type, entries)
      select org_id, source, reason, scope_type, count(*) from added group by 1, 2, 3, 4;
  elsif tg_op = 'DELETE' then
    insert into suppression_count (org_id, source, reason, scope_type, entries)
      select org_id, source, reason, scope_type, -count(*) from removed group by 1, 2, 3, 4;
  else
    insert into suppression_count (org_id, source, reason, scope_type, entries)
      select org_id, source, reason, scope_type, sum(entries)
        from (select org_id, source, reason, scope_type, 1 as entries from added
              union all select org_id, source, reason, scope_type, -1 from removed) as changed
       group by 1, 2, 3, 4 having sum(entries) <> 0;
  end if;
  return null;
end $$;

create trigger suppression_added after insert on suppression
  referencing new table as added for each statement execute function count_suppressions();
create trigger suppression_removed after delete on suppression
  referencing old table as removed for each statement execute function count_suppressions();
create trigger suppression_changed after update on suppression
  referencing old table as removed new table as added for each statement execute function count_suppressions();

-- A list brought from another provider. `reading` until the whole file is staged (nobody sees it before), then the
-- states of the interface. While committing, one worker holds the lease; epoch fences off its predecessors.
create table suppression_import (
  org_id uuid not null,
  id uuid not null,
  status text not null
    check (status in ('reading', 'previewed', 'committing', 'committed', 'failed', 'expired')),
  provider text not null,
  total_rows integer not null default 0,
  valid_rows integer not null default 0,
  invalid_rows integer not null default 0,
  duplicate_rows integer not null default 0,
  already_suppressed_rows integer not null default 0,
  by_reason jsonb not null default '{}',
  sample jsonb not null default '[]',
  errors jsonb not null default '[]',
  committed_rows integer not null default 0,
  block_count integer not null default 0,
  next_block integer not null default 0,
  epoch integer not null default 0,
  lease_until timestamptz,
  failed_claims smallint not null default 0,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (org_id, id)
);
create index suppression_import_due on suppression_import (lease_until) where status = 'committing';
create index suppression_import_expiry on suppression_import (expires_at);
call protect_tenant_table('suppression_import');

-- Up to 2,000 entries of an import as one JSON array: staging a million rows is 500 inserts, committing them is 500
-- statements that move no row through the program. Not compressed: they live for minutes.
create table suppression_import_block (
  org_id uuid not null,
  job_id uuid not null,
  position integer not null,
  row_count integer not null,
  entry_count integer not null,
  entries json not null,
  primary key (org_id, job_id, position),
  foreign key (org_id, job_id) references suppression_import on delete cascade
);
alter table suppression_import_block alter column entries set storage external;
call protect_tenant_table('suppression_import_block');
