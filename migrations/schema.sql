-- The schema that all migrations together make, read back from the catalogs: for reviews and for reading, not for
-- loading (it has no rows, and day partitions are made at run time). A test compares it with a migrated database.
-- Rewrite it after a change of migrations/: node test/support/write-schema.ts

CREATE OR REPLACE PROCEDURE public.compress_bodies(IN leaf text)
 LANGUAGE plpgsql
AS $procedure$
declare
  body text;
begin
  -- On Citus a day's table is on its shard as soon as it is made.
  if postern_is_distributed() or not exists (
      select from pg_settings where name = 'default_toast_compression' and 'lz4' = any (enumvals)) then
    return;
  end if;
  for body in select attname from pg_attribute
      where attrelid = leaf::regclass and attnum > 0 and attstorage = 'e' and not attisdropped loop
    execute format('alter table %I alter column %I set storage main', leaf, body);
    execute format('alter table %I alter column %I set compression lz4', leaf, body);
    execute format('alter table %I reset (toast_tuple_target)', leaf); -- from 2 KB on; `main` stays in the row while it fits
  end loop;
end $procedure$;

CREATE OR REPLACE FUNCTION public.count_suppressions()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op = 'INSERT' then
    insert into suppression_count (org_id, source, reason, scope_type, entries)
      select org_id, source, reason, scope_type, count(*) from added group by 1, 2, 3, 4;
  elsif tg_op = 'DELETE' then
    insert into suppression_count (org_id, source, reason, scope_type, entries)
      select org_id, source, reason, scope_type, -count(*) from removed group by 1, 2, 3, 4;
  else
    insert into suppression_count (org_id, source, reason, scope_type, entries)
      select org_id, source, reason, scope_type, sum(entries)
        from (select org_id, source, reason, scope_type, 1 as entries from added
              union all select org_id, source, reason, scope_type, -1 from removed) as changed
       group by 1, 2, 3, 4 having sum(entries) <> 0;
  end if;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.dmarc_add_to_weeks()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform pg_advisory_xact_lock(1886352239, key)
    from (select distinct hashtext(org_id::text || domain_id::text) as key from added order by 1) as domains;
  if tg_op = 'INSERT' then
    insert into dmarc_week_source as w
      select org_id, domain_id, dmarc_week(day), source_ip, min(day), max(day), sum(total), sum(pass_dkim), sum(pass_spf),
          sum(aligned), sum(forwarded), dmarc_all_names(dkim_domains), dmarc_all_names(dkim_passed),
          dmarc_all_names(spf_domains), dmarc_all_names(spf_passed), dmarc_all_names(reporters)
        from added group by 1, 2, 3, 4
    on conflict (org_id, domain_id, week, source_ip) do update set
      first_day = least(w.first_day, excluded.first_day), last_day = greatest(w.last_day, excluded.last_day),
      total = w.total + excluded.total, pass_dkim = w.pass_dkim + excluded.pass_dkim,
      pass_spf = w.pass_spf + excluded.pass_spf, aligned = w.aligned + excluded.aligned,
      forwarded = w.forwarded + excluded.forwarded,
      dkim_domains = dmarc_merge_names(w.dkim_domains, excluded.dkim_domains),
      dkim_passed = dmarc_merge_names(w.dkim_passed, excluded.dkim_passed),
      spf_domains = dmarc_merge_names(w.spf_domains, excluded.spf_domains),
      spf_passed = dmarc_merge_names(w.spf_passed, excluded.spf_passed),
      reporters = dmarc_merge_names(w.reporters, excluded.reporters);
  else
    update dmarc_week_source as w set
      total = w.total + c.total, pass_dkim = w.pass_dkim + c.pass_dkim, pass_spf = w.pass_spf + c.pass_spf,
      aligned = w.aligned + c.aligned, forwarded = w.forwarded + c.forwarded,
      dkim_domains = dmarc_merge_names(w.dkim_domains, c.dkim_domains),
      dkim_passed = dmarc_merge_names(w.dkim_passed, c.dkim_passed),
      spf_domains = dmarc_merge_names(w.spf_domains, c.spf_domains),
      spf_passed = dmarc_merge_names(w.spf_passed, c.spf_passed),
      reporters = dmarc_merge_names(w.reporters, c.reporters)
    from (
      select a.org_id, a.domain_id, dmarc_week(a.day) as week, a.source_ip, sum(a.total - r.total) as total,
          sum(a.pass_dkim - r.pass_dkim) as pass_dkim, sum(a.pass_spf - r.pass_spf) as pass_spf,
          sum(a.aligned - r.aligned) as aligned, sum(a.forwarded - r.forwarded) as forwarded,
          dmarc_all_names(a.dkim_domains) as dkim_domains, dmarc_all_names(a.dkim_passed) as dkim_passed,
          dmarc_all_names(a.spf_domains) as spf_domains, dmarc_all_names(a.spf_passed) as spf_passed,
          dmarc_all_names(a.reporters) as reporters
        from added a join removed r using (org_id, domain_id, day, source_ip) group by 1, 2, 3, 4) as c
     where w.org_id = c.org_id and w.domain_id = c.domain_id and w.week = c.week and w.source_ip = c.source_ip;
  end if;
  return null;
end $function$;

CREATE AGGREGATE public.dmarc_all_names(text[]) (sfunc = dmarc_merge_names, stype = text[], initcond = '{}');

CREATE OR REPLACE FUNCTION public.dmarc_merge_names(seen text[], more text[])
 RETURNS text[]
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select case when more <@ seen then seen
    else array(select distinct name from unnest(seen || more) as name order by 1 limit 20) end $function$;

CREATE OR REPLACE FUNCTION public.dmarc_week(day date)
 RETURNS date
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select day - (extract(isodow from day)::integer - 1) $function$;

CREATE OR REPLACE FUNCTION public.fold_status(statuses text[])
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select case
    when 'simulated' = any(statuses) then 'simulated'
    when statuses && '{queued,deferred,scheduled}' then
      case when 'deferred' = any(statuses) then 'deferred'
           when statuses && '{delivered,complained,bounced,failed,expired,canceled}' then 'sending'
           when 'scheduled' = any(statuses) then 'scheduled'
           else 'queued' end
    when statuses && '{delivered,complained}' then
      case when statuses && '{bounced,failed,expired,canceled}' then 'partially_delivered'
           when 'complained' = any(statuses) then 'complained'
           else 'delivered' end
    when 'bounced' = any(statuses) then 'bounced'
    when 'failed' = any(statuses) then 'failed'
    when 'expired' = any(statuses) then 'expired'
    when 'canceled' = any(statuses) then 'canceled'
    else 'suppressed' end $function$;

CREATE OR REPLACE PROCEDURE public.make_day_partitions(IN first_day date, IN last_day date)
 LANGUAGE plpgsql
AS $procedure$
declare
  parent record;
  day date;
  leaf text;
  unsampled text;
begin
  for parent in select * from day_partitioned order by table_name loop
    for day in select d::date from generate_series(first_day, last_day, interval '1 day') as d loop
      leaf := parent.table_name || '_' || to_char(day, 'YYYYMMDD');
      if to_regclass(leaf) is null then
        execute format('create table %I (like %I including all) %s', leaf, parent.table_name, parent.storage);
        for unsampled in select attname from pg_attribute
            where attrelid = parent.table_name::regclass and attnum > 0 and attstattarget = 0 and not attisdropped loop
          execute format('alter table %I alter column %I set statistics 0', leaf, unsampled);
        end loop;
        call compress_bodies(leaf);
        execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent.table_name, leaf,
          uuid_floor(day::timestamp at time zone 'UTC'), uuid_floor((day + 1)::timestamp at time zone 'UTC'));
      end if;
    end loop;
  end loop;
end $procedure$;

CREATE OR REPLACE FUNCTION public.postern_is_distributed()
 RETURNS boolean
 LANGUAGE plpgsql
 STABLE
AS $function$
declare
  found boolean := false;
begin
  if to_regclass('pg_catalog.pg_dist_schema') is not null then
    execute 'select exists (select from pg_catalog.pg_dist_schema where schemaid = current_schema()::regnamespace)' into found;
  end if;
  return found;
end $function$;

CREATE OR REPLACE FUNCTION public.postern_org()
 RETURNS uuid
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$ select nullif(current_setting('postern.org_id', true), '')::uuid $function$;

CREATE OR REPLACE FUNCTION public.postern_sums_by_trigger()
 RETURNS boolean
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$ select coalesce(current_setting('postern.sums', true), '') <> 'statements' $function$;

CREATE OR REPLACE FUNCTION public.postern_system()
 RETURNS boolean
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$ select coalesce(current_setting('postern.scope', true), '') = 'system' $function$;

CREATE OR REPLACE PROCEDURE public.protect_system_table(IN table_name regclass)
 LANGUAGE plpgsql
AS $procedure$
begin
  execute format('alter table %s enable row level security', table_name);
  execute format('alter table %s force row level security', table_name);
  execute format('create policy system on %s using (%s)', table_name,
    case when postern_is_distributed() then 'postern_system()' else '(select postern_system())' end);
end $procedure$;

CREATE OR REPLACE PROCEDURE public.protect_tenant_table(IN table_name regclass, IN org_column text DEFAULT 'org_id'::text)
 LANGUAGE plpgsql
AS $procedure$
declare
  wall text := case when postern_is_distributed() then 'postern_system() or %I = postern_org()'
                    else '(select postern_system()) or %I = (select postern_org())' end;
begin
  execute format('alter table %s enable row level security', table_name);
  execute format('alter table %s force row level security', table_name);
  execute format('create policy tenant on %s using (' || wall || ')', table_name, org_column);
end $procedure$;

CREATE OR REPLACE FUNCTION public.suppression_rank(reason text)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select case when reason = 'complaint' then 3 when reason = 'hard_bounce' then 2 when reason = 'unsubscribe' then 1 else 0 end $function$;

