-- Which database a mark in a data folder is of: a folder may outlive its database, or serve two. A row that is there
-- already gets one that follows from it, so that a backup from before this migration has the same once it is restored.
alter table sending_guard add column id uuid not null default gen_random_uuid();
update sending_guard set id = md5(identity)::uuid;

-- Large bodies of sent mail: written as 'accepting' before the blob, under the message's id, 'accepted' once the message
-- was found there. Null: of received mail.
alter table blob_reference add column sent_state text check (sent_state in ('accepting', 'accepted'));
create index blob_reference_sent on blob_reference (sent_state, owner_id) where sent_state is not null;
insert into blob_reference (org_id, blob_key, owner_id, sent_state)
  select org_id, blob_key, id, 'accepted' from message_body where blob_key is not null
  on conflict do nothing;
