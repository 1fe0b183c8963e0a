-- Which key made it. A test key changes only what test keys made; its webhooks hear of test mail alone and its rules are
-- asked about test mail alone, so that live mail takes no way that a test key chose.
alter table webhook add column environment text not null default 'live' check (environment in ('live', 'test'));
alter table domain add column environment text not null default 'live' check (environment in ('live', 'test'));
alter table alias add column environment text not null default 'live' check (environment in ('live', 'test'));
alter table inbound_rule add column environment text not null default 'live' check (environment in ('live', 'test'));
