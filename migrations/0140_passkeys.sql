-- Passkeys (WebAuthn) of people, and challenges that wait for a passkey's answer: each is good for one answer, within minutes.
create table passkey (
  credential_id bytea primary key,
  id uuid not null,
  person_id uuid not null references person on delete cascade,
  public_key bytea not null,     -- COSE
  counter bigint not null,       -- of its signatures, as it said last; 0: it keeps none
  transports text[] not null,
  name text not null,
  created_at timestamptz not null,
  used_at timestamptz
);
create index passkey_person on passkey (person_id);

create table passkey_challenge (
  digest bytea primary key,      -- SHA-256 of the challenge
  kind text not null check (kind in ('new', 'sign_in', 'first')),
  person_id uuid,                -- whose passkey it shall be; of 'first' that of somebody who is not there yet
  expires_at timestamptz not null
);
create index passkey_challenge_age on passkey_challenge (expires_at);

do $$
declare
  name text;
begin
  foreach name in array array['passkey', 'passkey_challenge'] loop
    execute format('alter table %I enable row level security', name);
    execute format('alter table %I force row level security', name);
    execute format('create policy system on %I using ((select postern_system()))', name);
  end loop;
end $$;
