-- Bodies of mail (columns that are stored uncompressed, `external`) are compressed in days that are made from now on, where the server
-- has lz4: it costs no more than it saves, and more than half of what is written to the log is bodies. pglz, which every server has,
-- takes six times as long as storing 20 KB of text.
create procedure compress_bodies(leaf text) language plpgsql as $$
declare
  body text;
begin
  -- On Citus a day's table is on its shard as soon as it is made.
  if postern_is_distributed() or not exists (
      select from pg_settings where name = 'default_toast_compression' and 'lz4' = any (enumvals)) then
    return;
  end if;
  for body in select attname from pg_attribute
      where attrelid = leaf::regclass and attnum > 0 and attstorage = 'e' and not attisdropped loop
    execute format('alter table %I alter column %I set storage main', leaf, body);
    execute format('alter table %I alter column %I set compression lz4', leaf, body);
    execute format('alter table %I reset (toast_tuple_target)', leaf); -- from 2 KB on; `main` stays in the row while it fits
  end loop;
end $$;

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
        call compress_bodies(leaf);
        execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent.table_name, leaf,
          uuid_floor(day::timestamp at time zone 'UTC'), uuid_floor((day + 1)::timestamp at time zone 'UTC'));
      end if;
    end loop;
  end loop;
end $$;

-- A new database has days already. Those of one that is in use stay as they are: a long look into them would hold this up.
do $$
declare
  leaf text;
begin
  if exists (select from message_body) or exists (select from inbound_raw) then
    return;
  end if;
  for leaf in
    select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent in ('message_body'::regclass, 'inbound_raw'::regclass)
  loop
    call compress_bodies(leaf);
  end loop;
end $$;
