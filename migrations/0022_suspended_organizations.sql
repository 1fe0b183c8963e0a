-- Whose mail waits: asked for every few seconds by whoever sends. There are few, among any number of organizations.
create index organization_suspended on organization (id) where state = 'suspended';
