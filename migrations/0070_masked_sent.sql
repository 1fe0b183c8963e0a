-- What a contact sent that names the owner's mailbox: it comes back to the contact as it was. By keyed digests, never readable.
create table masked_sent (
  org_id uuid not null,
  contact_id uuid not null,
  digest bytea not null,
  created_at timestamptz not null,
  primary key (org_id, contact_id, digest),
  foreign key (org_id, contact_id) references masked_contact (org_id, id) on delete cascade
);
create index masked_sent_age on masked_sent (created_at);
call protect_tenant_table('masked_sent');
