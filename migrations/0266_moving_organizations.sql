-- An organization that moves to another cell: nothing of it may change meanwhile, so every process says when it knows, and when what
-- it had begun before is over (src/moving/).

alter table organization drop constraint organization_state_check;
alter table organization add constraint organization_state_check
  check (state in ('pending_review', 'active', 'suspended', 'moving'));

-- Since when, and the state that it has elsewhere, or here if it stays.
create table organization_move (
  org_id uuid not null primary key references organization (id),
  state_before text not null check (state_before in ('pending_review', 'active', 'suspended')),
  began_at timestamptz not null,
  -- The file was written whole, with so many mails, sent and received. More of them later would be lost.
  exported_at timestamptz,
  exported_mails bigint
);
call protect_tenant_table('organization_move');

-- Processes that do nothing for it any more.
create table organization_move_seen (
  org_id uuid not null references organization_move (org_id) on delete cascade,
  process uuid not null,
  primary key (org_id, process)
);
call protect_tenant_table('organization_move_seen');
