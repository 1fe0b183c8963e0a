-- Nothing leaves for an organization that may not send: not when it is suspended, and not before it is approved.
create index organization_not_active on organization (id) where state <> 'active';
drop index organization_suspended;
