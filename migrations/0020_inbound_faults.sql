-- How often the handling of a received mail failed for what is in it, or for a fault of ours. Attempts that failed because
-- the database or the store of bodies was away say nothing about the mail: it must not be put aside for them.
alter table inbound_queue add column faults int not null default 0;
