-- Receiving: domain aliases, received mail, the queue of what is still to be processed, who refers to which blob, and
-- the memory of greylisting. A mail is stored once an organization (inbound_raw) and has one row for each of its
-- accepted recipients (inbound_email).

create table alias (
  org_id uuid not null references organization,
  id uuid not null,
  domain_id uuid not null,
  domain text not null,               -- the domain's name, which never changes
  local_part text not null,           -- lower case; exact, or a glob
  is_glob boolean not null,
  action text not null check (action in ('webhook', 'forward', 'store', 'drop')),
  forward_to text[] not null default '{}',
  forward_mode text not null default 'preserve_from' check (forward_mode in ('preserve_from', 'masked')),
  webhook_ids uuid[] not null default '{}',
  description text,
  active boolean not null default true,
  emails_received bigint not null default 0,
  last_received_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org_id, id),
  constraint alias_local_part unique (org_id, domain_id, local_part),
  foreign key (org_id, domain_id) references domain (org_id, id) on delete cascade
) with (fillfactor = 70);
create index alias_globs on alias (org_id, domain_id) where is_glob;
call protect_tenant_table('alias');

-- Received mail ----------------------------------------------------------------------------------------------------

-- The bytes as they came (without the dots of SMTP), never changed: trace fields and verdicts are put in front, and
-- forged ones taken out, when the mail is shown or sent on.
create table inbound_raw (
  org_id uuid not null,
  id uuid not null,
  bytes bytea,
  blob_key text,                      -- instead of bytes when larger than 256 KiB
  size integer not null,
  envelope_from text not null,        -- '' for the null reverse-path
  smtputf8 boolean not null default false,
  remote_ip text,                     -- null for a simulated mail without one
  remote_port integer,
  helo text not null,
  protocol text not null,             -- SMTP, ESMTP, ESMTPS, UTF8SMTPS (RFC 3848, RFC 6531)
  tls text,                           -- protocol and cipher; null: in the clear
  received_at timestamptz not null,
  primary key (org_id, id)
) partition by range (id);
alter table inbound_raw alter column bytes set storage external;
call protect_tenant_table('inbound_raw');

create table inbound_email (
  org_id uuid not null,
  id uuid not null,
  raw_id uuid not null,
  environment text not null check (environment in ('live', 'test')),
  kind text not null,                 -- of its route: alias, catch_all, masked, reverse, return_path, srs, feedback, report
  route jsonb not null,               -- what the decision at RCPT was, as the handler of its kind needs it
  recipient text not null,            -- as it was accepted
  recipient_tag text,
  envelope_from text not null,
  domain_id uuid,
  alias_id uuid,
  status text not null check (status in ('received', 'processing', 'delivered', 'failed', 'quarantined', 'dropped')),
  reason text,                        -- why it is failed, quarantined or dropped
  received_at timestamptz not null,
  processed_at timestamptz,
  message_id text,                    -- with angle brackets; null: the mail has none
  from_address text,                  -- the From field as it reads
  subject text,
  size integer not null,
  has_attachments boolean not null default false,
  thread_id uuid,
  matched_email_id uuid,
  spam_score real,
  authentication_results text,        -- the header field put in front of the stored copy
  findings jsonb,                     -- verdicts, addresses, attachments, spam symbols: what processing found
  rule_ids uuid[] not null default '{}',
  event_ids uuid[] not null default '{}',
  forward_ids uuid[] not null default '{}',   -- messages that carry it on
  released_at timestamptz,
  primary key (org_id, id)
) partition by range (id);
create index inbound_email_by_message_id on inbound_email (org_id, message_id) where message_id is not null;
create index inbound_email_by_raw on inbound_email (org_id, raw_id);
create index inbound_email_by_thread on inbound_email (org_id, thread_id);
call protect_tenant_table('inbound_email');

-- What waits to be processed. claim_id is the fence: an outcome is written only while its claim stands, and the lease is
-- this database's time.
create table inbound_queue (
  org_id uuid not null,
  id uuid not null,
  raw_id uuid not null,
  next_attempt_at timestamptz not null,
  attempts smallint not null default 0,
  claim_id uuid,
  lease_until timestamptz,
  primary key (org_id, id)
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index inbound_queue_free on inbound_queue (next_attempt_at) where claim_id is null;
create index inbound_queue_leased on inbound_queue (lease_until) where claim_id is not null;
call protect_tenant_table('inbound_queue');

-- Who needs a blob. A row is written (and committed) before its blob; a blob goes when the last row has gone.
create table blob_reference (
  org_id uuid not null,
  blob_key text not null,
  owner_id uuid not null,             -- inbound_raw.id or inbound_email.id: its time tells when it is over
  primary key (org_id, blob_key, owner_id)
);
create index blob_reference_by_key on blob_reference (blob_key);
create index blob_reference_by_owner on blob_reference (owner_id);
call protect_tenant_table('blob_reference');
create index message_body_by_blob on message_body (blob_key) where blob_key is not null;

-- Greylisting: a digest of client network, sender and recipient; nothing readable.
create table greylist (
  digest bytea primary key,
  first_at timestamptz not null,
  passed_at timestamptz,
  last_at timestamptz not null
);
create index greylist_age on greylist (last_at);

insert into day_partitioned (table_name, retention_class, storage) values
  ('inbound_raw', 'inbound', 'with (toast_tuple_target = 8160)'),
  ('inbound_email', 'inbound', 'with (fillfactor = 80)');

-- A forward keeps its sender's address in the envelope (rewritten), and has no key of its own to be signed with.
alter table message add column envelope_from text;      -- null: our return path; '' is the null reverse-path

call make_day_partitions((now() at time zone 'UTC')::date - 1, (now() at time zone 'UTC')::date + 3);
