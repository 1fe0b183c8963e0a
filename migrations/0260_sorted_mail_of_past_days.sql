-- Each received mail wrote to most of seven indexes when it came, and again when it was processed: the orders that lists of it may be
-- asked for. Only days that are over have them now (src/platform/database/day-indexes.ts). Those that had them get them again
-- within hours, beside those who read and write; until then such a list sorts the rows.
do $$
begin
  for place_in_order in 1..7 loop
    execute format('drop index if exists %I', 'inbound_email_sorted_' || place_in_order);
  end loop;
end $$;
