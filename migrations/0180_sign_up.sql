-- Links with which somebody new makes an organization of their own, and what they say they will send.
alter table person_link drop constraint person_link_kind_check;
alter table person_link add constraint person_link_kind_check
  check (kind = any (array['set_up', 'invitation', 'reset', 'sign_up']));
alter table organization add column purpose text;
