-- Accounts at exchanges, and orders there. Amounts, prices and fees at venues are integers of 18
-- decimals, of whatever coin.

-- A venue owes what a claim says: no coins are behind it. venue: by the account at the exchange
-- (`address`); venue_outside: the other parties of trades and payments at the venue; venue_fees: what
-- the venue took. Their assets are named venue:COIN, since the same coin on a chain has other
-- decimals.
alter table ledger_accounts drop constraint if exists ledger_accounts_kind_check;
alter table ledger_accounts add constraint ledger_accounts_kind_check check (kind in (
  'available', 'reserved', 'unswept', 'frozen', 'tank', 'tank_reserved', 'float', 'float_reserved', 'suspense',
  'prepaid', 'prepaid_reserved', 'fees', 'chain',
  'staked_energy', 'staked_bandwidth', 'staked_energy_reserved', 'staked_bandwidth_reserved', 'cooling',
  'venue', 'venue_outside', 'venue_fees'));
-- A claim below zero is a difference from the venue, which is told; nothing is refused for it that
-- the venue has done already.
alter table ledger_accounts drop constraint if exists ledger_not_negative;
alter table ledger_accounts add constraint ledger_not_negative check (
  balance >= 0 or overdrawn or kind in ('chain', 'fees', 'venue', 'venue_outside', 'venue_fees'));

create table if not exists exchange_accounts (
  id uuid primary key,
  workspace_id uuid not null references workspaces,
  sub_account_id uuid not null references sub_accounts,
  -- ccxt's name.
  exchange text not null,
  label text not null,
  -- failing: the venue refused the key when it was last asked.
  status text not null default 'active' check (status in ('active', 'failing', 'deleted')),
  reason text,
  -- Null once it is deleted.
  sealed_credentials bytea,
  -- Grows with each new key.
  credentials_version integer not null default 1,
  -- By which a key is known again, and its last characters.
  key_hash text not null,
  key_hint text not null,
  allow_withdrawal boolean not null,
  -- {trade, withdraw, ip_restricted}: null where the venue does not tell.
  permissions jsonb not null,
  checked_at timestamptz not null,
  -- When the venue's balances were last read; and what the last comparison with the books found.
  balances_at timestamptz not null,
  difference jsonb not null default '[]',
  -- What one comparison found and the next must find again.
  suspected jsonb not null default '[]',
  reconcile_at timestamptz,
  lease_until timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create unique index if not exists exchange_accounts_key on exchange_accounts (workspace_id, exchange, key_hash) where status <> 'deleted';
create index if not exists exchange_accounts_list on exchange_accounts (sub_account_id, created_at desc, id desc);
create index if not exists exchange_accounts_due on exchange_accounts (reconcile_at) where reconcile_at is not null;

create table if not exists exchange_balances (
  account_id uuid not null references exchange_accounts,
  coin text not null,
  available numeric(78, 0) not null,
  total numeric(78, 0) not null,
  primary key (account_id, coin)
);

-- The last number of each key whose requests carry one that must rise, and whose turn it is.
create table if not exists exchange_nonces (
  key_hash text primary key,
  last bigint not null,
  holder text,
  held_until timestamptz
);

create table if not exists orders (
  id uuid primary key,
  workspace_id uuid not null references workspaces,
  sub_account_id uuid not null references sub_accounts,
  account_id uuid not null references exchange_accounts,
  exchange text not null,
  market text not null,
  base text not null,
  quote text not null,
  side text not null check (side in ('buy', 'sell')),
  type text not null check (type in ('market', 'limit')),
  -- In the base coin, on the market's grid; quote_amount: what was asked for in its place.
  amount numeric(78, 0) not null check (amount > 0),
  quote_amount numeric(78, 0),
  -- The limit with which it is sent; of a market order its protection.
  price numeric(78, 0) not null check (price > 0),
  time_in_force text not null check (time_in_force in ('GTC', 'IOC', 'FOK')),
  post_only boolean not null,
  max_slippage_bps integer,
  -- By which the venue knows it, made of its id.
  client_id text not null unique,
  venue_id text,
  -- NEW, SENDING (written before the call), ASKING (the answer was lost), WORKING (the venue has
  -- it), ENDED.
  state text not null default 'NEW' check (state in ('NEW', 'SENDING', 'ASKING', 'WORKING', 'ENDED')),
  status text not null default 'open' check (status in ('open', 'partially_filled', 'filled', 'cancelled', 'rejected', 'unknown')),
  reason text,
  last_error text,
  filled numeric(78, 0) not null default 0,
  cost numeric(78, 0) not null default 0,
  -- What the venue took, by coin.
  fees jsonb not null default '{}',
  -- Millionths of a USD: reserved, charged of it, and the value from which it follows.
  platform_fee numeric(78, 0) not null,
  fee_charged numeric(78, 0),
  amount_usd numeric(78, 0),
  cancel_requested_at timestamptz,
  sent_at timestamptz,
  -- It was seen to have ended with so much filled: that must be seen twice.
  final_seen numeric(78, 0),
  alerted_at timestamptz,
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
create unique index if not exists orders_sequence on orders (sub_account_id, sequence_id) where sequence_id is not null;
create index if not exists orders_list on orders (sub_account_id, created_at desc, id desc);
create index if not exists orders_account on orders (account_id) where state <> 'ENDED';
create index if not exists orders_due on orders (next_run_at) where next_run_at is not null;

-- A venue may tell a fill twice: it is one row, and one entry of the ledger.
create table if not exists order_fills (
  account_id uuid not null references exchange_accounts,
  market text not null,
  trade_id text not null,
  order_id uuid not null references orders,
  price numeric(78, 0) not null,
  amount numeric(78, 0) not null,
  cost numeric(78, 0) not null,
  fee numeric(78, 0) not null,
  fee_coin text not null,
  maker boolean,
  at timestamptz not null,
  created_at timestamptz not null,
  primary key (account_id, market, trade_id)
);
create index if not exists order_fills_order on order_fills (order_id, at);