CREATE OR REPLACE FUNCTION public.uuid_floor(at timestamp with time zone)
 RETURNS uuid
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select (substr(h, 1, 8) || '-' || substr(h, 9, 4) || '-0000-0000-000000000000')::uuid
  from (select lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') as h) as hex $function$;

create table acme_account (
  directory text not null,
  url text,
  key bytea not null,
  created_at timestamp with time zone not null,
  constraint acme_account_pkey PRIMARY KEY (directory)
);

create table acme_certificate (
  directory text not null,
  names text[] default '{}'::text[] not null,
  chain text,
  key bytea,
  not_before timestamp with time zone,
  not_after timestamp with time zone,
  renew_at timestamp with time zone not null,
  failures integer default 0 not null,
  failure text,
  lease_until timestamp with time zone,
  updated_at timestamp with time zone not null,
  constraint acme_certificate_pkey PRIMARY KEY (directory)
);

create table acme_challenge (
  token text not null,
  key_authorization text not null,
  created_at timestamp with time zone not null,
  constraint acme_challenge_pkey PRIMARY KEY (token)
);
CREATE INDEX acme_challenge_age ON acme_challenge USING btree (created_at);

create table alias (
  org_id uuid not null,
  id uuid not null,
  domain_id uuid not null,
  domain text not null,
  local_part text not null,
  is_glob boolean not null,
  action text not null,
  forward_to text[] default '{}'::text[] not null,
  forward_mode text default 'preserve_from'::text not null,
  webhook_ids uuid[] default '{}'::uuid[] not null,
  description text,
  active boolean default true not null,
  emails_received bigint default 0 not null,
  last_received_at timestamp with time zone,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  environment text default 'live'::text not null,
  constraint alias_pkey PRIMARY KEY (org_id, id),
  constraint alias_action_check CHECK ((action = ANY (ARRAY['webhook'::text, 'forward'::text, 'store'::text, 'drop'::text]))),
  constraint alias_environment_check CHECK ((environment = ANY (ARRAY['live'::text, 'test'::text]))),
  constraint alias_forward_mode_check CHECK ((forward_mode = ANY (ARRAY['preserve_from'::text, 'masked'::text]))),
  constraint alias_local_part UNIQUE (org_id, domain_id, local_part),
  constraint alias_org_id_domain_id_fkey FOREIGN KEY (org_id, domain_id) REFERENCES domain(org_id, id) ON DELETE CASCADE,
  constraint alias_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id)
) with (fillfactor=70);
CREATE INDEX alias_globs ON alias USING btree (org_id, domain_id) WHERE is_glob;
alter table alias enable row level security;
alter table alias force row level security;
create policy tenant on alias as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table allowance (
  org_id uuid not null,
  scope_id uuid not null,
  kind text not null,
  starts_at timestamp with time zone not null,
  used bigint not null,
  ceiling bigint not null,
  constraint allowance_pkey PRIMARY KEY (org_id, scope_id, kind, starts_at),
  constraint allowance_kind_check CHECK ((kind = ANY (ARRAY['monthly_quota'::text, 'daily'::text, 'hourly'::text, 'per_minute'::text]))),
  constraint allowance_not_exceeded CHECK ((used <= ceiling))
);
CREATE INDEX allowance_age ON allowance USING btree (starts_at);
alter table allowance enable row level security;
alter table allowance force row level security;
create policy tenant on allowance as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table api_key (
  org_id uuid not null,
  id uuid not null,
  name text not null,
  environment text not null,
  digest bytea not null,
  key_prefix text not null,
  last_four text not null,
  created_at timestamp with time zone not null,
  last_used_at timestamp with time zone,
  revoked_at timestamp with time zone,
  kind text default 'full'::text not null,
  destination_id uuid,
  constraint api_key_pkey PRIMARY KEY (org_id, id),
  constraint api_key_destination_check CHECK (((kind = 'mask'::text) OR (destination_id IS NULL))),
  constraint api_key_destination_fkey FOREIGN KEY (org_id, destination_id) REFERENCES masked_destination(org_id, id) ON DELETE SET NULL (destination_id),
  constraint api_key_environment_check CHECK ((environment = ANY (ARRAY['live'::text, 'test'::text]))),
  constraint api_key_kind_check CHECK ((kind = ANY (ARRAY['full'::text, 'mask'::text]))),
  constraint api_key_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id)
);
CREATE INDEX api_key_destination ON api_key USING btree (org_id, destination_id) WHERE (destination_id IS NOT NULL);
CREATE UNIQUE INDEX api_key_digest ON api_key USING btree (digest);
alter table api_key enable row level security;
alter table api_key force row level security;
create policy tenant on api_key as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table audit_entry (
  org_id uuid not null,
  id uuid not null,
  at timestamp with time zone not null,
  actor text not null,
  key_id uuid,
  name text not null,
  ip text,
  operation text not null,
  target jsonb default '{}'::jsonb not null,
  fields text[] default '{}'::text[] not null,
  request_id uuid,
  person_id uuid,
  changes jsonb default '[]'::jsonb not null,
  constraint audit_entry_pkey PRIMARY KEY (org_id, id),
  constraint audit_entry_actor_check CHECK ((actor = ANY (ARRAY['key'::text, 'command'::text, 'person'::text])))
);
CREATE INDEX audit_entry_age ON audit_entry USING btree (at);
alter table audit_entry enable row level security;
alter table audit_entry force row level security;
create policy tenant on audit_entry as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table blob_reference (
  org_id uuid not null,
  blob_key text not null,
  owner_id uuid not null,
  sent_state text,
  constraint blob_reference_pkey PRIMARY KEY (org_id, blob_key, owner_id),
  constraint blob_reference_sent_state_check CHECK ((sent_state = ANY (ARRAY['accepting'::text, 'accepted'::text])))
);
CREATE INDEX blob_reference_by_key ON blob_reference USING btree (blob_key);
CREATE INDEX blob_reference_by_owner ON blob_reference USING btree (owner_id);
CREATE INDEX blob_reference_sent ON blob_reference USING btree (sent_state, owner_id) WHERE (sent_state IS NOT NULL);
alter table blob_reference enable row level security;
alter table blob_reference force row level security;
create policy tenant on blob_reference as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table day_partitioned (
  table_name text not null,
  retention_class text not null,
  storage text default ''::text not null,
  constraint day_partitioned_pkey PRIMARY KEY (table_name)
);

create table delivery (
  org_id uuid not null,
  message_id uuid not null,
  "position" smallint not null,
  lane_id bigint not null,
  email text not null,
  due_at timestamp with time zone not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  attempts smallint default 0 not null,
  owner bigint,
  deferred_event_at timestamp with time zone,
  absent_since timestamp with time zone,
  return_path_host text not null,
  charged_at timestamp with time zone,
  constraint delivery_pkey PRIMARY KEY (org_id, message_id, "position")
) with (autovacuum_vacuum_cost_delay=0, autovacuum_vacuum_scale_factor=0.02, fillfactor=90);
CREATE INDEX delivery_claim ON delivery USING btree (lane_id, due_at) WHERE (owner IS NULL);
CREATE INDEX delivery_expiry ON delivery USING btree (expires_at) WHERE (owner IS NULL);
CREATE INDEX delivery_owned ON delivery USING btree (owner) WHERE (owner IS NOT NULL);
alter table delivery enable row level security;
alter table delivery force row level security;
create policy tenant on delivery as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table destination_order (
  domain text collate "C" not null,
  suspended_at timestamp with time zone,
  suspended_by text,
  note text,
  retry_at timestamp with time zone,
  drop_before timestamp with time zone,
  dropped bigint default 0 not null,
  constraint destination_order_pkey PRIMARY KEY (domain)
);
alter table destination_order enable row level security;
alter table destination_order force row level security;
create policy system on destination_order as permissive for all using (( SELECT postern_system() AS postern_system));

create table dkim_key (
  org_id uuid not null,
  id uuid not null,
  domain_id uuid not null,
  domain text not null,
  selector text not null,
  algorithm text not null,
  public_key text not null,
  private_key bytea,
  status text default 'pending'::text not null,
  verified boolean default false not null,
  replaces text,
  created_at timestamp with time zone not null,
  activated_at timestamp with time zone,
  retires_at timestamp with time zone,
  deactivated_at timestamp with time zone,
  unasked boolean default false not null,
  constraint dkim_key_pkey PRIMARY KEY (org_id, id),
  constraint dkim_key_algorithm_check CHECK ((algorithm = ANY (ARRAY['rsa'::text, 'ed25519'::text]))),
  constraint dkim_key_org_id_domain_id_fkey FOREIGN KEY (org_id, domain_id) REFERENCES domain(org_id, id) ON DELETE CASCADE,
  constraint dkim_key_org_id_domain_id_selector_key UNIQUE (org_id, domain_id, selector),
  constraint dkim_key_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'active'::text, 'retiring'::text, 'deactivated'::text])))
);
CREATE INDEX dkim_key_retiring ON dkim_key USING btree (retires_at) WHERE (status = 'retiring'::text);
alter table dkim_key enable row level security;
alter table dkim_key force row level security;
create policy tenant on dkim_key as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

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
  constraint dmarc_day_pkey PRIMARY KEY (org_id, domain_id, day),
  constraint dmarc_day_org_id_domain_id_fkey FOREIGN KEY (org_id, domain_id) REFERENCES domain(org_id, id) ON DELETE CASCADE
) with (fillfactor=80);
CREATE INDEX dmarc_day_age ON dmarc_day USING btree (day);
alter table dmarc_day enable row level security;
alter table dmarc_day force row level security;
create policy tenant on dmarc_day as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table dmarc_day_source (
  org_id uuid not null,
  domain_id uuid not null,
  day date not null,
  source_ip inet not null,
  total bigint not null,
  pass_dkim bigint not null,
  pass_spf bigint not null,
  aligned bigint not null,
  forwarded bigint not null,
  dkim_domains text[] not null,
  dkim_passed text[] not null,
  spf_domains text[] not null,
  spf_passed text[] not null,
  reporters text[] not null,
  constraint dmarc_day_source_pkey PRIMARY KEY (org_id, domain_id, day, source_ip),
  constraint dmarc_day_source_org_id_domain_id_fkey FOREIGN KEY (org_id, domain_id) REFERENCES domain(org_id, id) ON DELETE CASCADE
) with (fillfactor=80);
CREATE INDEX dmarc_day_source_age ON dmarc_day_source USING btree (day);
CREATE INDEX dmarc_day_source_failed ON dmarc_day_source USING btree (org_id, domain_id, day) WHERE (total > aligned);
alter table dmarc_day_source enable row level security;
alter table dmarc_day_source force row level security;
create policy tenant on dmarc_day_source as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));
CREATE TRIGGER dmarc_day_source_added AFTER INSERT ON dmarc_day_source REFERENCING NEW TABLE AS added FOR EACH STATEMENT WHEN (postern_sums_by_trigger()) EXECUTE FUNCTION dmarc_add_to_weeks();
CREATE TRIGGER dmarc_day_source_changed AFTER UPDATE ON dmarc_day_source REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT WHEN (postern_sums_by_trigger()) EXECUTE FUNCTION dmarc_add_to_weeks();

