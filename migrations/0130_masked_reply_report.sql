-- When the author of a reply that left is told what was changed in it, and when the owner was last told that a contact wrote a
-- mailbox of theirs.
alter table masked_alias
  add column reply_report text not null default 'hidden' check (reply_report in ('never', 'hidden', 'always'));
alter table masked_contact add column warned_at timestamptz;
