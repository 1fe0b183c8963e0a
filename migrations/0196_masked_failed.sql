-- Beside replies that were held (`leak`), mail that failed for good: a forward that its mailbox did not take, a reply that its
-- contact did not take. It stays sealed for a week, so that its owner can download it and send it again.
alter table masked_held
  add column kind text not null default 'leak' check (kind in ('leak', 'forward', 'reply')),
  add column reason text,                             -- as the activity says it
  add column size integer,                            -- of the message, in octets
  add column cleared uuid[] not null default '{}';    -- the alias's mailboxes when it failed: it was searched for them
create index masked_held_failed on masked_held (org_id, id) where kind <> 'leak';