create table dmarc_record (
  org_id uuid not null,
  report_id uuid not null,
  "position" integer not null,
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
  constraint dmarc_record_pkey PRIMARY KEY (org_id, report_id, "position"),
  constraint dmarc_record_org_id_report_id_fkey FOREIGN KEY (org_id, report_id) REFERENCES dmarc_report(org_id, id) ON DELETE CASCADE
);
alter table dmarc_record enable row level security;
alter table dmarc_record force row level security;
create policy tenant on dmarc_record as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table dmarc_report (
  org_id uuid not null,
  id uuid not null,
  domain_id uuid not null,
  fingerprint bytea not null,
  status text not null,
  reason text,
  via text not null,
  sender_domain text,
  received_at timestamp with time zone not null,
  org_name text,
  email text,
  extra_contact_info text,
  report_id text,
  generator text,
  schema text,
  policy_domain text,
  published_policy jsonb,
  begin_at timestamp with time zone,
  end_at timestamp with time zone,
  first_day date,
  last_day date,
  total_messages bigint default 0 not null,
  pass_dkim bigint default 0 not null,
  pass_spf bigint default 0 not null,
  aligned bigint default 0 not null,
  both_aligned bigint default 0 not null,
  disposition jsonb default '{}'::jsonb not null,
  record_count integer default 0 not null,
  rejected_records integer default 0 not null,
  defects text[] default '{}'::text[] not null,
  errors text[] default '{}'::text[] not null,
  constraint dmarc_report_pkey PRIMARY KEY (org_id, id),
  constraint dmarc_report_fingerprint UNIQUE (org_id, domain_id, fingerprint),
  constraint dmarc_report_org_id_domain_id_fkey FOREIGN KEY (org_id, domain_id) REFERENCES domain(org_id, id) ON DELETE CASCADE,
  constraint dmarc_report_schema_check CHECK ((schema = ANY (ARRAY['rfc7489'::text, 'rfc9990'::text]))),
  constraint dmarc_report_status_check CHECK ((status = ANY (ARRAY['counted'::text, 'unauthenticated'::text, 'unreadable'::text]))),
  constraint dmarc_report_via_check CHECK ((via = ANY (ARRAY['mail'::text, 'upload'::text])))
);
CREATE INDEX dmarc_report_age ON dmarc_report USING btree (received_at);
CREATE INDEX dmarc_report_by_day ON dmarc_report USING btree (org_id, domain_id, last_day) WHERE (status = 'counted'::text);
CREATE INDEX dmarc_report_by_domain ON dmarc_report USING btree (org_id, domain_id, id);
alter table dmarc_report enable row level security;
alter table dmarc_report force row level security;
create policy tenant on dmarc_report as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table dmarc_week_source (
  org_id uuid not null,
  domain_id uuid not null,
  week date not null,
  source_ip inet not null,
  first_day date not null,
  last_day date not null,
  total bigint not null,
  pass_dkim bigint not null,
  pass_spf bigint not null,
  aligned bigint not null,
  forwarded bigint not null,
  dkim_domains text[] not null,
  dkim_passed text[] not null,
  spf_domains text[] not null,
  spf_passed text[] not null,
  reporters text[] not null,
  constraint dmarc_week_source_pkey PRIMARY KEY (org_id, domain_id, week, source_ip),
  constraint dmarc_week_source_org_id_domain_id_fkey FOREIGN KEY (org_id, domain_id) REFERENCES domain(org_id, id) ON DELETE CASCADE
) with (fillfactor=80);
CREATE INDEX dmarc_week_source_age ON dmarc_week_source USING btree (week);
CREATE INDEX dmarc_week_source_failed ON dmarc_week_source USING btree (org_id, domain_id, week) WHERE (total > aligned);
alter table dmarc_week_source enable row level security;
alter table dmarc_week_source force row level security;
create policy tenant on dmarc_week_source as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table domain (
  org_id uuid not null,
  id uuid not null,
  domain text not null,
  type text not null,
  status text default 'pending'::text not null,
  active boolean default true not null,
  claimed boolean default false not null,
  ownership_token text not null,
  dmarc_token text not null,
  ownership_verified boolean default false not null,
  mx_verified boolean default false not null,
  spf_verified boolean default false not null,
  dkim_verified boolean default false not null,
  dmarc_verified boolean default false not null,
  return_path_verified boolean default false not null,
  has_active_key boolean default false not null,
  catch_all_enabled boolean default false not null,
  catch_all_webhook_ids uuid[] default '{}'::uuid[] not null,
  inbound_mx_acknowledged boolean default false not null,
  tls_policy text default 'opportunistic'::text not null,
  ip_pool text,
  checks jsonb default '[]'::jsonb not null,
  lost jsonb default '{}'::jsonb not null,
  unverified_since timestamp with time zone,
  watch_since timestamp with time zone not null,
  next_check_at timestamp with time zone not null,
  last_dns_check timestamp with time zone,
  verified_at timestamp with time zone,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  environment text default 'live'::text not null,
  constraint domain_pkey PRIMARY KEY (org_id, id),
  constraint domain_environment_check CHECK ((environment = ANY (ARRAY['live'::text, 'test'::text]))),
  constraint domain_org_id_domain_key UNIQUE (org_id, domain),
  constraint domain_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id),
  constraint domain_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'verified'::text, 'degraded'::text, 'failed'::text]))),
  constraint domain_tls_policy_check CHECK ((tls_policy = ANY (ARRAY['opportunistic'::text, 'require'::text]))),
  constraint domain_type_check CHECK ((type = ANY (ARRAY['inbound'::text, 'outbound'::text, 'both'::text, 'alias'::text])))
);
CREATE UNIQUE INDEX domain_claim ON domain USING btree (domain) WHERE claimed;
CREATE UNIQUE INDEX domain_dmarc_token ON domain USING btree (dmarc_token);
CREATE INDEX domain_due ON domain USING btree (next_check_at);
alter table domain enable row level security;
alter table domain force row level security;
create policy tenant on domain as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table domain_spam (
  org_id uuid not null,
  domain_id uuid not null,
  enabled boolean not null,
  engine text,
  tag_from double precision,
  quarantine_from double precision,
  reject_from double precision,
  on_error text not null,
  dmarc_reject text not null,
  dmarc_quarantine text not null,
  allow text[] not null,
  block text[] not null,
  updated_at timestamp with time zone not null,
  constraint domain_spam_pkey PRIMARY KEY (org_id, domain_id),
  constraint domain_spam_dmarc_quarantine_check CHECK ((dmarc_quarantine = ANY (ARRAY['none'::text, 'tag'::text, 'quarantine'::text, 'reject'::text]))),
  constraint domain_spam_dmarc_reject_check CHECK ((dmarc_reject = ANY (ARRAY['none'::text, 'tag'::text, 'quarantine'::text, 'reject'::text]))),
  constraint domain_spam_engine_check CHECK ((engine = ANY (ARRAY['builtin'::text, 'rspamd'::text]))),
  constraint domain_spam_on_error_check CHECK ((on_error = ANY (ARRAY['accept'::text, 'defer'::text]))),
  constraint domain_spam_org_id_domain_id_fkey FOREIGN KEY (org_id, domain_id) REFERENCES domain(org_id, id) ON DELETE CASCADE
);
alter table domain_spam enable row level security;
alter table domain_spam force row level security;
create policy tenant on domain_spam as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table event (
  org_id uuid not null,
  id uuid not null,
  message_id uuid not null,
  event_type text not null,
  recipient text,
  at timestamp with time zone not null,
  attempt smallint,
  smtp_code text,
  enhanced_code text,
  message text,
  mx_host text,
  mx_ip text,
  source_ip text,
  tls text,
  duration_ms integer,
  class text,
  constraint event_pkey PRIMARY KEY (org_id, id)
) partition by range (id);
CREATE INDEX event_by_message ON ONLY public.event USING btree (org_id, message_id);
alter table event enable row level security;
alter table event force row level security;
create policy tenant on event as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table event_listener (
  org_id uuid not null,
  until timestamp with time zone not null,
  since timestamp with time zone,
  constraint event_listener_pkey PRIMARY KEY (org_id),
  constraint event_listener_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id)
);
alter table event_listener enable row level security;
alter table event_listener force row level security;
create policy tenant on event_listener as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table greylist (
  digest bytea not null,
  first_at timestamp with time zone not null,
  passed_at timestamp with time zone,
  last_at timestamp with time zone not null,
  constraint greylist_pkey PRIMARY KEY (digest)
);
CREATE INDEX greylist_age ON greylist USING btree (last_at);

create table health_look (
  machine text not null,
  at timestamp with time zone not null,
  asked_by text not null,
  checks jsonb not null,
  constraint health_look_pkey PRIMARY KEY (machine)
);
alter table health_look enable row level security;
alter table health_look force row level security;
create policy system on health_look as permissive for all using (( SELECT postern_system() AS postern_system));

