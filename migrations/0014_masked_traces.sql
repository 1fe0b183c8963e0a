-- What still holds addresses of people because a mail to or from a masked alias is on its way: the received mail, and each
-- message that was queued for it. A row is looked at until its mail is over; then what it left elsewhere is forgotten.
create table masked_trace (
  org_id uuid not null,
  id uuid not null,                   -- of the queued message, or of the received mail
  kind text not null check (kind in ('received', 'forward', 'reply', 'notice')),
  alias_id uuid,                      -- null: the request to confirm a destination
  destination_id uuid,                -- whom a forward goes to
  contact_id uuid,                    -- whose mail it carries, or to whom a reply goes
  owner_id uuid,                      -- of a reply: the destination that wrote it
  created_at timestamptz not null,
  due_at timestamptz,                 -- when it is looked at again; null: it is over
  bounced_at timestamptz,             -- a bounce counts and is told once
  primary key (org_id, id)
) partition by range (id);
create index masked_trace_due on masked_trace (due_at) where due_at is not null;
call protect_tenant_table('masked_trace');

insert into day_partitioned (table_name, retention_class, storage) values ('masked_trace', 'message', 'with (fillfactor = 80)');
call make_day_partitions((now() at time zone 'UTC')::date - 1, (now() at time zone 'UTC')::date + 3);

-- A person over all aliases of an organization, by keyed hash: for export and erasure.
alter table masked_contact add column person bytea;
create index masked_contact_person on masked_contact (org_id, person);

-- Refusals that are noted, so that nobody fills the activity by being refused.
alter table masked_window drop constraint masked_window_kind_check;
alter table masked_window add constraint masked_window_kind_check
  check (kind in ('forward_minute', 'reply_hour', 'reply_day', 'refusal_hour'));

-- Deleted aliases that nobody can restore any more.
create index masked_alias_deleted on masked_alias (deleted_at) where deleted_at is not null;
