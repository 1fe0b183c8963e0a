-- People who sign in to the dashboard. A person may belong to several organizations, with a role in each; one that looks after
-- the installation is an operator besides. Secrets are kept as digests (sessions, links, recovery codes), as argon2id
-- (passwords) or sealed (TOTP).
create table person (
  id uuid primary key,
  email text not null,           -- in lower case
  name text not null default '',
  password text,                 -- argon2id in PHC form; null: none was set yet
  is_operator boolean not null default false,
  totp bytea,                    -- sealed; null: off
  totp_confirmed_at timestamptz,
  totp_step bigint not null default 0,  -- the last time step that was used: a code counts once (RFC 6238 §5.2)
  created_at timestamptz not null
);
create unique index person_email on person (email);

create table membership (
  org_id uuid not null references organization,
  person_id uuid not null references person on delete cascade,
  role text not null check (role in ('owner', 'admin', 'developer', 'viewer')),
  sees_bodies boolean not null default false, -- of messages: for viewers, who see none else
  created_at timestamptz not null,
  primary key (org_id, person_id)
);
create index membership_person on membership (person_id);
call protect_tenant_table('membership');

-- An organization sees the people who belong to it.
alter table person enable row level security;
alter table person force row level security;
create policy tenant on person using (
  (select postern_system()) or exists (select 1 from membership m where m.person_id = person.id));

create table person_session (
  digest bytea primary key,      -- SHA-256 of the cookie's token
  id uuid not null,
  person_id uuid not null references person on delete cascade,
  created_at timestamptz not null,
  seen_at timestamptz not null,
  proved_at timestamptz not null, -- when the person last showed a password or passkey
  ip text not null,
  user_agent text not null
);
create index person_session_person on person_session (person_id);
create index person_session_age on person_session (seen_at);

create table person_link (
  digest bytea primary key,      -- SHA-256 of the link's token
  id uuid not null,
  kind text not null check (kind in ('set_up', 'invitation', 'reset')),
  org_id uuid references organization,   -- null: reset
  person_id uuid references person on delete cascade, -- of a reset
  email text,                    -- null: set_up, where the person says it
  role text check (role in ('owner', 'admin', 'developer', 'viewer')),
  drops_factors boolean not null default false,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz
);
create index person_link_org on person_link (org_id, id);
call protect_tenant_table('person_link');

create table recovery_code (
  person_id uuid not null references person on delete cascade,
  digest bytea not null,
  used_at timestamptz,
  primary key (person_id, digest)
);

-- Tries to sign in, by account and by client, as a bucket that refills: nothing is ever locked for good.
create table sign_in_try (
  name bytea primary key,        -- a keyed digest
  full_at timestamptz not null   -- when the bucket is full again
);
create index sign_in_try_age on sign_in_try (full_at);

do $$
declare
  name text;
begin
  foreach name in array array['person_session', 'recovery_code', 'sign_in_try'] loop
    execute format('alter table %I enable row level security', name);
    execute format('alter table %I force row level security', name);
    execute format('create policy system on %I using ((select postern_system()))', name);
  end loop;
end $$;

-- What people do is in the audit log, too.
alter table audit_entry drop constraint audit_entry_actor_check;
alter table audit_entry add constraint audit_entry_actor_check check (actor in ('key', 'command', 'person'));
alter table audit_entry add column person_id uuid;
