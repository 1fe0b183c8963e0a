-- Sums that triggers kept are kept by the statements that change what is summed, and a template version is kept from being changed by a
-- policy: PostgreSQL with Citus knows no triggers on the tables of a distributed schema. The triggers stay for processes of older versions,
-- which run beside this one during an upgrade; sessions of this one say that their statements do it. They go when a schema is distributed.

drop trigger suppression_added on suppression;
drop trigger suppression_removed on suppression;
drop trigger suppression_changed on suppression;
create function postern_sums_by_trigger() returns boolean language sql stable parallel safe
  as $$ select coalesce(current_setting('postern.sums', true), '') <> 'statements' $$;
create trigger suppression_added after insert on suppression
  referencing new table as added for each statement when (postern_sums_by_trigger()) execute function count_suppressions();
create trigger suppression_removed after delete on suppression
  referencing old table as removed for each statement when (postern_sums_by_trigger()) execute function count_suppressions();
create trigger suppression_changed after update on suppression
  referencing old table as removed new table as added for each statement when (postern_sums_by_trigger())
  execute function count_suppressions();

drop trigger dmarc_day_source_added on dmarc_day_source;
drop trigger dmarc_day_source_changed on dmarc_day_source;
create trigger dmarc_day_source_added after insert on dmarc_day_source
  referencing new table as added for each statement when (postern_sums_by_trigger()) execute function dmarc_add_to_weeks();
create trigger dmarc_day_source_changed after update on dmarc_day_source
  referencing old table as removed new table as added for each statement when (postern_sums_by_trigger())
  execute function dmarc_add_to_weeks();

-- The source and reason that an entry had before it was last changed: what a statement that changes it must take from the sums, as
-- `returning` knows new values alone.
alter table suppression add column was text[];

-- With a key of its own a row can be copied to another server while rows are written. The organization first: the key serves those who
-- look for its rows, too.
alter table suppression_count add column id bigint generated always as identity;
alter table suppression_count add primary key (org_id, id);
drop index suppression_count_org;

drop trigger template_version_is_immutable on template_version;
drop function refuse_template_version_update();
create policy never_changed on template_version as restrictive for update using (false);

-- True where Citus places this schema on one of its servers as a whole.
create function postern_is_distributed() returns boolean language plpgsql stable as $$
declare
  found boolean := false;
begin
  if to_regclass('pg_catalog.pg_dist_schema') is not null then
    execute 'select exists (select from pg_catalog.pg_dist_schema where schemaid = current_schema()::regnamespace)' into found;
  end if;
  return found;
end $$;

-- The inner selects are evaluated once for each statement, not for each row: a count of 200,000 rows takes a third of the time. Citus
-- refuses them.
create or replace procedure protect_tenant_table(table_name regclass, org_column text default 'org_id') language plpgsql as $$
declare
  wall text := case when postern_is_distributed() then 'postern_system() or %I = postern_org()'
                    else '(select postern_system()) or %I = (select postern_org())' end;
begin
  execute format('alter table %s enable row level security', table_name);
  execute format('alter table %s force row level security', table_name);
  execute format('create policy tenant on %s using (' || wall || ')', table_name, org_column);
end $$;

-- For tables of no organization.
create procedure protect_system_table(table_name regclass) language plpgsql as $$
begin
  execute format('alter table %s enable row level security', table_name);
  execute format('alter table %s force row level security', table_name);
  execute format('create policy system on %s using (%s)', table_name,
    case when postern_is_distributed() then 'postern_system()' else '(select postern_system())' end);
end $$;
