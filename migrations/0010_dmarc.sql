-- DMARC aggregate reports and SMTP TLS reports on customers' domains.

create table dmarc_report (
  org_id uuid not null,
  id uuid not null,
  domain_id uuid not null,
  -- Digest of organization name, report id, policy domain and span: the same report counts once. Of an unreadable one,
  -- of where it came from.
  fingerprint bytea not null,
  status text not null check (status in ('counted', 'unauthenticated', 'unreadable')),
  reason text,                        -- why it is not counted
  via text not null check (via in ('mail', 'upload')),
  sender_domain text,                 -- the author of the mail it came in
  received_at timestamptz not null,
  -- Null from here on where a report could not be read.
  org_name text,
  email text,
  extra_contact_info text,
  report_id text,
  generator text,
  schema text check (schema in ('rfc7489', 'rfc9990')),
  policy_domain text,
  published_policy jsonb,
  begin_at timestamptz,
  end_at timestamptz,
  first_day date,                     -- the days (UTC) its messages are put on
  last_day date,
  total_messages bigint not null default 0,
  pass_dkim bigint not null default 0,
  pass_spf bigint not null default 0,
  aligned bigint not null default 0,
  both_aligned bigint not null default 0,
  disposition jsonb not null default '{}',
  record_count integer not null default 0,
  rejected_records integer not null default 0,
  defects text[] not null default '{}',
  errors text[] not null default '{}',
  primary key (org_id, id),
  constraint dmarc_report_fingerprint unique (org_id, domain_id, fingerprint),
  foreign key (org_id, domain_id) references domain (org_id, id) on delete cascade
);
create index dmarc_report_by_domain on dmarc_report (org_id, domain_id, id);
create index dmarc_report_by_day on dmarc_report (org_id, domain_id, last_day) where status = 'counted';
create index dmarc_report_age on dmarc_report (received_at);
call protect_tenant_table('dmarc_report');

create table dmarc_record (
  org_id uuid not null,
  report_id uuid not null,
  position integer not null,
  source_ip inet not null,
  count bigint not null,
  disposition text not null,
  dkim text not null,
  spf text not null,
  header_from text,
  envelope_from text,
  envelope_to text,
  reasons jsonb not null,
  dkim_results jsonb not null,
  spf_results jsonb not null,
  primary key (org_id, report_id, position),
  foreign key (org_id, report_id) references dmarc_report (org_id, id) on delete cascade
);
call protect_tenant_table('dmarc_record');

-- Sums of the counted reports, written with them: figures over 400 days read 400 rows, not millions of records.
create table dmarc_day (
  org_id uuid not null,
  domain_id uuid not null,
  day date not null,
  reports integer not null,
  total bigint not null,
  pass_dkim bigint not null,
  pass_spf bigint not null,
  aligned bigint not null,
  both_aligned bigint not null,
  disposition_none bigint not null,
  disposition_pass bigint not null,
  disposition_quarantine bigint not null,
  disposition_reject bigint not null,
  primary key (org_id, domain_id, day),
  foreign key (org_id, domain_id) references domain (org_id, id) on delete cascade
) with (fillfactor = 80);
create index dmarc_day_age on dmarc_day (day);
call protect_tenant_table('dmarc_day');

create table dmarc_day_source (
  org_id uuid not null,
  domain_id uuid not null,
  day date not null,
  source_ip inet not null,
  total bigint not null,
  pass_dkim bigint not null,
  pass_spf bigint not null,
  aligned bigint not null,
  forwarded bigint not null,          -- messages that the reporter took for forwarded or of a mailing list
  -- At most ten of each a day.
  dkim_domains text[] not null,
  dkim_passed text[] not null,        -- names of the keys: selector._domainkey.domain
  spf_domains text[] not null,
  spf_passed text[] not null,
  reporters text[] not null,
  primary key (org_id, domain_id, day, source_ip),
  foreign key (org_id, domain_id) references domain (org_id, id) on delete cascade
) with (fillfactor = 80);
-- What the recommendation looks at: of most domains a small part.
create index dmarc_day_source_failed on dmarc_day_source (org_id, domain_id, day) where total > aligned;
create index dmarc_day_source_age on dmarc_day_source (day);
call protect_tenant_table('dmarc_day_source');

-- SMTP TLS reports (RFC 8460); shown nowhere yet.
create table tls_report (
  org_id uuid not null,
  id uuid not null,
  domain_id uuid not null,
  fingerprint bytea not null,
  authenticated boolean not null,
  sender_domain text,
  received_at timestamptz not null,
  organization_name text not null,
  contact_info text,
  report_id text not null,
  begin_at timestamptz not null,
  end_at timestamptz not null,
  successful_sessions bigint not null,
  failed_sessions bigint not null,
  policies jsonb not null,
  primary key (org_id, id),
  constraint tls_report_fingerprint unique (org_id, domain_id, fingerprint),
  foreign key (org_id, domain_id) references domain (org_id, id) on delete cascade
);
create index tls_report_age on tls_report (received_at);
call protect_tenant_table('tls_report');