create table idempotency (
  org_id uuid not null,
  environment text not null,
  key text not null,
  request_hash bytea not null,
  status smallint not null,
  answer text not null,
  created_at timestamp with time zone not null,
  constraint idempotency_pkey PRIMARY KEY (org_id, environment, key)
);
CREATE INDEX idempotency_age ON idempotency USING btree (created_at);
alter table idempotency enable row level security;
alter table idempotency force row level security;
create policy tenant on idempotency as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table idempotent_create (
  org_id uuid not null,
  environment text not null,
  key text not null,
  request_hash bytea not null,
  status smallint,
  answer bytea,
  created_at timestamp with time zone not null,
  constraint idempotent_create_pkey PRIMARY KEY (org_id, environment, key),
  constraint idempotent_create_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id)
);
CREATE INDEX idempotent_create_age ON idempotent_create USING btree (created_at);
alter table idempotent_create enable row level security;
alter table idempotent_create force row level security;
create policy tenant on idempotent_create as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table inbound_email (
  org_id uuid not null,
  id uuid not null,
  raw_id uuid not null,
  environment text not null,
  kind text not null,
  route jsonb not null,
  recipient text not null,
  recipient_tag text,
  envelope_from text not null,
  domain_id uuid,
  alias_id uuid,
  status text not null,
  reason text,
  received_at timestamp with time zone not null,
  processed_at timestamp with time zone,
  message_id text,
  from_address text,
  subject text,
  size integer not null,
  has_attachments boolean default false not null,
  thread_id uuid,
  matched_email_id uuid,
  spam_score real,
  authentication_results text,
  findings jsonb,
  rule_ids uuid[] default '{}'::uuid[] not null,
  event_ids uuid[] default '{}'::uuid[] not null,
  forward_ids uuid[] default '{}'::uuid[] not null,
  released_at timestamp with time zone,
  constraint inbound_email_pkey PRIMARY KEY (org_id, id),
  constraint inbound_email_environment_check CHECK ((environment = ANY (ARRAY['live'::text, 'test'::text]))),
  constraint inbound_email_status_check CHECK ((status = ANY (ARRAY['received'::text, 'processing'::text, 'delivered'::text, 'failed'::text, 'quarantined'::text, 'dropped'::text])))
) partition by range (id);
CREATE INDEX inbound_email_by_message_id ON ONLY public.inbound_email USING btree (org_id, message_id) WHERE (message_id IS NOT NULL);
CREATE INDEX inbound_email_by_raw ON ONLY public.inbound_email USING btree (org_id, raw_id);
CREATE INDEX inbound_email_by_thread ON ONLY public.inbound_email USING btree (org_id, thread_id);
alter table inbound_email enable row level security;
alter table inbound_email force row level security;
create policy tenant on inbound_email as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table inbound_email_texts (
  org_id uuid not null,
  id uuid not null,
  oldest_id uuid not null,
  day date not null,
  rows_in_it integer not null,
  ids uuid[] not null,
  senders text not null,
  recipients text not null,
  subjects text not null,
  envelopes text not null,
  words text not null,
  facets text not null,
  constraint inbound_email_texts_pkey PRIMARY KEY (org_id, id)
) partition by range (id);
alter table inbound_email_texts enable row level security;
alter table inbound_email_texts force row level security;
create policy tenant on inbound_email_texts as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table inbound_queue (
  org_id uuid not null,
  id uuid not null,
  raw_id uuid not null,
  next_attempt_at timestamp with time zone not null,
  attempts smallint default 0 not null,
  claim_id uuid,
  lease_until timestamp with time zone,
  faults integer default 0 not null,
  constraint inbound_queue_pkey PRIMARY KEY (org_id, id)
) with (autovacuum_vacuum_cost_delay=0, autovacuum_vacuum_scale_factor=0.02, fillfactor=90);
CREATE INDEX inbound_queue_free_by_org ON inbound_queue USING btree (org_id, next_attempt_at) WHERE (claim_id IS NULL);
CREATE INDEX inbound_queue_leased ON inbound_queue USING btree (lease_until) WHERE (claim_id IS NOT NULL);
alter table inbound_queue enable row level security;
alter table inbound_queue force row level security;
create policy tenant on inbound_queue as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table inbound_raw (
  org_id uuid not null,
  id uuid not null,
  bytes bytea storage external,
  blob_key text,
  size integer not null,
  envelope_from text not null,
  smtputf8 boolean default false not null,
  remote_ip text,
  remote_port integer,
  helo text not null,
  protocol text not null,
  tls text,
  received_at timestamp with time zone not null,
  constraint inbound_raw_pkey PRIMARY KEY (org_id, id)
) partition by range (id);
alter table inbound_raw enable row level security;
alter table inbound_raw force row level security;
create policy tenant on inbound_raw as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table inbound_rule (
  org_id uuid not null,
  id uuid not null,
  domain_id uuid not null,
  alias_id uuid,
  name text not null,
  priority integer not null,
  active boolean default true not null,
  match jsonb not null,
  action text not null,
  forward_to text[] default '{}'::text[] not null,
  webhook_ids uuid[] default '{}'::uuid[] not null,
  revision integer default 1 not null,
  hits bigint default 0 not null,
  last_hit_at timestamp with time zone,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  environment text default 'live'::text not null,
  constraint inbound_rule_pkey PRIMARY KEY (org_id, id),
  constraint inbound_rule_action_check CHECK ((action = ANY (ARRAY['webhook'::text, 'forward'::text, 'store'::text, 'drop'::text]))),
  constraint inbound_rule_environment_check CHECK ((environment = ANY (ARRAY['live'::text, 'test'::text]))),
  constraint inbound_rule_org_id_alias_id_fkey FOREIGN KEY (org_id, alias_id) REFERENCES alias(org_id, id) ON DELETE CASCADE,
  constraint inbound_rule_org_id_domain_id_fkey FOREIGN KEY (org_id, domain_id) REFERENCES domain(org_id, id) ON DELETE CASCADE,
  constraint inbound_rule_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id)
) with (fillfactor=70);
CREATE INDEX inbound_rule_by_alias ON inbound_rule USING btree (org_id, alias_id) WHERE (alias_id IS NOT NULL);
CREATE INDEX inbound_rule_in_order ON inbound_rule USING btree (org_id, domain_id, ((alias_id IS NULL)), priority, id);
alter table inbound_rule enable row level security;
alter table inbound_rule force row level security;
create policy tenant on inbound_rule as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table ip_pool (
  org_id uuid not null,
  id uuid not null,
  name text collate "C" not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint ip_pool_pkey PRIMARY KEY (org_id, id),
  constraint ip_pool_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id),
  constraint ip_pool_org_id_name_key UNIQUE (org_id, name)
);
alter table ip_pool enable row level security;
alter table ip_pool force row level security;
create policy tenant on ip_pool as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table key_ring (
  number smallint not null,
  master_key bytea not null,
  sealed bytea not null,
  made_at timestamp with time zone default now() not null,
  constraint key_ring_pkey PRIMARY KEY (number),
  constraint key_ring_master_key_key UNIQUE (master_key)
);
alter table key_ring enable row level security;
alter table key_ring force row level security;
create policy system on key_ring as permissive for all using (( SELECT postern_system() AS postern_system));

create table key_ring_use (
  process uuid not null,
  machine text not null,
  pid integer not null,
  master_key bytea not null,
  newest_data_key smallint not null,
  seals_with smallint not null,
  seen_at timestamp with time zone default now() not null,
  constraint key_ring_use_pkey PRIMARY KEY (process)
);
alter table key_ring_use enable row level security;
alter table key_ring_use force row level security;
create policy system on key_ring_use as permissive for all using (( SELECT postern_system() AS postern_system));

create table lane (
  id bigint generated always as identity not null,
  org_id uuid not null,
  source_id uuid not null,
  slot smallint not null,
  domain text not null,
  class smallint not null,
  next_at timestamp with time zone not null,
  paused_until timestamp with time zone,
  reason text,
  touched_at timestamp with time zone not null,
  relay_domain_id uuid,
  retired_xid xid8,
  constraint lane_pkey PRIMARY KEY (id),
  constraint lane_name UNIQUE NULLS NOT DISTINCT (org_id, source_id, domain, class, relay_domain_id),
  constraint lane_source_id_fkey FOREIGN KEY (source_id) REFERENCES source(id)
) with (fillfactor=70);
CREATE INDEX lane_due ON lane USING btree (source_id, slot, next_at);
alter table lane enable row level security;
alter table lane force row level security;
create policy tenant on lane as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table lease (
  source_id uuid not null,
  slot smallint not null,
  node_id bigint,
  constraint lease_pkey PRIMARY KEY (source_id, slot),
  constraint lease_source_id_fkey FOREIGN KEY (source_id) REFERENCES source(id) ON DELETE CASCADE
);

create table masked_activity (
  org_id uuid not null,
  id uuid not null,
  alias_id uuid not null,
  type text not null,
  outcome text not null,
  reason text,
  contact_id uuid,
  destination_id uuid,
  message_id text,
  size integer,
  spf text,
  dkim text,
  dmarc text,
  spam_score real,
  redactions integer,
  at timestamp with time zone not null,
  detail text,
  constraint masked_activity_pkey PRIMARY KEY (org_id, id),
  constraint masked_activity_outcome_check CHECK ((outcome = ANY (ARRAY['sent'::text, 'deferred'::text, 'failed'::text, 'dropped'::text, 'held'::text]))),
  constraint masked_activity_type_check CHECK ((type = ANY (ARRAY['forward'::text, 'reply'::text, 'block'::text, 'bounce'::text, 'quarantine'::text, 'auto_reply'::text, 'config'::text])))
) partition by range (id);
CREATE INDEX masked_activity_by_alias ON ONLY public.masked_activity USING btree (org_id, alias_id, id);
alter table masked_activity enable row level security;
alter table masked_activity force row level security;
create policy tenant on masked_activity as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table masked_address (
  digest bytea not null,
  org_id uuid not null,
  kind text not null,
  alias_id uuid not null,
  contact_id uuid,
  constraint masked_address_pkey PRIMARY KEY (digest),
  constraint masked_address_kind_check CHECK ((kind = ANY (ARRAY['alias'::text, 'reverse'::text])))
);
alter table masked_address enable row level security;
alter table masked_address force row level security;
create policy tenant on masked_address as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table masked_alias (
  org_id uuid not null,
  id uuid not null,
  environment text not null,
  domain_id uuid,
  domain text not null,
  local_part text not null,
  masked_description text,
  display_name text,
  metadata jsonb default '{}'::jsonb not null,
  active boolean default true not null,
  disabled_reason text,
  on_disabled text default 'drop'::text not null,
  reply_enabled boolean default true not null,
  redact text default 'all'::text not null,
  emails_received bigint default 0 not null,
  emails_forwarded bigint default 0 not null,
  emails_replied bigint default 0 not null,
  emails_blocked bigint default 0 not null,
  last_activity_at timestamp with time zone,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  deleted_at timestamp with time zone,
  unopened_files text default 'hold'::text not null,
  own_name text default 'leave'::text not null,
  reply_report text default 'hidden'::text not null,
  tracking_pixels text default 'leave'::text not null,
  list_unsubscribe text default 'original'::text not null,
  pattern text,
  constraint masked_alias_pkey PRIMARY KEY (org_id, id),
  constraint masked_alias_environment_check CHECK ((environment = ANY (ARRAY['live'::text, 'test'::text]))),
  constraint masked_alias_list_unsubscribe_check CHECK ((list_unsubscribe = ANY (ARRAY['original'::text, 'disable_alias'::text, 'block_sender'::text]))),
  constraint masked_alias_on_disabled_check CHECK ((on_disabled = ANY (ARRAY['drop'::text, 'reject'::text]))),
  constraint masked_alias_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id),
  constraint masked_alias_own_name_check CHECK ((own_name = ANY (ARRAY['leave'::text, 'replace'::text]))),
  constraint masked_alias_redact_check CHECK ((redact = ANY (ARRAY['all'::text, 'quoted'::text, 'off'::text]))),
  constraint masked_alias_reply_report_check CHECK ((reply_report = ANY (ARRAY['never'::text, 'hidden'::text, 'always'::text]))),
  constraint masked_alias_tracking_pixels_check CHECK ((tracking_pixels = ANY (ARRAY['leave'::text, 'cut'::text]))),
  constraint masked_alias_unopened_files_check CHECK ((unopened_files = ANY (ARRAY['hold'::text, 'send'::text])))
) with (fillfactor=70);
CREATE INDEX masked_alias_by_domain ON masked_alias USING btree (org_id, domain_id) WHERE (domain_id IS NOT NULL);
CREATE INDEX masked_alias_by_pattern ON masked_alias USING btree (org_id, environment, pattern) WHERE (pattern IS NOT NULL);
CREATE INDEX masked_alias_deleted ON masked_alias USING btree (deleted_at) WHERE (deleted_at IS NOT NULL);
CREATE INDEX masked_alias_domain ON masked_alias USING btree (org_id, domain);
CREATE INDEX masked_alias_newest ON masked_alias USING btree (org_id, environment, id);
alter table masked_alias enable row level security;
alter table masked_alias force row level security;
create policy tenant on masked_alias as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table masked_alias_destination (
  org_id uuid not null,
  alias_id uuid not null,
  destination_id uuid not null,
  "position" smallint not null,
  constraint masked_alias_destination_pkey PRIMARY KEY (org_id, alias_id, destination_id),
  constraint masked_alias_destination_org_id_alias_id_fkey FOREIGN KEY (org_id, alias_id) REFERENCES masked_alias(org_id, id) ON DELETE CASCADE,
  constraint masked_alias_destination_org_id_destination_id_fkey FOREIGN KEY (org_id, destination_id) REFERENCES masked_destination(org_id, id)
);
CREATE INDEX masked_alias_destination_back ON masked_alias_destination USING btree (org_id, destination_id);
alter table masked_alias_destination enable row level security;
alter table masked_alias_destination force row level security;
create policy tenant on masked_alias_destination as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table masked_confirmation_day (
  digest bytea not null,
  day date not null,
  sent smallint not null,
  constraint masked_confirmation_day_pkey PRIMARY KEY (digest, day)
);
CREATE INDEX masked_confirmation_day_age ON masked_confirmation_day USING btree (day);

