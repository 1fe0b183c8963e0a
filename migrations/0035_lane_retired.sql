-- A lane is dropped in two steps: first it is retired (nothing may be put into it unless its name is looked up again), then,
-- once every transaction that could have seen it before has ended, it is deleted if it still holds nothing.
alter table lane add column retired_xid xid8;
