-- Routing rules of received mail: a tree of conditions and what is done with mail for which it holds. A rule belongs to a
-- domain, or to one alias of it; those of the alias are asked first.

create table inbound_rule (
  org_id uuid not null references organization,
  id uuid not null,
  domain_id uuid not null,
  alias_id uuid,                      -- null: for all mail of the domain
  name text not null,
  priority integer not null,          -- low runs first
  active boolean not null default true,
  match jsonb not null,
  action text not null check (action in ('webhook', 'forward', 'store', 'drop')),
  forward_to text[] not null default '{}',
  webhook_ids uuid[] not null default '{}',
  revision integer not null default 1, -- counts changes: compiled rules are remembered by it
  hits bigint not null default 0,
  last_hit_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org_id, id),
  foreign key (org_id, domain_id) references domain (org_id, id) on delete cascade,
  foreign key (org_id, alias_id) references alias (org_id, id) on delete cascade
) with (fillfactor = 70);
create index inbound_rule_by_domain on inbound_rule (org_id, domain_id);
create index inbound_rule_by_alias on inbound_rule (org_id, alias_id) where alias_id is not null;
call protect_tenant_table('inbound_rule');
