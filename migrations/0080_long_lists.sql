-- The first page of a list is read off an index, however many rows there are and whichever environment they belong to.
create index masked_contact_newest on masked_contact (org_id, alias_id, id);
create index masked_alias_newest on masked_alias (org_id, environment, id);
create index masked_destination_newest on masked_destination (org_id, environment, id);
-- In the order in which rules are asked; takes the place of inbound_rule_by_domain.
create index inbound_rule_in_order on inbound_rule (org_id, domain_id, (alias_id is null), priority, id);
drop index inbound_rule_by_domain;
