-- What a workspace's tank may pay for one transaction, and up to which gas price; null: the network's own cap alone.
alter table gas_tanks add column fee_cap numeric(78, 0) check (fee_cap > 0);
alter table gas_tanks add column max_gas_price numeric(78, 0) check (max_gas_price > 0);
-- The last status that an event told of.
alter table gas_tanks add column status text not null default 'ok' check (status in ('ok', 'low', 'empty'));
