-- What `postern doctor` found when an operator asked for it on the dashboard: the last look of each machine.
create table health_look (
  machine text primary key,
  at timestamptz not null,
  asked_by text not null,        -- the person's address
  checks jsonb not null          -- [{name, status, says, remedy}]
);
alter table health_look enable row level security;
alter table health_look force row level security;
create policy system on health_look using ((select postern_system()));
