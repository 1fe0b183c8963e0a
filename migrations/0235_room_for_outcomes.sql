-- A row of message and of recipient is updated once, moments after it was written, and many of one page in one transaction: what is
-- dead then can be cleared away after the commit only. With a tenth of the page free (0001) most of the new rows went to other pages,
-- each with its entries in all indexes. Half of the page is free now, from today's partitions on.
update day_partitioned set storage = 'with (fillfactor = 50)' where table_name in ('message', 'recipient');

do $$
declare
  leaf regclass;
begin
  for leaf in
    select i.inhrelid::regclass from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent in ('message'::regclass, 'recipient'::regclass)
       and right(c.relname, 8) >= to_char(now() at time zone 'UTC', 'YYYYMMDD')
  loop
    execute format('alter table %s set (fillfactor = 50)', leaf);
  end loop;
end $$;
