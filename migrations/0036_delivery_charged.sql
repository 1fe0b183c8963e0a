-- When the delivery was counted in the windows of its domain's warming: at its acceptance, or for scheduled mail when it leaves.
alter table delivery add column charged_at timestamptz;
