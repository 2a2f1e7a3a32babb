-- Transfers, deposits, sweeps, fuel: one table for what a user lists, one for what goes on a chain.

create table transactions (
  id uuid primary key,
  kind text not null check (kind in (
    'WITHDRAWAL', 'DEPOSIT', 'SWEEP', 'FUEL', 'TANK_DEPOSIT', 'DRAIN', 'STAKE', 'UNSTAKE', 'RELEASE', 'LEND', 'LEND_BACK')),
  workspace_id uuid not null references workspaces,
  sub_account_id uuid references sub_accounts,
  wallet_id uuid references wallets,
  parent_id uuid references transactions,
  asset text not null,
  network text not null,
  amount numeric(78, 0) not null check (amount >= 0),
  fee numeric(78, 0) not null default 0,
  fee_asset text not null,
  -- Both in millionths of a USD; null: nothing is charged for it.
  amount_usd numeric(78, 0) check (amount_usd >= 0),
  platform_fee numeric(78, 0) check (platform_fee >= 0),
  source_type text not null,
  source_id text,
  destination_type text not null,
  destination_id text,
  address_tag text,
  memo text,
  sequence_id text,
  state text not null,
  status text not null check (status in ('pending', 'confirmed', 'failed')),
  failure_reason text,
  -- Why the last attempt made no progress; never shown as a failure.
  last_error text,
  hash text,
  confirmations integer not null default 0,
  -- The caller's signed request, raw: {api_key, token, method, uri, body}; and the nodes' receipts.
  request jsonb,
  receipts jsonb not null default '[]',
  -- The nodes' signed voids of a transaction that failed before it was paid: shown to its caller,
  -- who verifies them.
  voids jsonb not null default '[]',
  -- What the worker decided and must not decide again differently: fee plan, reservations.
  plan jsonb not null default '{}',
  fee_rate text,
  fee_level text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  confirmed_at timestamptz,
  next_run_at timestamptz,
  lease_until timestamptz,
  lease_token uuid,
  attempts integer not null default 0
);
create index transactions_work on transactions (next_run_at) where next_run_at is not null;
create index transactions_list on transactions (sub_account_id, created_at desc, id desc);
create index transactions_hash on transactions (hash) where hash is not null;
create index transactions_parent on transactions (parent_id) where parent_id is not null;
create index transactions_network_state on transactions (network, state) where status = 'pending';
-- GET /dac/v1/transactions?sequence_id=
create index transactions_sequence on transactions (sub_account_id, sequence_id) where sequence_id is not null;
-- At most one sweep of an address and asset is under way. Adopted ones are booked side by side; a
-- new one waits for all.
create unique index transactions_sweep on transactions (network, source_id, asset)
  where kind = 'SWEEP' and status = 'pending' and not plan ? 'adopted';
-- A sweep of one address and asset happens once at a height of its chain; what failed moved
-- nothing.
create unique index transactions_sweep_height on transactions (network, source_id, asset, (plan->>'height'))
  where kind = 'SWEEP' and status <> 'failed';
-- A second unstake counts those of its account that are under way.
create index transactions_staking on transactions (wallet_id) where kind in ('STAKE', 'UNSTAKE', 'RELEASE') and status = 'pending';

create table idempotency (
  wallet_id uuid not null references wallets,
  sequence_id text not null,
  transaction_id uuid not null,
  payload_hash text not null,
  response text not null,
  created_at timestamptz not null default now(),
  primary key (wallet_id, sequence_id)
);

-- A signed transaction that waits can be replaced where the chain allows it: by a dearer one, or by
-- one that pays nobody.
create table replacements (
  id uuid primary key,
  transaction_id uuid not null references transactions,
  -- AUTO: by the platform itself, within what the caller's own request allows.
  kind text not null check (kind in ('SPEED_UP', 'CANCEL', 'AUTO')),
  state text not null default 'PENDING' check (state in ('PENDING', 'FUELING', 'DONE', 'REFUSED')),
  -- The caller's signed request, raw, as in transactions; and the nodes' receipts.
  request jsonb,
  receipts jsonb not null default '[]',
  fee_rate text,
  fee_level text,
  plan jsonb not null default '{}',
  reason text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index replacements_transaction on replacements (transaction_id, created_at);
create unique index replacements_open on replacements (transaction_id) where state in ('PENDING', 'FUELING');

-- Signed bytes are committed here before any broadcast.
create table chain_transactions (
  id uuid primary key,
  transaction_id uuid not null references transactions,
  network text not null,
  attempt integer not null default 1,
  -- EXPIRED: dead on its chain; it keeps its sequence until another attempt takes it over or the
  -- transfer fails. REPLACED: another attempt of the same transaction is final, so that this one
  -- can never be included.
  state text not null check (state in ('BUILT', 'SIGNED', 'INCLUDED', 'CONFIRMED', 'EXPIRED', 'REPLACED', 'VOID')),
  -- First attempt of the same transaction, whose nonce or inputs this one takes over.
  replaces uuid references chain_transactions,
  replacement_id uuid references replacements,
  -- Which of its calls a chain transaction of a stake is, and the unstaked TRX that came back with
  -- it.
  step text check (step in ('freeze', 'delegate', 'undelegate', 'unfreeze', 'withdraw')),
  withdrawn numeric(78, 0),
  account text,
  nonce bigint,
  unsigned jsonb not null,
  signed text,
  hash text,
  fee_max numeric(78, 0) not null,
  fee numeric(78, 0),
  succeeded boolean,
  -- Last ledger or second in which a transaction can be included; null: it never expires.
  valid_until bigint,
  block_height bigint,
  block_hash text,
  -- When it was first shown to a signer node. Until then nothing can be signed of it, and it may
  -- take another place in its account's order.
  shown_at timestamptz,
  broadcast_at timestamptz,
  created_at timestamptz not null default now(),
  unique (transaction_id, attempt)
);
create unique index chain_transactions_nonce on chain_transactions (network, account, nonce)
  where state <> 'VOID' and nonce is not null and replaces is null;
create unique index chain_transactions_hash on chain_transactions (network, hash) where hash is not null;
create index chain_transactions_block on chain_transactions (network, block_height) where block_height is not null;
-- Every transaction that a node signs was committed here before: one that is not found is a lost
-- commit.
create index chain_transactions_bytes on chain_transactions using hash ((unsigned->>'bytes'));

-- Each account that signs; its row is locked while a nonce is taken.
create table signing_accounts (
  network text not null,
  address text not null,
  next_nonce bigint not null default 0,
  primary key (network, address)
);
