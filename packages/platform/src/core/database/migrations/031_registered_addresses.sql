-- A scanner remembers which addresses are ours, and asks before each look which were registered
-- since: by the transaction that did, of which the database knows which are over
-- (deposits/watched.ts). Earlier rows have no transaction; every cache has read them.
alter table chain_addresses add column registered xid8 not null default '0';
alter table chain_addresses alter column registered set default pg_current_xact_id();
create index chain_addresses_registered on chain_addresses (network, registered);
