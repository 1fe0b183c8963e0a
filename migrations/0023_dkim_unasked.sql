-- The key that is made with a domain: until somebody asks for a key, it is the one that they get.
alter table dkim_key add column unasked boolean not null default false;
