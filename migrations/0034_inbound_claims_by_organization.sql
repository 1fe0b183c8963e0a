-- Received mail that waits is claimed of one organization after another: nobody's backlog stands before another's mail.
create index inbound_queue_free_by_org on inbound_queue (org_id, next_attempt_at) where claim_id is null;
drop index inbound_queue_free;
