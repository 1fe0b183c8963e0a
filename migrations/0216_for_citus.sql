-- What a process asks of a bucket stands in the row: Citus takes no look at other rows where one is changed. For whom no such row is
-- there, and for processes of older versions, the columns are null.
alter table request_rate
  add column asked_s double precision,  -- seconds since 1970, by the database's clock
  add column limit_per_s integer,
  add column wanted integer;

-- Citus writes a `case … when` of two values wrongly where it has put the function's text into a statement.
create or replace function suppression_rank(reason text) returns integer language sql immutable parallel safe as $$
  select case when reason = 'complaint' then 3 when reason = 'hard_bounce' then 2 when reason = 'unsubscribe' then 1 else 0 end $$;
