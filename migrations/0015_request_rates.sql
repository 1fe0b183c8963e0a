-- What is left of an organization's requests per second: one bucket each, shared by all processes that take requests.
-- Unlogged: its updates wait for no disk (measured 0.2 ms a draw), and after a crash of the server every bucket is full.
create unlogged table request_rate (
  org_id uuid primary key,
  -- The bucket is as full as the plan allows at this moment of the database's clock; until then one second's worth less
  -- what has flowed in (the virtual scheduling form of the generic cell rate algorithm, ITU-T I.371).
  full_at timestamptz not null,
  -- What the last draw got: an insert tells of its new row only.
  granted integer not null
) with (fillfactor = 50);
call protect_tenant_table('request_rate');
