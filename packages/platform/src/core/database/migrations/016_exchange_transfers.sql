-- Coins on their way between wallets and exchanges.

-- The address at an exchange that coins of an asset last went to: another one is sent to only where
-- the caller names it.
create table if not exists exchange_addresses (
  account_id uuid not null references exchange_accounts,
  asset text not null,
  address text not null,
  address_tag text,
  updated_at timestamptz not null,
  primary key (account_id, asset)
);

create table if not exists exchange_transfers (
  id uuid primary key,
  workspace_id uuid not null references workspaces,
  sub_account_id uuid not null references sub_accounts,
  account_id uuid not null references exchange_accounts,
  exchange text not null,
  direction text not null check (direction in ('to_exchange', 'from_exchange')),
  asset text not null,
  network text not null,
  -- The exchange's name of the coin.
  coin text not null,
  -- What was asked for, in units of 18 decimals; and what the exchange credited, or took for it.
  amount numeric(78, 0) not null check (amount > 0),
  credited numeric(78, 0),
  fee numeric(78, 0),
  -- Where the coins go: at the exchange, or the wallet's own.
  address text not null,
  address_tag text,
  -- Of a withdrawal: the name under which the exchange knows the address, where it wants one; ours
  -- for the request; its own.
  venue_key text,
  client_id text unique,
  venue_id text,
  -- The transfer that brings them, or the deposit that they arrive as.
  transaction_id uuid references transactions,
  hash text,
  -- NEW, SENDING (written before the call), ASKING (the answer was lost), WITHDRAWING (the exchange
  -- has it), MOVING (on the chain, or about to be), DONE, FAILED.
  state text not null check (state in ('NEW', 'SENDING', 'ASKING', 'WITHDRAWING', 'MOVING', 'DONE', 'FAILED')),
  status text not null default 'pending' check (status in ('pending', 'completed', 'failed', 'unknown')),
  reason text,
  last_error text,
  sent_at timestamptz,
  -- It takes longer than it should, and somebody was told.
  overdue_at timestamptz,
  sequence_id text,
  payload_hash text,
  response text not null,
  version integer not null default 1,
  attempts integer not null default 0,
  next_run_at timestamptz,
  lease_until timestamptz,
  lease_token uuid,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create unique index if not exists exchange_transfers_sequence on exchange_transfers (sub_account_id, sequence_id)
  where sequence_id is not null;
create unique index if not exists exchange_transfers_transaction on exchange_transfers (transaction_id)
  where transaction_id is not null;
-- One withdrawal of the exchange's is one of ours.
create unique index if not exists exchange_transfers_venue on exchange_transfers (account_id, direction, venue_id)
  where venue_id is not null;
create index if not exists exchange_transfers_list on exchange_transfers (sub_account_id, created_at desc, id desc);
create index if not exists exchange_transfers_account on exchange_transfers (account_id) where state not in ('DONE', 'FAILED');
create index if not exists exchange_transfers_due on exchange_transfers (next_run_at) where next_run_at is not null;
