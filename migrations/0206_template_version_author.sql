-- Who made a version: the name of the API key, or the person's address; null where nobody noted it (older versions).
alter table template_version add column created_by text;
