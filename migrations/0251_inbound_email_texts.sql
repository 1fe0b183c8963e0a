-- The same of received mail (0250). A day of an organization is unpacked again when a mail of it is deleted or processed again.
-- words: of the author, the recipient, the subject and the Message-ID together.
create table inbound_email_texts (
  org_id uuid not null,
  id uuid not null,
  oldest_id uuid not null,
  day date not null,
  rows_in_it integer not null,
  ids uuid[] not null,
  senders text not null,
  recipients text not null,
  subjects text not null,
  envelopes text not null,
  words text not null,
  facets text not null,
  primary key (org_id, id)
) partition by range (id);
call protect_tenant_table('inbound_email_texts');
alter table inbound_email_texts alter column ids set statistics 0, alter column senders set statistics 0,
  alter column recipients set statistics 0, alter column subjects set statistics 0, alter column envelopes set statistics 0,
  alter column words set statistics 0, alter column facets set statistics 0;
insert into day_partitioned (table_name, retention_class, storage) values ('inbound_email_texts', 'inbound', '');
do $$
declare
  leaf text;
begin
  for leaf in
    select right(c.relname, 8) from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'inbound_email'::regclass
  loop
    call make_day_partitions(to_date(leaf, 'YYYYMMDD'), to_date(leaf, 'YYYYMMDD'));
  end loop;
end $$;
