-- Who changed what, when and from where. Never the values: they may be secrets or addresses of people.
create table audit_entry (
  org_id uuid not null,
  id uuid not null,
  at timestamptz not null,
  actor text not null check (actor in ('key', 'command')),
  key_id uuid,
  -- Of the key, or of the person at the command line.
  name text not null,
  ip text,
  operation text not null,
  target jsonb not null default '{}',
  fields text[] not null default '{}',
  request_id uuid,
  primary key (org_id, id)
);
create index audit_entry_age on audit_entry (at);
call protect_tenant_table('audit_entry');
