-- Templates. The row says what a template is called and which version is current; what it says is in its versions, which
-- are never changed: mail names the version it was rendered with, and a process may keep a parsed version for ever.

create table template (
  org_id uuid not null references organization,
  id uuid not null,
  slug text collate "C" not null,
  name text not null,
  description text,
  active boolean not null,
  version integer not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org_id, id),
  constraint template_slug unique (org_id, slug)
);
call protect_tenant_table('template');

-- variables: all that this version reads or its author declared, [{name, required, default}]. declared: the author's
-- own list as it was given; null when there was none.
create table template_version (
  org_id uuid not null,
  template_id uuid not null,
  version integer not null,
  subject text not null,
  html_body text,
  text_body text,
  variables jsonb not null,
  declared jsonb,
  created_at timestamptz not null,
  primary key (org_id, template_id, version),
  foreign key (org_id, template_id) references template on delete cascade
);
call protect_tenant_table('template_version');

create function refuse_template_version_update() returns trigger language plpgsql as $$
begin
  raise exception 'a template version is never changed';
end $$;

create trigger template_version_is_immutable before update on template_version
  for each statement execute function refuse_template_version_update();
