-- Answers of creating requests under their Idempotency-Key. A row without a status is of a request that has not ended, or of a
-- process that died in it. Answers hold secrets (keys, webhook secrets), so they are sealed.
create table idempotent_create (
  org_id uuid not null references organization,
  environment text not null,
  key text not null,
  request_hash bytea not null,
  status smallint,
  answer bytea,
  created_at timestamptz not null,
  primary key (org_id, environment, key)
);
call protect_tenant_table('idempotent_create');
create index idempotent_create_age on idempotent_create (created_at);
