-- What becomes of mail to masked addresses whose author is not proven though its domain asks for that, and whose seals (ARC) are
-- believed all the same: of an organization that set nothing, those of src/masked/settings.ts.
alter table masked_settings
  add column forged_mail text not null default 'quarantine' check (forged_mail in ('quarantine', 'warn')),
  add column arc_sealers text[];
