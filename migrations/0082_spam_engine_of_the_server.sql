-- A domain that has not chosen an engine for spam uses the server's: rspamd where POSTERN_RSPAMD_URL is set, else the built-in one.
-- What stands there stays: it cannot be told from a choice.
alter table domain_spam alter column engine drop not null;