create table masked_contact (
  org_id uuid not null,
  id uuid not null,
  alias_id uuid not null,
  digest bytea not null,
  sealed bytea not null,
  blocked boolean default false not null,
  source text not null,
  received bigint default 0 not null,
  sent bigint default 0 not null,
  last_seen_at timestamp with time zone,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  person bytea,
  is_token boolean default false not null,
  warned_at timestamp with time zone,
  constraint masked_contact_pkey PRIMARY KEY (org_id, id),
  constraint masked_contact_address UNIQUE (org_id, alias_id, digest),
  constraint masked_contact_org_id_alias_id_fkey FOREIGN KEY (org_id, alias_id) REFERENCES masked_alias(org_id, id) ON DELETE CASCADE,
  constraint masked_contact_source_check CHECK ((source = ANY (ARRAY['inbound'::text, 'api'::text])))
) with (fillfactor=80);
CREATE INDEX masked_contact_new ON masked_contact USING btree (org_id, alias_id, created_at);
CREATE INDEX masked_contact_newest ON masked_contact USING btree (org_id, alias_id, id);
CREATE INDEX masked_contact_person ON masked_contact USING btree (org_id, person);
alter table masked_contact enable row level security;
alter table masked_contact force row level security;
create policy tenant on masked_contact as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table masked_destination (
  org_id uuid not null,
  id uuid not null,
  environment text not null,
  digest bytea not null,
  sealed bytea not null,
  status text not null,
  suspended_reason text,
  confirmation_sent_at timestamp with time zone,
  confirmations_sent smallint default 0 not null,
  confirmed_at timestamp with time zone,
  hard_bounces timestamp with time zone[] default '{}'::timestamp with time zone[] not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  pgp_sealed bytea,
  pgp_hide_subject boolean default true not null,
  constraint masked_destination_pkey PRIMARY KEY (org_id, id),
  constraint masked_destination_address UNIQUE (org_id, environment, digest),
  constraint masked_destination_environment_check CHECK ((environment = ANY (ARRAY['live'::text, 'test'::text]))),
  constraint masked_destination_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id),
  constraint masked_destination_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'verified'::text, 'suspended'::text])))
) with (fillfactor=80);
CREATE INDEX masked_destination_newest ON masked_destination USING btree (org_id, environment, id);
alter table masked_destination enable row level security;
alter table masked_destination force row level security;
create policy tenant on masked_destination as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table masked_held (
  org_id uuid not null,
  id uuid not null,
  alias_id uuid not null,
  contact_id uuid not null,
  owner_id uuid not null,
  environment text not null,
  message_id text not null,
  sealed bytea,
  blob_key text,
  created_at timestamp with time zone not null,
  kind text default 'leak'::text not null,
  reason text,
  size integer,
  cleared uuid[] default '{}'::uuid[] not null,
  constraint masked_held_pkey PRIMARY KEY (org_id, id),
  constraint masked_held_environment_check CHECK ((environment = ANY (ARRAY['live'::text, 'test'::text]))),
  constraint masked_held_kind_check CHECK ((kind = ANY (ARRAY['leak'::text, 'forward'::text, 'reply'::text])))
);
CREATE INDEX masked_held_age ON masked_held USING btree (created_at);
CREATE INDEX masked_held_by_alias ON masked_held USING btree (org_id, alias_id);
CREATE INDEX masked_held_failed ON masked_held USING btree (org_id, id) WHERE (kind <> 'leak'::text);
alter table masked_held enable row level security;
alter table masked_held force row level security;
create policy tenant on masked_held as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table masked_key (
  domain text not null,
  id uuid not null,
  selector text not null,
  public_key text not null,
  private_key bytea not null,
  created_at timestamp with time zone not null,
  constraint masked_key_pkey PRIMARY KEY (domain)
);

create table masked_message_id (
  org_id uuid not null,
  alias_id uuid not null,
  digest bytea not null,
  counterpart bytea,
  created_at timestamp with time zone not null,
  constraint masked_message_id_pkey PRIMARY KEY (org_id, alias_id, digest),
  constraint masked_message_id_org_id_alias_id_fkey FOREIGN KEY (org_id, alias_id) REFERENCES masked_alias(org_id, id) ON DELETE CASCADE
);
CREATE INDEX masked_message_id_age ON masked_message_id USING btree (created_at);
alter table masked_message_id enable row level security;
alter table masked_message_id force row level security;
create policy tenant on masked_message_id as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table masked_pattern (
  org_id uuid not null,
  id uuid not null,
  environment text not null,
  destination_id uuid not null,
  domain text not null,
  local_pattern text not null,
  aliases_hour integer not null,
  aliases_day integer not null,
  created_at timestamp with time zone not null,
  constraint masked_pattern_pkey PRIMARY KEY (org_id, id),
  constraint masked_pattern_aliases_day_check CHECK ((aliases_day > 0)),
  constraint masked_pattern_aliases_hour_check CHECK ((aliases_hour > 0)),
  constraint masked_pattern_environment_check CHECK ((environment = ANY (ARRAY['live'::text, 'test'::text]))),
  constraint masked_pattern_org_id_destination_id_fkey FOREIGN KEY (org_id, destination_id) REFERENCES masked_destination(org_id, id) ON DELETE CASCADE,
  constraint masked_pattern_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id),
  constraint masked_pattern_text UNIQUE (org_id, environment, domain, local_pattern)
);
CREATE INDEX masked_pattern_by_destination ON masked_pattern USING btree (org_id, destination_id, id);
alter table masked_pattern enable row level security;
alter table masked_pattern force row level security;
create policy tenant on masked_pattern as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table masked_sent (
  org_id uuid not null,
  contact_id uuid not null,
  digest bytea not null,
  created_at timestamp with time zone not null,
  constraint masked_sent_pkey PRIMARY KEY (org_id, contact_id, digest),
  constraint masked_sent_org_id_contact_id_fkey FOREIGN KEY (org_id, contact_id) REFERENCES masked_contact(org_id, id) ON DELETE CASCADE
);
CREATE INDEX masked_sent_age ON masked_sent USING btree (created_at);
alter table masked_sent enable row level security;
alter table masked_sent force row level security;
create policy tenant on masked_sent as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table masked_settings (
  org_id uuid not null,
  replies_person_hour integer not null,
  replies_person_day integer not null,
  replies_hour integer not null,
  replies_day integer not null,
  aliases_hour integer not null,
  aliases_day integer not null,
  updated_at timestamp with time zone not null,
  forged_mail text default 'quarantine'::text not null,
  arc_sealers text[],
  mark_unproven text default 'asked'::text not null,
  pattern_aliases integer default 1000 not null,
  constraint masked_settings_pkey PRIMARY KEY (org_id),
  constraint masked_settings_aliases_day_check CHECK ((aliases_day > 0)),
  constraint masked_settings_aliases_hour_check CHECK ((aliases_hour > 0)),
  constraint masked_settings_forged_mail_check CHECK ((forged_mail = ANY (ARRAY['quarantine'::text, 'warn'::text]))),
  constraint masked_settings_mark_unproven_check CHECK ((mark_unproven = ANY (ARRAY['asked'::text, 'always'::text]))),
  constraint masked_settings_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id),
  constraint masked_settings_pattern_aliases_check CHECK ((pattern_aliases > 0)),
  constraint masked_settings_replies_day_check CHECK ((replies_day > 0)),
  constraint masked_settings_replies_hour_check CHECK ((replies_hour > 0)),
  constraint masked_settings_replies_person_day_check CHECK ((replies_person_day > 0)),
  constraint masked_settings_replies_person_hour_check CHECK ((replies_person_hour > 0))
);
alter table masked_settings enable row level security;
alter table masked_settings force row level security;
create policy tenant on masked_settings as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table masked_trace (
  org_id uuid not null,
  id uuid not null,
  kind text not null,
  alias_id uuid,
  destination_id uuid,
  contact_id uuid,
  owner_id uuid,
  created_at timestamp with time zone not null,
  due_at timestamp with time zone,
  bounced_at timestamp with time zone,
  cleared uuid[],
  constraint masked_trace_pkey PRIMARY KEY (org_id, id),
  constraint masked_trace_kind_check CHECK ((kind = ANY (ARRAY['received'::text, 'forward'::text, 'reply'::text, 'notice'::text])))
) partition by range (id);
CREATE INDEX masked_trace_due ON ONLY public.masked_trace USING btree (due_at) WHERE (due_at IS NOT NULL);
alter table masked_trace enable row level security;
alter table masked_trace force row level security;
create policy tenant on masked_trace as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table masked_window (
  org_id uuid not null,
  alias_id uuid not null,
  kind text not null,
  starts_at timestamp with time zone not null,
  used integer not null,
  constraint masked_window_pkey PRIMARY KEY (org_id, alias_id, kind, starts_at)
);
CREATE INDEX masked_window_age ON masked_window USING btree (starts_at);
alter table masked_window enable row level security;
alter table masked_window force row level security;
create policy tenant on masked_window as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table master_key (
  is_only boolean default true not null,
  key_id smallint,
  digest bytea,
  data_key smallint default 0 not null,
  constraint master_key_pkey PRIMARY KEY (is_only),
  constraint master_key_is_only_check CHECK (is_only)
);

