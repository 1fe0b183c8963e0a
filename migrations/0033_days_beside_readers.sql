-- A day is made beside its table and attached to it: that asks for no more than SHARE UPDATE EXCLUSIVE on the table, so that a
-- dump, which reads for hours, does not hold it up. CREATE TABLE … PARTITION OF asks for ACCESS EXCLUSIVE, behind which
-- everybody else waits as well.
create or replace procedure make_day_partitions(first_day date, last_day date) language plpgsql as $$
declare
  parent record;
  day date;
  leaf text;
begin
  for parent in select * from day_partitioned order by table_name loop
    for day in select d::date from generate_series(first_day, last_day, interval '1 day') as d loop
      leaf := parent.table_name || '_' || to_char(day, 'YYYYMMDD');
      if to_regclass(leaf) is null then
        execute format('create table %I (like %I including all) %s', leaf, parent.table_name, parent.storage);
        execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent.table_name, leaf,
          uuid_floor(day::timestamp at time zone 'UTC'), uuid_floor((day + 1)::timestamp at time zone 'UTC'));
      end if;
    end loop;
  end loop;
end $$;
