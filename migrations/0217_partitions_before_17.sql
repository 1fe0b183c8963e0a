-- PostgreSQL before 17 says of system columns, too, that they are not sampled; they cannot be altered, and no day's partition could be made.
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
            where attrelid = parent.table_name::regclass and attnum > 0 and attstattarget = 0 and not attisdropped loop
          execute format('alter table %I alter column %I set statistics 0', leaf, unsampled);
        end loop;
        execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent.table_name, leaf,
          uuid_floor(day::timestamp at time zone 'UTC'), uuid_floor((day + 1)::timestamp at time zone 'UTC'));
      end if;
    end loop;
  end loop;
end $$;
