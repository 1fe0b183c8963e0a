-- Reports on TLS to other domains (RFC 8460): which are still to be sent, by day (UTC) and recipient domain. They belong to no
-- organization. Results are in tls_result.
create table tls_report_due (
  day date not null,
  domain text collate "C" not null,
  next_at timestamptz,           -- null: sent, not wanted, or given up
  attempts integer not null default 0,
  urls text[],                   -- where it is still to be posted; null: nothing was sent yet, mail neither
  primary key (day, domain)
);
create index tls_report_due_next on tls_report_due (next_at) where next_at is not null;
