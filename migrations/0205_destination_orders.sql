-- What operators order for the mail to one destination, whoever sent it: to wait, to be tried at once, to be given up. Rows belong
-- to no organization.
create table destination_order (
  domain text collate "C" primary key,
  suspended_at timestamptz,      -- null: its mail may leave
  suspended_by text,             -- the person's address
  note text,
  retry_at timestamptz,          -- sites that rest are called again once after this
  drop_before timestamptz,       -- what was accepted up to then is given up; null: nothing, or it is done
  dropped bigint not null default 0 -- by the last such order, so far
);
alter table destination_order enable row level security;
alter table destination_order force row level security;
create policy system on destination_order using ((select postern_system()));
