-- Which domains an organization has masked addresses at: asked for what mail names, to find its owner's other aliases behind
-- other letters.
create index masked_alias_domain on masked_alias (org_id, domain);
