-- Events read from the API (GET /v1/events). An organization that reads them is noted; its events are then kept whether or not
-- an endpoint wants them, in the order in which they were committed: `listened` is the transaction that wrote them.
create table event_listener (
  org_id uuid primary key references organization,
  until timestamptz not null
);
call protect_tenant_table('event_listener');

alter table webhook_event add column listened xid8, add column environment text;
create index webhook_event_listened on webhook_event (org_id, listened, id) where listened is not null;
