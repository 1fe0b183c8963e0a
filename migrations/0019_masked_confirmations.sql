-- Confirmation mails to an address on a day, over all organizations: whoever adds and removes a mailbox again and again
-- must not flood it through us. It belongs to no organization, and names nobody.
create table masked_confirmation_day (
  digest bytea not null,              -- keyed hash of the address without its tag, lower case
  day date not null,
  sent smallint not null,
  primary key (digest, day)
);
create index masked_confirmation_day_age on masked_confirmation_day (day);

-- Where an address stood that held a reply; the reason is a word.
alter table masked_activity add column detail text;
