-- Received mail in each order that it may be asked for is read off an index. Days that hold mail already get none, so that nothing
-- waits while it is built: they are gone after the retention. Days without mail, and those to come, get theirs. Of
-- texts the first 200 characters count, as a row of an index has at most 2.7 kB. Row-level security lets no condition on a
-- function be one of an index, so mail without a text is kept out of that text's index, and has one of its own.
do $$
declare
  place text;
  columns text;
  place_in_order int;
  is_used boolean;
begin
  for place in
    select 'only inbound_email'
    union all select inhrelid::regclass::text from pg_inherits where inhparent = 'inbound_email'::regclass
  loop
    execute format('select exists (select from %s)', place) into is_used;
    continue when is_used;
    place_in_order := 0;
    foreach columns in array array[
      '(org_id, processed_at, id)',
      '(org_id, "left"(lower(from_address), 200), id) where from_address is not null',
      '(org_id, "left"(lower(recipient), 200), id)',
      '(org_id, "left"(lower(subject), 200), id) where subject is not null',
      '(org_id, spam_score, id)',
      '(org_id, size, id)',
      '(org_id, id) where from_address is null or subject is null'] loop
      place_in_order := place_in_order + 1;
      if place = 'only inbound_email' then
        execute format('create index %I on %s %s', 'inbound_email_sorted_' || place_in_order, place, columns);
      else
        execute format('create index %I on %s %s', place || '_sorted_' || place_in_order, place, columns);
        execute format('alter index %I attach partition %I', 'inbound_email_sorted_' || place_in_order,
          place || '_sorted_' || place_in_order);
      end if;
    end loop;
  end loop;
end $$;
