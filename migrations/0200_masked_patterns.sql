-- Patterns of a mailbox (*.lena@own.example): mail to an address that matches makes an alias. What they made stays when they go,
-- and so do the address and the alias's note of where it comes from.
create table masked_pattern (
  org_id uuid not null references organization,
  id uuid not null,
  environment text not null check (environment in ('live', 'test')),
  destination_id uuid not null,
  domain text not null,
  local_pattern text not null,
  aliases_hour integer not null check (aliases_hour > 0),
  aliases_day integer not null check (aliases_day > 0),
  created_at timestamptz not null,
  primary key (org_id, id),
  constraint masked_pattern_text unique (org_id, environment, domain, local_pattern),
  foreign key (org_id, destination_id) references masked_destination (org_id, id) on delete cascade
);
create index masked_pattern_by_destination on masked_pattern (org_id, destination_id, id);
call protect_tenant_table('masked_pattern');

-- The pattern that made the alias, as it was written; null: somebody made it.
alter table masked_alias add column pattern text;
create index masked_alias_by_pattern on masked_alias (org_id, environment, pattern) where pattern is not null;
alter table masked_settings add column pattern_aliases integer not null default 1000 check (pattern_aliases > 0);