create table membership (
  org_id uuid not null,
  person_id uuid not null,
  role text not null,
  sees_bodies boolean default false not null,
  created_at timestamp with time zone not null,
  constraint membership_pkey PRIMARY KEY (org_id, person_id),
  constraint membership_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id),
  constraint membership_person_id_fkey FOREIGN KEY (person_id) REFERENCES person(id) ON DELETE CASCADE,
  constraint membership_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'admin'::text, 'developer'::text, 'viewer'::text])))
);
CREATE INDEX membership_person ON membership USING btree (person_id);
alter table membership enable row level security;
alter table membership force row level security;
create policy tenant on membership as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table message (
  org_id uuid not null,
  id uuid not null,
  environment text not null,
  api_key_id uuid,
  domain_id uuid not null,
  message_id text not null,
  from_address text not null,
  from_header text not null,
  reply_to jsonb default '[]'::jsonb not null,
  subject text not null,
  tags jsonb default '[]'::jsonb not null,
  metadata jsonb default '{}'::jsonb not null,
  template_id uuid,
  template_version integer,
  class smallint default 0 not null,
  status text not null,
  size integer not null,
  recipient_count smallint not null,
  require_tls boolean default false not null,
  ip_pool text,
  unsubscribe_list text,
  origin text default 'api'::text not null,
  created_at timestamp with time zone not null,
  scheduled_at timestamp with time zone,
  expires_at timestamp with time zone,
  completed_at timestamp with time zone,
  envelope_from text,
  constraint message_pkey PRIMARY KEY (org_id, id)
) partition by range (id);
CREATE INDEX message_by_message_id ON ONLY public.message USING btree (org_id, message_id);
alter table message enable row level security;
alter table message force row level security;
create policy tenant on message as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table message_body (
  org_id uuid not null,
  id uuid not null,
  mime bytea storage external,
  blob_key text,
  constraint message_body_pkey PRIMARY KEY (org_id, id)
) partition by range (id);
CREATE INDEX message_body_by_blob ON ONLY public.message_body USING btree (blob_key) WHERE (blob_key IS NOT NULL);
alter table message_body enable row level security;
alter table message_body force row level security;
create policy tenant on message_body as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table message_texts (
  org_id uuid not null,
  id uuid not null,
  oldest_id uuid not null,
  day date not null,
  rows_in_it integer not null,
  ids uuid[] not null,
  senders text not null,
  subjects text not null,
  recipients text not null,
  tags text not null,
  facets text not null,
  constraint message_texts_pkey PRIMARY KEY (org_id, id)
) partition by range (id);
alter table message_texts enable row level security;
alter table message_texts force row level security;
create policy tenant on message_texts as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table message_texts_day (
  day date not null,
  constraint message_texts_day_pkey PRIMARY KEY (day)
);
alter table message_texts_day enable row level security;
alter table message_texts_day force row level security;
create policy system on message_texts_day as permissive for all using (( SELECT postern_system() AS postern_system));

create table node (
  id bigint generated always as identity not null,
  machine text not null,
  pid integer not null,
  roles text[] not null,
  started_at timestamp with time zone default now() not null,
  seen_at timestamp with time zone default now() not null,
  addresses inet[] default '{}'::inet[] not null,
  constraint node_pkey PRIMARY KEY (id)
);

create table organization (
  id uuid not null,
  name text not null,
  plan text not null,
  state text not null,
  monthly_quota bigint,
  requests_per_second integer,
  settings jsonb default '{}'::jsonb not null,
  created_at timestamp with time zone default now() not null,
  purpose text,
  constraint organization_pkey PRIMARY KEY (id),
  constraint organization_plan_check CHECK ((plan = ANY (ARRAY['free'::text, 'starter'::text, 'growth'::text, 'scale'::text, 'enterprise'::text]))),
  constraint organization_state_check CHECK ((state = ANY (ARRAY['pending_review'::text, 'active'::text, 'suspended'::text, 'moving'::text])))
);
CREATE INDEX organization_not_active ON organization USING btree (id) WHERE (state <> 'active'::text);
alter table organization enable row level security;
alter table organization force row level security;
create policy tenant on organization as permissive for all using ((( SELECT postern_system() AS postern_system) OR (id = ( SELECT postern_org() AS postern_org))));

create table organization_move (
  org_id uuid not null,
  state_before text not null,
  began_at timestamp with time zone not null,
  exported_at timestamp with time zone,
  exported_mails bigint,
  constraint organization_move_pkey PRIMARY KEY (org_id),
  constraint organization_move_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id),
  constraint organization_move_state_before_check CHECK ((state_before = ANY (ARRAY['pending_review'::text, 'active'::text, 'suspended'::text])))
);
alter table organization_move enable row level security;
alter table organization_move force row level security;
create policy tenant on organization_move as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table organization_move_seen (
  org_id uuid not null,
  process uuid not null,
  constraint organization_move_seen_pkey PRIMARY KEY (org_id, process),
  constraint organization_move_seen_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization_move(org_id) ON DELETE CASCADE
);
alter table organization_move_seen enable row level security;
alter table organization_move_seen force row level security;
create policy tenant on organization_move_seen as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table passkey (
  credential_id bytea not null,
  id uuid not null,
  person_id uuid not null,
  public_key bytea not null,
  counter bigint not null,
  transports text[] not null,
  name text not null,
  created_at timestamp with time zone not null,
  used_at timestamp with time zone,
  constraint passkey_pkey PRIMARY KEY (credential_id),
  constraint passkey_person_id_fkey FOREIGN KEY (person_id) REFERENCES person(id) ON DELETE CASCADE
);
CREATE INDEX passkey_person ON passkey USING btree (person_id);
alter table passkey enable row level security;
alter table passkey force row level security;
create policy system on passkey as permissive for all using (( SELECT postern_system() AS postern_system));

create table passkey_challenge (
  digest bytea not null,
  kind text not null,
  person_id uuid,
  expires_at timestamp with time zone not null,
  constraint passkey_challenge_pkey PRIMARY KEY (digest),
  constraint passkey_challenge_kind_check CHECK ((kind = ANY (ARRAY['new'::text, 'sign_in'::text, 'first'::text])))
);
CREATE INDEX passkey_challenge_age ON passkey_challenge USING btree (expires_at);
alter table passkey_challenge enable row level security;
alter table passkey_challenge force row level security;
create policy system on passkey_challenge as permissive for all using (( SELECT postern_system() AS postern_system));

create table person (
  id uuid not null,
  email text not null,
  name text default ''::text not null,
  password text,
  is_operator boolean default false not null,
  totp bytea,
  totp_confirmed_at timestamp with time zone,
  totp_step bigint default 0 not null,
  created_at timestamp with time zone not null,
  oidc_subject text,
  is_proven boolean default true not null,
  constraint person_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX person_email ON person USING btree (email);
CREATE UNIQUE INDEX person_oidc ON person USING btree (oidc_subject) WHERE (oidc_subject IS NOT NULL);
alter table person enable row level security;
alter table person force row level security;
create policy tenant on person as permissive for all using ((( SELECT postern_system() AS postern_system) OR (EXISTS ( SELECT 1
   FROM membership m
  WHERE (m.person_id = person.id)))));

create table person_link (
  digest bytea not null,
  id uuid not null,
  kind text not null,
  org_id uuid,
  person_id uuid,
  email text,
  role text,
  drops_factors boolean default false not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  used_at timestamp with time zone,
  is_mailed boolean default false not null,
  constraint person_link_pkey PRIMARY KEY (digest),
  constraint person_link_kind_check CHECK ((kind = ANY (ARRAY['set_up'::text, 'invitation'::text, 'reset'::text, 'sign_up'::text]))),
  constraint person_link_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id),
  constraint person_link_person_id_fkey FOREIGN KEY (person_id) REFERENCES person(id) ON DELETE CASCADE,
  constraint person_link_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'admin'::text, 'developer'::text, 'viewer'::text])))
);
CREATE INDEX person_link_org ON person_link USING btree (org_id, id);
alter table person_link enable row level security;
alter table person_link force row level security;
create policy tenant on person_link as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table person_session (
  digest bytea not null,
  id uuid not null,
  person_id uuid not null,
  created_at timestamp with time zone not null,
  seen_at timestamp with time zone not null,
  proved_at timestamp with time zone not null,
  ip text not null,
  user_agent text not null,
  constraint person_session_pkey PRIMARY KEY (digest),
  constraint person_session_person_id_fkey FOREIGN KEY (person_id) REFERENCES person(id) ON DELETE CASCADE
);
CREATE INDEX person_session_age ON person_session USING btree (seen_at);
CREATE INDEX person_session_person ON person_session USING btree (person_id);
alter table person_session enable row level security;
alter table person_session force row level security;
create policy system on person_session as permissive for all using (( SELECT postern_system() AS postern_system));

create table port_closed (
  machine text not null,
  since timestamp with time zone not null,
  seen_at timestamp with time zone not null,
  targets text[] not null,
  constraint port_closed_pkey PRIMARY KEY (machine)
);

