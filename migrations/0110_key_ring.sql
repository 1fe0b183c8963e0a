-- The key ring: one root, which keyed digests are made with and which never changes, and numbered data keys, which values are
-- sealed with. It is kept sealed under the master key, and while the master key is changed under the old and the new one.
create table key_ring (
  number smallint primary key,      -- the newest master key has the highest
  master_key bytea not null unique, -- a digest by which a master key finds its row
  sealed bytea not null,            -- the ring
  made_at timestamptz not null default now()
);

-- Which process uses which master key, and how far it has read the ring.
create table key_ring_use (
  process uuid primary key,
  machine text not null,
  pid integer not null,
  master_key bytea not null,
  newest_data_key smallint not null,
  seals_with smallint not null,
  seen_at timestamptz not null default now()
);

-- The data key that values are sealed with from now on; 0: the root, as before there were data keys.
alter table master_key add column data_key smallint not null default 0;

do $$
declare
  name text;
begin
  foreach name in array array['key_ring', 'key_ring_use'] loop
    execute format('alter table %I enable row level security', name);
    execute format('alter table %I force row level security', name);
    execute format('create policy system on %I using ((select postern_system()))', name);
  end loop;
end $$;
