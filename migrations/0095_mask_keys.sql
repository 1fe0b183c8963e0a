-- API keys that may only manage the masked addresses of one mailbox, for password managers.
alter table api_key
  add column kind text not null default 'full',
  add column destination_id uuid,
  add constraint api_key_kind_check check (kind in ('full', 'mask')),
  add constraint api_key_destination_check check (kind = 'mask' or destination_id is null),
  add constraint api_key_destination_fkey foreign key (org_id, destination_id) references masked_destination (org_id, id)
    on delete set null (destination_id);

-- For the deletion of a destination.
create index api_key_destination on api_key (org_id, destination_id) where destination_id is not null;