create table recipient (
  org_id uuid not null,
  message_id uuid not null,
  "position" smallint not null,
  email text not null,
  kind text not null,
  status text not null,
  attempts smallint default 0 not null,
  next_attempt_at timestamp with time zone,
  delivered_at timestamp with time zone,
  bounce_type text,
  bounce_code text,
  diag_code text,
  diag_message text,
  bounce_class text,
  isp text,
  constraint recipient_pkey PRIMARY KEY (org_id, message_id, "position"),
  constraint recipient_kind_check CHECK ((kind = ANY (ARRAY['to'::text, 'cc'::text, 'bcc'::text])))
) partition by range (message_id);
alter table recipient enable row level security;
alter table recipient force row level security;
create policy tenant on recipient as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table recovery_code (
  person_id uuid not null,
  digest bytea not null,
  used_at timestamp with time zone,
  constraint recovery_code_pkey PRIMARY KEY (person_id, digest),
  constraint recovery_code_person_id_fkey FOREIGN KEY (person_id) REFERENCES person(id) ON DELETE CASCADE
);
alter table recovery_code enable row level security;
alter table recovery_code force row level security;
create policy system on recovery_code as permissive for all using (( SELECT postern_system() AS postern_system));

create table relay (
  org_id uuid not null,
  domain_id uuid not null,
  host text not null,
  port integer not null,
  username text,
  password bytea,
  tls text not null,
  mode text not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint relay_pkey PRIMARY KEY (org_id, domain_id),
  constraint relay_check CHECK (((username IS NULL) = (password IS NULL))),
  constraint relay_mode_check CHECK ((mode = ANY (ARRAY['always'::text, 'fallback'::text]))),
  constraint relay_org_id_domain_id_fkey FOREIGN KEY (org_id, domain_id) REFERENCES domain(org_id, id) ON DELETE CASCADE,
  constraint relay_tls_check CHECK ((tls = ANY (ARRAY['starttls'::text, 'implicit'::text, 'none'::text])))
);
alter table relay enable row level security;
alter table relay force row level security;
create policy tenant on relay as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table request_rate (
  org_id uuid not null,
  full_at timestamp with time zone not null,
  granted integer not null,
  asked_s double precision,
  limit_per_s integer,
  wanted integer,
  constraint request_rate_pkey PRIMARY KEY (org_id)
) with (fillfactor=50);
alter table request_rate enable row level security;
alter table request_rate force row level security;
create policy tenant on request_rate as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table sending_guard (
  is_only boolean default true not null,
  identity text not null,
  beats bigint default 0 not null,
  paused_at timestamp with time zone,
  reason text,
  id uuid default gen_random_uuid() not null,
  database_identity text,
  sent_at timestamp with time zone,
  host_name text,
  recovered_to text,
  base_urls text[] default '{}'::text[] not null,
  other_url text,
  ignored_urls text[] default '{}'::text[] not null,
  constraint sending_guard_pkey PRIMARY KEY (is_only),
  constraint sending_guard_is_only_check CHECK (is_only)
);

create table sign_in_try (
  name bytea not null,
  full_at timestamp with time zone not null,
  constraint sign_in_try_pkey PRIMARY KEY (name)
);
CREATE INDEX sign_in_try_age ON sign_in_try USING btree (full_at);
alter table sign_in_try enable row level security;
alter table sign_in_try force row level security;
create policy system on sign_in_try as permissive for all using (( SELECT postern_system() AS postern_system));

create table source (
  id uuid not null,
  org_id uuid,
  pool text,
  ip inet,
  ehlo text,
  slots smallint default 16 not null,
  created_at timestamp with time zone default now() not null,
  weight smallint default 1 not null,
  warmup_started_at timestamp with time zone,
  removed_at timestamp with time zone,
  held_at timestamp with time zone,
  held_by text,
  held_note text,
  constraint source_pkey PRIMARY KEY (id),
  constraint source_weight_check CHECK (((weight >= 1) AND (weight <= 100)))
);
CREATE UNIQUE INDEX source_address ON source USING btree (ip) WHERE ((ip IS NOT NULL) AND (removed_at IS NULL));
CREATE INDEX source_by_pool ON source USING btree (org_id, pool);
alter table source enable row level security;
alter table source force row level security;
create policy tenant on source as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table source_day (
  source_id uuid not null,
  day date not null,
  granted bigint default 0 not null,
  delivered bigint default 0 not null,
  deferred bigint default 0 not null,
  bounced bigint default 0 not null,
  blocked bigint default 0 not null,
  constraint source_day_pkey PRIMARY KEY (source_id, day),
  constraint source_day_source_id_fkey FOREIGN KEY (source_id) REFERENCES source(id) ON DELETE CASCADE
);

create table stat (
  org_id uuid not null,
  domain_id uuid not null,
  span text collate "C" not null,
  starts_at timestamp with time zone not null,
  isp text collate "C" not null,
  shard smallint not null,
  total_sent bigint not null,
  total_delivered bigint not null,
  total_deferred bigint not null,
  total_bounced bigint not null,
  total_hard_bounce bigint not null,
  total_complaints bigint not null,
  total_suppressed bigint not null,
  total_failed bigint not null,
  constraint stat_pkey PRIMARY KEY (org_id, domain_id, span, starts_at, isp, shard),
  constraint stat_span_check CHECK ((span = ANY (ARRAY['hour'::text, 'day'::text])))
) with (fillfactor=70);
CREATE INDEX stat_age ON stat USING btree (starts_at);
CREATE INDEX stat_unmerged ON stat USING btree (starts_at) WHERE (shard > 0);
alter table stat enable row level security;
alter table stat force row level security;
create policy tenant on stat as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table stat_reason (
  org_id uuid not null,
  domain_id uuid not null,
  starts_at timestamp with time zone not null,
  isp text collate "C" not null,
  reason text collate "C" not null,
  code text collate "C" not null,
  shard smallint not null,
  count bigint not null,
  constraint stat_reason_pkey PRIMARY KEY (org_id, domain_id, starts_at, isp, reason, code, shard)
) with (fillfactor=70);
CREATE INDEX stat_reason_age ON stat_reason USING btree (starts_at);
CREATE INDEX stat_reason_unmerged ON stat_reason USING btree (starts_at) WHERE (shard > 0);
alter table stat_reason enable row level security;
alter table stat_reason force row level security;
create policy tenant on stat_reason as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table sts_policy (
  domain text collate "C" not null,
  policy_id text not null,
  mode text not null,
  mx text[] not null,
  max_age_s integer not null,
  fetched_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  refresh_at timestamp with time zone not null,
  used_at timestamp with time zone not null,
  constraint sts_policy_pkey PRIMARY KEY (domain),
  constraint sts_policy_mode_check CHECK ((mode = ANY (ARRAY['enforce'::text, 'testing'::text, 'none'::text])))
);
CREATE INDEX sts_policy_expiry ON sts_policy USING btree (expires_at);
CREATE INDEX sts_policy_refresh ON sts_policy USING btree (refresh_at);

create table suppression (
  org_id uuid not null,
  id uuid not null,
  email text collate "C" not null,
  reason text not null,
  scope_type text not null,
  scope_id text collate "C" default ''::text not null,
  source text not null,
  source_message_id uuid,
  bounce_code text,
  diag_code text,
  feedback_type text,
  note text,
  expires_at timestamp with time zone,
  created_at timestamp with time zone not null,
  was text[],
  constraint suppression_pkey PRIMARY KEY (org_id, id),
  constraint suppression_address UNIQUE (org_id, email, scope_type, scope_id),
  constraint suppression_check CHECK (((scope_type = 'org'::text) = (scope_id = ''::text))),
  constraint suppression_reason_check CHECK ((reason = ANY (ARRAY['hard_bounce'::text, 'complaint'::text, 'manual'::text, 'unsubscribe'::text]))),
  constraint suppression_scope_type_check CHECK ((scope_type = ANY (ARRAY['org'::text, 'domain'::text, 'stream'::text, 'template'::text, 'list'::text])))
);
CREATE INDEX suppression_by_kind ON suppression USING btree (org_id, source, reason, scope_type, id DESC NULLS LAST);
CREATE INDEX suppression_by_scope ON suppression USING btree (org_id, scope_id, id DESC NULLS LAST) WHERE (scope_id <> ''::text);
CREATE INDEX suppression_expiry ON suppression USING btree (expires_at) WHERE (expires_at IS NOT NULL);
alter table suppression enable row level security;
alter table suppression force row level security;
create policy tenant on suppression as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));
CREATE TRIGGER suppression_added AFTER INSERT ON suppression REFERENCING NEW TABLE AS added FOR EACH STATEMENT WHEN (postern_sums_by_trigger()) EXECUTE FUNCTION count_suppressions();
CREATE TRIGGER suppression_changed AFTER UPDATE ON suppression REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT WHEN (postern_sums_by_trigger()) EXECUTE FUNCTION count_suppressions();
CREATE TRIGGER suppression_removed AFTER DELETE ON suppression REFERENCING OLD TABLE AS removed FOR EACH STATEMENT WHEN (postern_sums_by_trigger()) EXECUTE FUNCTION count_suppressions();

