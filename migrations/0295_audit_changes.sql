-- What a change did: the values before and after of what may be kept (words of a list, numbers, times, ids, names of things).
alter table audit_entry add column changes jsonb not null default '[]';
