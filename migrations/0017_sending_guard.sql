-- Which database this is and how far it has come: a restored backup is known by it, and sends nothing until the operator
-- says so (its queue holds mail that left after the backup was taken).
create table sending_guard (
  is_only boolean primary key default true check (is_only),
  -- The cluster: its system identifier and timeline, and of an embedded one the inode of a file of it.
  identity text not null,
  -- Counts up while mail is sent, here and then in the data folder: never behind there unless the database went back.
  beats bigint not null default 0,
  -- Null: mail leaves.
  paused_at timestamptz,
  reason text
);
