-- Replies that the leak gate held, sealed, until their author has them sent as they are or a day has passed.
create table masked_held (
  org_id uuid not null,
  id uuid not null,
  alias_id uuid not null,
  contact_id uuid not null,           -- to whom it would go
  owner_id uuid not null,             -- the destination that wrote it
  environment text not null check (environment in ('live', 'test')),
  message_id text not null,           -- without angle brackets, at the alias's domain
  sealed bytea,                       -- null: it is large, and lies under blob_key
  blob_key text,
  created_at timestamptz not null,
  primary key (org_id, id)
);
create index masked_held_by_alias on masked_held (org_id, alias_id);
create index masked_held_age on masked_held (created_at);
call protect_tenant_table('masked_held');
