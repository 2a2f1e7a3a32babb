-- Orders, conversions and transfers to and from exchanges say their workspace in every key, as 026_workspace_keys.sql did for transfers
-- and the books. What stays unique over all workspaces says so here, and in docs/production/growing.md.

-- Sorting and joining many rows at once, until this is committed.
set local maintenance_work_mem = '256MB';
set local work_mem = '128MB';

-- References between these tables are made anew, by whatever names they have.
do $$
declare
  reference record;
  keyed regclass[] := array['orders', 'order_fills', 'conversions', 'exchange_transfers'];
begin
  for reference in select conrelid::regclass as of_table, conname from pg_constraint where contype = 'f' and (confrelid = any(keyed)
    or confrelid in ('sub_accounts'::regclass, 'exchange_accounts'::regclass) and conrelid = any(keyed)) loop
    execute format('alter table %s drop constraint %I', reference.of_table, reference.conname);
  end loop;
end $$;

-- What all that is done at an exchange refers to. Its own key stays: few rows, which every shard would have.
alter table exchange_accounts add constraint exchange_accounts_of unique (workspace_id, id);

-- Rows are written without what is made anew.
alter table order_fills drop constraint order_fills_pkey;
drop index order_fills_order;
alter table order_fills add column workspace_id uuid;
update order_fills f set workspace_id = o.workspace_id from orders o where o.id = f.order_id;
alter table order_fills alter column workspace_id set not null;
create index order_fills_order on order_fills (workspace_id, order_id, at);

-- By orders.client_id and exchange_transfers.client_id an exchange knows what it was asked for, whosever it is: they stay unique over
-- all workspaces.
alter table orders drop constraint orders_pkey;
drop index orders_sequence, orders_list, orders_account;
create unique index orders_sequence on orders (workspace_id, sub_account_id, sequence_id) where sequence_id is not null;
create index orders_list on orders (workspace_id, sub_account_id, created_at desc, id desc);
create index orders_account on orders (workspace_id, account_id) where state <> 'ENDED';

alter table exchange_transfers drop constraint exchange_transfers_pkey;
drop index exchange_transfers_sequence, exchange_transfers_venue, exchange_transfers_list, exchange_transfers_account;
create unique index exchange_transfers_sequence on exchange_transfers (workspace_id, sub_account_id, sequence_id)
  where sequence_id is not null;
create unique index exchange_transfers_venue on exchange_transfers (workspace_id, account_id, direction, venue_id)
  where venue_id is not null;
create index exchange_transfers_list on exchange_transfers (workspace_id, sub_account_id, created_at desc, id desc);
create index exchange_transfers_account on exchange_transfers (workspace_id, account_id) where state not in ('DONE', 'FAILED');

alter table conversions drop constraint conversions_pkey, drop constraint conversions_order_id_key;
drop index conversions_sequence;
alter table conversions add constraint conversions_order unique (workspace_id, order_id);
create unique index conversions_sequence on conversions (workspace_id, sub_account_id, sequence_id) where sequence_id is not null;

-- Primary keys after all other indexes, as in 026_workspace_keys.sql: a look at one row by its id is by them then.
alter table orders add primary key (workspace_id, id);
alter table order_fills add primary key (workspace_id, account_id, market, trade_id);
alter table exchange_transfers add primary key (workspace_id, id);
alter table conversions add primary key (workspace_id, id);

-- Who names a row names its workspace.
alter table orders
  add constraint orders_sub_account foreign key (workspace_id, sub_account_id) references sub_accounts (workspace_id, id),
  add constraint orders_of foreign key (workspace_id, account_id) references exchange_accounts (workspace_id, id);
alter table order_fills
  add constraint order_fills_of foreign key (workspace_id, order_id) references orders,
  add constraint order_fills_at foreign key (workspace_id, account_id) references exchange_accounts (workspace_id, id);
alter table exchange_transfers
  add constraint exchange_transfers_sub_account foreign key (workspace_id, sub_account_id) references sub_accounts (workspace_id, id),
  add constraint exchange_transfers_at foreign key (workspace_id, account_id) references exchange_accounts (workspace_id, id);
alter table conversions
  add constraint conversions_sub_account foreign key (workspace_id, sub_account_id) references sub_accounts (workspace_id, id),
  add constraint conversions_at foreign key (workspace_id, account_id) references exchange_accounts (workspace_id, id),
  add constraint conversions_of foreign key (workspace_id, order_id) references orders;
