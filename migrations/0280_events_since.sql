-- Since when the events of an organization are kept for its readers without a pause: who goes on behind an earlier one may have
-- missed some. Of those who read already it is not known.
alter table event_listener add column since timestamptz;
