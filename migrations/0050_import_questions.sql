-- What a preview asks about columns whose meaning is not known: [{"column", "message"}].
alter table suppression_import add column questions jsonb not null default '[]';
