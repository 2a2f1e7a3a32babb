-- False: part of what paid has no address. Null, as `senders`: not known yet, and asked for before anything is credited.
alter table deposits add column senders_complete boolean;
-- What is not credited yet is asked for again: until now one sender was written down where there may be several.
update deposits d set senders = null from transactions t where t.id = d.transaction_id and t.status = 'pending';