create table suppression_count (
  org_id uuid not null,
  source text not null,
  reason text not null,
  scope_type text not null,
  entries bigint not null,
  id bigint generated always as identity not null,
  constraint suppression_count_pkey PRIMARY KEY (org_id, id)
);
alter table suppression_count enable row level security;
alter table suppression_count force row level security;
create policy tenant on suppression_count as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table suppression_import (
  org_id uuid not null,
  id uuid not null,
  status text not null,
  provider text not null,
  total_rows integer default 0 not null,
  valid_rows integer default 0 not null,
  invalid_rows integer default 0 not null,
  duplicate_rows integer default 0 not null,
  already_suppressed_rows integer default 0 not null,
  by_reason jsonb default '{}'::jsonb not null,
  sample jsonb default '[]'::jsonb not null,
  errors jsonb default '[]'::jsonb not null,
  committed_rows integer default 0 not null,
  block_count integer default 0 not null,
  next_block integer default 0 not null,
  epoch integer default 0 not null,
  lease_until timestamp with time zone,
  failed_claims smallint default 0 not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  questions jsonb default '[]'::jsonb not null,
  constraint suppression_import_pkey PRIMARY KEY (org_id, id),
  constraint suppression_import_status_check CHECK ((status = ANY (ARRAY['reading'::text, 'previewed'::text, 'committing'::text, 'committed'::text, 'failed'::text, 'expired'::text])))
);
CREATE INDEX suppression_import_due ON suppression_import USING btree (lease_until) WHERE (status = 'committing'::text);
CREATE INDEX suppression_import_expiry ON suppression_import USING btree (expires_at);
alter table suppression_import enable row level security;
alter table suppression_import force row level security;
create policy tenant on suppression_import as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table suppression_import_block (
  org_id uuid not null,
  job_id uuid not null,
  "position" integer not null,
  row_count integer not null,
  entry_count integer not null,
  entries json storage external not null,
  constraint suppression_import_block_pkey PRIMARY KEY (org_id, job_id, "position"),
  constraint suppression_import_block_org_id_job_id_fkey FOREIGN KEY (org_id, job_id) REFERENCES suppression_import(org_id, id) ON DELETE CASCADE
);
alter table suppression_import_block enable row level security;
alter table suppression_import_block force row level security;
create policy tenant on suppression_import_block as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table template (
  org_id uuid not null,
  id uuid not null,
  slug text collate "C" not null,
  name text not null,
  description text,
  active boolean not null,
  version integer not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint template_pkey PRIMARY KEY (org_id, id),
  constraint template_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id),
  constraint template_slug UNIQUE (org_id, slug)
);
alter table template enable row level security;
alter table template force row level security;
create policy tenant on template as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table template_version (
  org_id uuid not null,
  template_id uuid not null,
  version integer not null,
  subject text not null,
  html_body text,
  text_body text,
  variables jsonb not null,
  declared jsonb,
  created_at timestamp with time zone not null,
  created_by text,
  constraint template_version_pkey PRIMARY KEY (org_id, template_id, version),
  constraint template_version_org_id_template_id_fkey FOREIGN KEY (org_id, template_id) REFERENCES template(org_id, id) ON DELETE CASCADE
);
alter table template_version enable row level security;
alter table template_version force row level security;
create policy never_changed on template_version as restrictive for update using (false);
create policy tenant on template_version as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table tls_policy_text (
  policy_hash bytea not null,
  policy_type text not null,
  policy_domain text not null,
  policy_strings text[] not null,
  last_day date not null,
  constraint tls_policy_text_pkey PRIMARY KEY (policy_hash),
  constraint tls_policy_text_policy_type_check CHECK ((policy_type = ANY (ARRAY['tlsa'::text, 'sts'::text, 'no-policy-found'::text])))
);

create table tls_report (
  org_id uuid not null,
  id uuid not null,
  domain_id uuid not null,
  fingerprint bytea not null,
  authenticated boolean not null,
  sender_domain text,
  received_at timestamp with time zone not null,
  organization_name text not null,
  contact_info text,
  report_id text not null,
  begin_at timestamp with time zone not null,
  end_at timestamp with time zone not null,
  successful_sessions bigint not null,
  failed_sessions bigint not null,
  policies jsonb not null,
  constraint tls_report_pkey PRIMARY KEY (org_id, id),
  constraint tls_report_fingerprint UNIQUE (org_id, domain_id, fingerprint),
  constraint tls_report_org_id_domain_id_fkey FOREIGN KEY (org_id, domain_id) REFERENCES domain(org_id, id) ON DELETE CASCADE
);
CREATE INDEX tls_report_age ON tls_report USING btree (received_at);
alter table tls_report enable row level security;
alter table tls_report force row level security;
create policy tenant on tls_report as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table tls_report_due (
  day date not null,
  domain text collate "C" not null,
  next_at timestamp with time zone,
  attempts integer default 0 not null,
  urls text[],
  constraint tls_report_due_pkey PRIMARY KEY (day, domain)
);
CREATE INDEX tls_report_due_next ON tls_report_due USING btree (next_at) WHERE (next_at IS NOT NULL);

create table tls_result (
  day date not null,
  domain text collate "C" not null,
  policy_hash bytea not null,
  result text not null,
  mx_host text not null,
  mx_ip text not null,
  source_ip text not null,
  sessions bigint not null,
  detail text,
  constraint tls_result_pkey PRIMARY KEY (day, domain, policy_hash, result, mx_host, mx_ip, source_ip)
);

create table warming (
  org_id uuid not null,
  domain_id uuid not null,
  phase text not null,
  warming_started_at timestamp with time zone not null,
  phase_started_at timestamp with time zone not null,
  paused_days integer default 0 not null,
  paused_at timestamp with time zone,
  paused_reason text,
  held_reason text,
  judged_from timestamp with time zone not null,
  decided_through date not null,
  idle_days integer default 0 not null,
  next_look_at timestamp with time zone not null,
  constraint warming_pkey PRIMARY KEY (org_id, domain_id),
  constraint warming_org_id_domain_id_fkey FOREIGN KEY (org_id, domain_id) REFERENCES domain(org_id, id) ON DELETE CASCADE,
  constraint warming_phase_check CHECK ((phase = ANY (ARRAY['phase_1'::text, 'phase_2'::text, 'phase_3'::text, 'phase_4'::text, 'warmed'::text])))
);
CREATE INDEX warming_due ON warming USING btree (next_look_at);
alter table warming enable row level security;
alter table warming force row level security;
create policy tenant on warming as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table warming_day (
  org_id uuid not null,
  domain_id uuid not null,
  date date not null,
  phase text not null,
  daily_limit integer,
  sent bigint not null,
  delivered bigint not null,
  bounced bigint not null,
  hard_bounced bigint not null,
  complained bigint not null,
  decision text not null,
  reason text,
  constraint warming_day_pkey PRIMARY KEY (org_id, domain_id, date),
  constraint warming_day_decision_check CHECK ((decision = ANY (ARRAY['continued'::text, 'advanced'::text, 'held'::text, 'paused'::text, 'stepped_back'::text]))),
  constraint warming_day_org_id_domain_id_fkey FOREIGN KEY (org_id, domain_id) REFERENCES warming(org_id, domain_id) ON DELETE CASCADE
);
CREATE INDEX warming_day_age ON warming_day USING btree (date);
alter table warming_day enable row level security;
alter table warming_day force row level security;
create policy tenant on warming_day as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table webhook (
  org_id uuid not null,
  id uuid not null,
  webhook_url text not null,
  event_types text[] not null,
  domain_id uuid,
  match_pattern text,
  enabled boolean default true not null,
  disabled_reason text,
  disabled_at timestamp with time zone,
  secret bytea,
  previous_secret bytea,
  previous_secret_expires_at timestamp with time zone,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  environment text default 'live'::text not null,
  constraint webhook_pkey PRIMARY KEY (org_id, id),
  constraint webhook_disabled_reason_check CHECK ((disabled_reason = ANY (ARRAY['asked'::text, 'gone'::text]))),
  constraint webhook_environment_check CHECK ((environment = ANY (ARRAY['live'::text, 'test'::text]))),
  constraint webhook_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id)
);
alter table webhook enable row level security;
alter table webhook force row level security;
create policy tenant on webhook as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table webhook_delivery (
  org_id uuid not null,
  id uuid not null,
  webhook_id uuid not null,
  event_id uuid not null,
  event text not null,
  created_at timestamp with time zone not null,
  finished_at timestamp with time zone not null,
  attempt smallint not null,
  status text not null,
  status_code smallint,
  error text,
  duration_ms integer,
  attempt_id uuid,
  replayed_at timestamp with time zone,
  constraint webhook_delivery_pkey PRIMARY KEY (org_id, id),
  constraint webhook_delivery_status_check CHECK ((status = ANY (ARRAY['delivered'::text, 'failed'::text])))
) partition by range (id);
CREATE INDEX webhook_delivery_by_event ON ONLY public.webhook_delivery USING btree (org_id, event_id);
CREATE INDEX webhook_delivery_by_webhook ON ONLY public.webhook_delivery USING btree (org_id, webhook_id, id);
alter table webhook_delivery enable row level security;
alter table webhook_delivery force row level security;
create policy tenant on webhook_delivery as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table webhook_event (
  org_id uuid not null,
  id uuid not null,
  event text not null,
  created_at timestamp with time zone not null,
  body bytea not null,
  listened xid8,
  environment text,
  constraint webhook_event_pkey PRIMARY KEY (org_id, id)
) partition by range (id);
CREATE INDEX webhook_event_listened ON ONLY public.webhook_event USING btree (org_id, listened, id) WHERE (listened IS NOT NULL);
alter table webhook_event enable row level security;
alter table webhook_event force row level security;
create policy tenant on webhook_event as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table webhook_lane (
  org_id uuid not null,
  webhook_id uuid not null,
  next_at timestamp with time zone default 'infinity'::timestamp with time zone not null,
  consecutive_failures integer default 0 not null,
  last_success_at timestamp with time zone,
  constraint webhook_lane_pkey PRIMARY KEY (org_id, webhook_id),
  constraint webhook_lane_org_id_fkey FOREIGN KEY (org_id) REFERENCES organization(id)
) with (autovacuum_vacuum_cost_delay=0, autovacuum_vacuum_scale_factor=0.02, fillfactor=50);
CREATE INDEX webhook_lane_due ON webhook_lane USING btree (next_at);
alter table webhook_lane enable row level security;
alter table webhook_lane force row level security;
create policy tenant on webhook_lane as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));

create table webhook_queue (
  org_id uuid not null,
  id uuid not null,
  webhook_id uuid not null,
  event_id uuid not null,
  event text not null,
  body_bytes integer not null,
  created_at timestamp with time zone not null,
  attempt smallint default 0 not null,
  next_attempt_at timestamp with time zone not null,
  claim_id uuid,
  lease_until timestamp with time zone,
  status_code smallint,
  error text,
  duration_ms integer,
  attempt_id uuid,
  constraint webhook_queue_pkey PRIMARY KEY (org_id, id)
) with (autovacuum_vacuum_cost_delay=0, autovacuum_vacuum_scale_factor=0.02, fillfactor=90);
CREATE INDEX webhook_queue_by_event ON webhook_queue USING btree (org_id, event_id);
CREATE INDEX webhook_queue_claim ON webhook_queue USING btree (org_id, webhook_id, next_attempt_at);
CREATE INDEX webhook_queue_leased ON webhook_queue USING btree (lease_until) WHERE (claim_id IS NOT NULL);
alter table webhook_queue enable row level security;
alter table webhook_queue force row level security;
create policy tenant on webhook_queue as permissive for all using ((( SELECT postern_system() AS postern_system) OR (org_id = ( SELECT postern_org() AS postern_org))));
