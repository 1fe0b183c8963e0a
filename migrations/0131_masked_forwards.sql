-- What becomes of pictures that track the reader of a forward, and of its List-Unsubscribe.
alter table masked_alias
  add column tracking_pixels text not null default 'leave' check (tracking_pixels in ('leave', 'cut')),
  add column list_unsubscribe text not null default 'original'
    check (list_unsubscribe in ('original', 'disable_alias', 'block_sender'));
