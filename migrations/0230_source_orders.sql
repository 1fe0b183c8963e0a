-- An operator takes a sending address out of use, such as one that a list of blocked addresses has, and gives it back. Meanwhile the
-- mail of its pool leaves from the pool's others, or waits.
alter table source
  add column held_at timestamptz,  -- null: it is in use
  add column held_by text,         -- the person's address
  add column held_note text;
