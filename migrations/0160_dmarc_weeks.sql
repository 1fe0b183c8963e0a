-- The sources of DMARC reports by week, beside those by day: a page over the last 400 days reads 57 rows of a source and at
-- most twelve of days in place of 400. Triggers keep them, so that a process of an older version, which knows days alone, keeps them too.

-- The names of both, sorted; at most 20, as many as a page shows.
create function dmarc_merge_names(seen text[], more text[]) returns text[] language sql immutable parallel safe as $$
  select case when more <@ seen then seen
    else array(select distinct name from unnest(seen || more) as name order by 1 limit 20) end $$;
create aggregate dmarc_all_names(text[]) (sfunc = dmarc_merge_names, stype = text[], initcond = '{}', parallel = safe);

-- The Monday of its week.
create function dmarc_week(day date) returns date language sql immutable parallel safe as $$
  select day - (extract(isodow from day)::integer - 1) $$;

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
  primary key (org_id, domain_id, week, source_ip),
  foreign key (org_id, domain_id) references domain (org_id, id) on delete cascade
) with (fillfactor = 80);
create index dmarc_week_source_failed on dmarc_week_source (org_id, domain_id, week) where total > aligned;
create index dmarc_week_source_age on dmarc_week_source (week);
call protect_tenant_table('dmarc_week_source');

-- Two reports of one week may name the same sources in any order: one at a time, or they would wait for each other in a ring.
create function dmarc_add_to_weeks() returns trigger language plpgsql as $$
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
end $$;

create trigger dmarc_day_source_added after insert on dmarc_day_source
  referencing new table as added for each statement execute function dmarc_add_to_weeks();
create trigger dmarc_day_source_changed after update on dmarc_day_source
  referencing old table as removed new table as added for each statement execute function dmarc_add_to_weeks();

insert into dmarc_week_source
  select org_id, domain_id, dmarc_week(day), source_ip, min(day), max(day), sum(total), sum(pass_dkim), sum(pass_spf),
      sum(aligned), sum(forwarded), dmarc_all_names(dkim_domains), dmarc_all_names(dkim_passed),
      dmarc_all_names(spf_domains), dmarc_all_names(spf_passed), dmarc_all_names(reporters)
    from dmarc_day_source group by 1, 2, 3, 4;
