-- Certificates of the service's own names, from an ACME server (RFC 8555). They belong to no organization. The account's key
-- and the certificate's key are sealed. Each directory (the URL of an ACME server) has one account and one certificate.
create table acme_account (
  directory text primary key,
  url text,                      -- null: not registered yet
  key bytea not null,
  created_at timestamptz not null
);

create table acme_certificate (
  directory text primary key,
  names text[] not null default '{}',   -- those in the chain's first certificate
  chain text,                    -- PEM; null: none was issued yet
  key bytea,
  not_before timestamptz,
  not_after timestamptz,
  renew_at timestamptz not null, -- when the next attempt is due
  failures integer not null default 0,  -- since the last success
  failure text,                  -- why the last attempt failed, for people
  lease_until timestamptz,       -- one process at a time asks for a certificate
  updated_at timestamptz not null
);

-- What the ACME server asks for at /.well-known/acme-challenge/<token>: any process may be asked.
create table acme_challenge (
  token text primary key,
  key_authorization text not null,
  created_at timestamptz not null
);
create index acme_challenge_age on acme_challenge (created_at);
