-- What becomes of a reply with a file that nobody can look into, and of its author's name in running text.
alter table masked_alias
  add column unopened_files text not null default 'hold' check (unopened_files in ('hold', 'send')),
  add column own_name text not null default 'leave' check (own_name in ('leave', 'replace'));
