-- Which database this is, told by what a dump cannot bring along: `<system identifier>:<oid of the database>:<oid of this
-- table>`. Null: not noted yet. The column `identity` is that of older versions, which may still run beside this one.
alter table sending_guard add column database_identity text;
-- When mail was last seen to leave; null: not since this was first noted, or since the operator confirmed the database.
alter table sending_guard add column sent_at timestamptz;
-- What a staging copy has otherwise: the host name that mail left under, and the point in time the cluster was recovered to.
alter table sending_guard add column host_name text;
alter table sending_guard add column recovered_to text;
-- Where those that sent from it can be asked whether they are still there.
alter table sending_guard add column base_urls text[] not null default '{}';
-- Where another database was found under this identity when it was paused, and where that was confirmed not to matter.
alter table sending_guard add column other_url text;
alter table sending_guard add column ignored_urls text[] not null default '{}';
