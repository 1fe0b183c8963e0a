-- What lists of sent mail are searched for, of days that are over: senders, subjects, recipients and tags of some hundred e-mails in
-- one row, a line each, beside their ids, so that a search passes over texts and not over rows (docs/decisions/0044-searches-in-packed-texts.md).
-- facets: what of an e-mail never changes and is compared whole, such as its domain. id: of the newest e-mail in it. Lines are in the order of `ids`, the newest first. A day of an organization is packed whole or not.
create table message_texts (
  org_id uuid not null,
  id uuid not null,
  oldest_id uuid not null,
  day date not null,
  rows_in_it integer not null,
  ids uuid[] not null,
  senders text not null,
  subjects text not null,
  recipients text not null,
  tags text not null,
  facets text not null,
  primary key (org_id, id)
) partition by range (id);
call protect_tenant_table('message_texts');
-- The planner's samples of a column outlive its rows (0121).
alter table message_texts alter column ids set statistics 0, alter column senders set statistics 0, alter column subjects set statistics 0,
  alter column recipients set statistics 0, alter column tags set statistics 0, alter column facets set statistics 0;
insert into day_partitioned (table_name, retention_class, storage) values ('message_texts', 'message', '');
-- Days of which everything is packed that is to be.
create table message_texts_day (day date primary key);
call protect_system_table('message_texts_day');
-- Days that hold mail already are packed as well.
do $$
declare
  leaf text;
begin
  for leaf in
    select right(c.relname, 8) from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'message'::regclass
  loop
    call make_day_partitions(to_date(leaf, 'YYYYMMDD'), to_date(leaf, 'YYYYMMDD'));
  end loop;
end $$;
