-- Which forwards say in their author's name that the author is not proven.
alter table masked_settings
  add column mark_unproven text not null default 'asked' check (mark_unproven in ('asked', 'always'));
