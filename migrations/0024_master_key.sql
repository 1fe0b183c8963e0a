-- Which master key this database's secrets are sealed under, so that another one is noticed before anything is sent.
create table master_key (
  is_only boolean primary key default true check (is_only),
  -- Of a database that is older than this table: the second byte of what was sealed last names its key.
  key_id smallint,
  -- A keyed digest of a fixed text; null until the first start.
  digest bytea
);

insert into master_key (key_id)
  select get_byte(sealed, 1) from (
    select private_key as sealed, created_at from dkim_key where private_key is not null
    union all select private_key, created_at from masked_key) as kept
   order by created_at desc limit 1;
