-- Orders, conversions, transfers to and from exchanges, and invoices say their workspace in every
-- key, as transfers and the books do since 026_workspace_keys.sql. What stays unique over all
-- workspaces says so here, and in docs/production/growing.md.

-- Sorting and joining many rows at once, until this is committed.
set local maintenance_work_mem = '256MB';
set local work_mem = '128MB';

-- Recreates the references between these tables, whatever their names are.
do $$
declare
  reference record;
  keyed regclass[] := array['orders', 'order_fills', 'conversions', 'exchange_transfers', 'invoices', 'invoice_offers', 'invoice_mempool'];
begin
  for reference in select conrelid::regclass as of_table, conname from pg_constraint where contype = 'f' and (confrelid = any(keyed)
    or confrelid in ('sub_accounts'::regclass, 'exchange_accounts'::regclass) and conrelid = any(keyed)) loop
    execute format('alter table %s drop constraint %I', reference.of_table, reference.conname);
  end loop;
end $$;

-- What all that is done at an exchange refers to. Its own key stays: few rows, which every shard
-- would have.
alter table exchange_accounts add constraint exchange_accounts_of unique (workspace_id, id);

-- Rows are written without the constraints that are recreated.
alter table order_fills drop constraint order_fills_pkey;
drop index order_fills_order;
alter table order_fills add column workspace_id uuid;
update order_fills f set workspace_id = o.workspace_id from orders o where o.id = f.order_id;
alter table order_fills alter column workspace_id set not null;
create index order_fills_order on order_fills (workspace_id, order_id, at);

-- By orders.client_id and exchange_transfers.client_id an exchange knows what it was asked for,
-- whosever it is: they stay unique over all workspaces.
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

-- A payer knows an invoice by its id alone, whosever it is. As an expression, so that no look at a
-- workspace's own is ever planned with it: such looks use the primary key.
alter table invoices drop constraint invoices_pkey;
drop index invoices_sequence, invoices_list, invoices_order, invoices_open;
create unique index invoices_public on invoices (lower(id));
create unique index invoices_sequence on invoices (workspace_id, sub_account_id, sequence_id) where sequence_id is not null;
create index invoices_list on invoices (workspace_id, sub_account_id, created_at desc, id desc);
create index invoices_order on invoices (workspace_id, sub_account_id, order_id) where order_id is not null;
create index invoices_open on invoices (workspace_id, id) where status in ('Pending', 'Processing');

-- What a payer is shown is one invoice's: invoice_offers_place stays over all workspaces.
alter table invoice_offers drop constraint invoice_offers_pkey;

alter table invoice_mempool drop constraint invoice_mempool_pkey;
drop index invoice_mempool_invoice, invoice_mempool_waiting;
create index invoice_mempool_invoice on invoice_mempool (workspace_id, invoice_id);
create index invoice_mempool_waiting on invoice_mempool (network, txid) where waiting;

-- Primary keys after all other indexes, as in 026_workspace_keys.sql: a look at one row by its id
-- is by them then.
alter table orders add primary key (workspace_id, id);
alter table order_fills add primary key (workspace_id, account_id, market, trade_id);
alter table exchange_transfers add primary key (workspace_id, id);
alter table conversions add primary key (workspace_id, id);
alter table invoices add primary key (workspace_id, id);
alter table invoice_offers add primary key (workspace_id, invoice_id, asset);
alter table invoice_mempool add primary key (workspace_id, network, txid, invoice_id);

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
alter table invoices
  add constraint invoices_sub_account foreign key (workspace_id, sub_account_id) references sub_accounts (workspace_id, id);
alter table invoice_offers
  add constraint invoice_offers_of foreign key (workspace_id, invoice_id) references invoices;
alter table invoice_mempool add constraint invoice_mempool_of foreign key (workspace_id, invoice_id) references invoices;
alter table invoice_payments add constraint invoice_payments_for foreign key (workspace_id, invoice_id) references invoices;
alter table invoice_refunds add constraint invoice_refunds_for foreign key (workspace_id, invoice_id) references invoices;
