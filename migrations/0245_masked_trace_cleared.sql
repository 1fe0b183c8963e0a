-- The mailboxes that the leak gate searched a reply for, as they were then: what is sent again is searched for those that came since.
alter table masked_trace add column cleared uuid[];
