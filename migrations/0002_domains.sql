-- Customers' domains and their DKIM keys.

create table domain (
  org_id uuid not null references organization,
  id uuid not null,
  domain text not null,                 -- ASCII, lower-case
  type text not null check (type in ('inbound', 'outbound', 'both', 'alias')),
  status text not null default 'pending' check (status in ('pending', 'verified', 'degraded', 'failed')),
  active boolean not null default true,
  claimed boolean not null default false,   -- the one organization that has proven the domain to be its own
  ownership_token text not null,
  dmarc_token text not null,            -- local part of the rua address; lower-case, as mail may fold it
  ownership_verified boolean not null default false,
  mx_verified boolean not null default false,
  spf_verified boolean not null default false,
  dkim_verified boolean not null default false,
  dmarc_verified boolean not null default false,
  return_path_verified boolean not null default false,
  has_active_key boolean not null default false,   -- kept by the dkim feature
  catch_all_enabled boolean not null default false,
  catch_all_webhook_ids uuid[] not null default '{}',
  inbound_mx_acknowledged boolean not null default false,
  tls_policy text not null default 'opportunistic' check (tls_policy in ('opportunistic', 'require')),
  ip_pool text,
  checks jsonb not null default '[]',   -- what the last look at each record saw
  lost jsonb not null default '{}',     -- purpose of a required record -> when it was first seen gone
  unverified_since timestamptz,         -- null while verified
  watch_since timestamptz not null,     -- the re-check schedule (5 min, hourly, daily) counts from here
  next_check_at timestamptz not null,
  last_dns_check timestamptz,
  verified_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org_id, id),
  unique (org_id, domain)
);
-- The same domain may be pending in many organizations; one can hold it. Also the way of incoming mail to its owner.
create unique index domain_claim on domain (domain) where claimed;
create unique index domain_dmarc_token on domain (dmarc_token);
create index domain_due on domain (next_check_at);
call protect_tenant_table('domain');

create table dkim_key (
  org_id uuid not null,
  id uuid not null,
  domain_id uuid not null,
  domain text not null,                 -- the domain's name, which never changes
  selector text not null,               -- never used twice in a domain: receivers may hold the old record
  algorithm text not null check (algorithm in ('rsa', 'ed25519')),
  public_key text not null,
  private_key bytea,                    -- sealed; destroyed when the key is deactivated
  status text not null default 'pending' check (status in ('pending', 'active', 'retiring', 'deactivated')),
  verified boolean not null default false,
  replaces text,                        -- selector of the key that retires when this one becomes active
  created_at timestamptz not null,
  activated_at timestamptz,
  retires_at timestamptz,
  deactivated_at timestamptz,
  primary key (org_id, id),
  unique (org_id, domain_id, selector),
  foreign key (org_id, domain_id) references domain (org_id, id) on delete cascade
);
create index dkim_key_retiring on dkim_key (retires_at) where status = 'retiring';
call protect_tenant_table('dkim_key');
