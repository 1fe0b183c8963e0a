-- How a domain's received mail is judged. No row: the settings that everybody starts with (src/inbound/spam.ts).

create table domain_spam (
  org_id uuid not null,
  domain_id uuid not null,
  enabled boolean not null,
  engine text not null check (engine in ('builtin', 'rspamd')),
  tag_from double precision,          -- scores; null: this step is off
  quarantine_from double precision,
  reject_from double precision,
  on_error text not null check (on_error in ('accept', 'defer')),
  dmarc_reject text not null check (dmarc_reject in ('none', 'tag', 'quarantine', 'reject')),
  dmarc_quarantine text not null check (dmarc_quarantine in ('none', 'tag', 'quarantine', 'reject')),
  allow text[] not null,              -- addresses, domains and globs, lower case, domains as A-labels
  block text[] not null,
  updated_at timestamptz not null,
  primary key (org_id, domain_id),
  foreign key (org_id, domain_id) references domain (org_id, id) on delete cascade
);
call protect_tenant_table('domain_spam');
