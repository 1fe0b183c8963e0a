-- What an organization sets for its masked addresses; without a row everything is as at first (src/masked/settings.ts).
create table masked_settings (
  org_id uuid primary key references organization,
  replies_person_hour integer not null check (replies_person_hour > 0),
  replies_person_day integer not null check (replies_person_day > 0),
  replies_hour integer not null check (replies_hour > 0),
  replies_day integer not null check (replies_day > 0),
  aliases_hour integer not null check (aliases_hour > 0),
  aliases_day integer not null check (aliases_day > 0),
  updated_at timestamptz not null
);
call protect_tenant_table('masked_settings');

-- Windows of a person (all aliases of one destination) and of an organization, beside those of an alias; alias_id is then the
-- destination's id, or the organization's.
alter table masked_window drop constraint masked_window_kind_check;
