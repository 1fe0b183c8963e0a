-- The planner's samples of a column outlive its rows: none are taken of columns that name people and their servers. No
-- statement is planned by them.
alter table event alter column recipient set statistics 0, alter column mx_host set statistics 0,
  alter column message set statistics 0;
alter table recipient alter column email set statistics 0, alter column diag_message set statistics 0;
alter table message alter column from_header set statistics 0, alter column subject set statistics 0;
alter table inbound_email alter column recipient set statistics 0, alter column envelope_from set statistics 0,
  alter column from_address set statistics 0, alter column subject set statistics 0,
  alter column authentication_results set statistics 0, alter column findings set statistics 0;
alter table inbound_raw alter column envelope_from set statistics 0, alter column helo set statistics 0;
alter table masked_activity alter column message_id set statistics 0, alter column detail set statistics 0;

-- Tables that are made like another do not take this over.
create or replace procedure make_day_partitions(first_day date, last_day date) language plpgsql as $$
declare
  parent record;
  day date;
  leaf text;
  unsampled text;
begin
  for parent in select * from day_partitioned order by table_name loop
    for day in select d::date from generate_series(first_day, last_day, interval '1 day') as d loop
      leaf := parent.table_name || '_' || to_char(day, 'YYYYMMDD');
      if to_regclass(leaf) is null then
        execute format('create table %I (like %I including all) %s', leaf, parent.table_name, parent.storage);
        for unsampled in select attname from pg_attribute
            where attrelid = parent.table_name::regclass and attstattarget = 0 and not attisdropped loop
          execute format('alter table %I alter column %I set statistics 0', leaf, unsampled);
        end loop;
        execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent.table_name, leaf,
          uuid_floor(day::timestamp at time zone 'UTC'), uuid_floor((day + 1)::timestamp at time zone 'UTC'));
      end if;
    end loop;
  end loop;
end $$;
