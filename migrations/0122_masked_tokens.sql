-- A mailbox of the owner that a contact wrote of gets a row of its own, for the reverse address that stands for it. Such a row
-- is no new contact of the day: the count would tell the writer that the guess was right. It counts once somebody names the
-- mailbox among the people of a mail, as any other address does.
alter table masked_contact add column is_token boolean not null default false;
