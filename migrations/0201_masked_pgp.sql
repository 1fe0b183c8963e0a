-- The OpenPGP key of a mailbox: what is forwarded to it is encrypted for it. Sealed, because keys and their fingerprints name people.
alter table masked_destination
  add column pgp_sealed bytea,
  add column pgp_hide_subject boolean not null default true;
