-- How many rows the long lists hold, by what they may be asked for: GET answers `total` and goes to
-- a deep page without reading the rows before it. Triggers (functions/count_*.sql) add what
-- changes, each a row of its own, so that no two writers wait for each other; a worker folds them
-- (functions/fold_list_counts.sql). What is true is the sum of both.

-- `owner`: whose list. `level`: 0 all of it, 1 by day, 2 by hour (UTC) of creation. `dims`: the
-- columns that it can be asked by.
create table if not exists list_counts (
  list text not null,
  owner uuid not null,
  level smallint not null check (level between 0 and 2),
  bucket timestamptz not null,
  dims jsonb not null,
  n bigint not null,
  primary key (list, owner, level, bucket, dims)
);
create table if not exists list_deltas (
  id bigint generated always as identity primary key,
  list text not null,
  owner uuid not null,
  -- The hour of creation.
  bucket timestamptz not null,
  dims jsonb not null,
  n bigint not null
);
create index if not exists list_deltas_list on list_deltas (list, owner);

-- Nothing is written between what is counted here and the triggers, which come in the same
-- transaction.
lock table transactions, invoices, orders, exchange_transfers, webhook_deliveries in share row exclusive mode;
insert into list_deltas (list, owner, bucket, dims, n)
  select 'transactions', sub_account_id, date_trunc('hour', created_at, 'UTC'), jsonb_build_object('kind', kind, 'asset', asset,
    'status', status, 'source_type', source_type, 'destination_type', destination_type), count(*)
  from transactions where sub_account_id is not null group by 2, 3, 4
  union all
  select 'invoices', sub_account_id, date_trunc('hour', created_at, 'UTC'),
    jsonb_build_object('status', status, 'exception', exception), count(*)
  from invoices group by 2, 3, 4
  union all
  select 'orders', sub_account_id, date_trunc('hour', created_at, 'UTC'), jsonb_build_object('account_id', account_id::text,
    'exchange', exchange, 'market', market, 'side', side, 'type', type, 'status', status), count(*)
  from orders group by 2, 3, 4
  union all
  select 'exchange_transfers', sub_account_id, date_trunc('hour', created_at, 'UTC'), jsonb_build_object('account_id', account_id::text,
    'asset', asset, 'direction', direction, 'status', status), count(*)
  from exchange_transfers group by 2, 3, 4
  union all
  select 'webhook_deliveries', webhook_id, date_trunc('hour', created_at, 'UTC'),
    jsonb_build_object('status', status, 'type', type), count(*)
  from webhook_deliveries group by 2, 3, 4;

-- A wallet's history, and what else one transaction after the other would be looked through for.
create index if not exists transactions_wallet_list on transactions (sub_account_id, asset, created_at desc, id desc);
create index if not exists transactions_source on transactions (sub_account_id, lower(source_id), created_at desc, id desc)
  where source_id is not null;
create index if not exists transactions_destination on transactions (sub_account_id, lower(destination_id), created_at desc, id desc)
  where destination_id is not null;
create index if not exists transactions_memo on transactions (sub_account_id, memo, created_at desc, id desc) where memo is not null;
-- What is seldom among the others: hours of them would have to be read to fill a page.
create index if not exists transactions_failed on transactions (sub_account_id, created_at desc, id desc) where status = 'failed';
create index if not exists transactions_pending on transactions (sub_account_id, created_at desc, id desc) where status = 'pending';
create index if not exists transactions_seldom on transactions (sub_account_id, kind, created_at desc, id desc)
  where kind in ('STAKE', 'UNSTAKE', 'RELEASE', 'DRAIN', 'LEND', 'LEND_BACK');

-- Coins that no block holds yet, which the scan of a block looks for.
create index if not exists utxos_unplaced on utxos (network, txid) where block_height is null;

-- The order of an account's transactions, replacements too, and those of it that nobody has signed
-- yet.
create index if not exists chain_transactions_account on chain_transactions (network, account, nonce) where account is not null;
create index if not exists chain_transactions_unsigned on chain_transactions (network, account, nonce) where state = 'BUILT';
-- Rules whose time is over, or whose making was never finished.
create index if not exists forward_rules_expiring on forward_rules (expires_at) where state in ('ACTIVE', 'PAUSED');
create index if not exists forward_rules_unfinished on forward_rules (created_at) where state = 'PENDING';
-- Whether a tank was ever paid into, which is asked of all tanks every second.
create index if not exists transactions_tank_deposits on transactions (workspace_id, network) where kind = 'TANK_DEPOSIT';
