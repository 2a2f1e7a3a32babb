-- The scanner's position on each chain, and what it found there.

-- One row per network: the scanner's position and lease.
create table network_scans (
  network text primary key,
  height bigint,
  tip_height bigint not null default 0,
  final_height bigint not null default 0,
  -- From where a network is scanned again while addresses are being found; null: no search is under
  -- way.
  rescan_from bigint,
  genesis text,
  lease_until timestamptz,
  lease_token uuid,
  updated_at timestamptz not null default now()
);

create table blocks (
  network text not null,
  height bigint not null,
  hash text not null,
  parent text not null,
  primary key (network, height)
);

-- Where a deposit stands on its chain. A reorganisation marks it, it is never deleted.
create table deposits (
  transaction_id uuid primary key references transactions,
  network text not null,
  txid text not null,
  -- Output index (UTXO), log index (tokens), -1 for the native value of an account-based
  -- transaction.
  position integer not null,
  address text not null,
  asset text not null,
  amount numeric(78, 0) not null,
  tag text,
  -- Number among the equal payments of one transaction.
  occurrence integer not null,
  sender text,
  -- All addresses it was paid from; null until they were asked for, which is before anything is
  -- credited.
  senders jsonb,
  -- False: part of what paid has no address. Null, as `senders`: not known yet.
  senders_complete boolean,
  -- What a block pays its miner can be spent only many blocks later, and is credited then.
  coinbase boolean not null default false,
  block_height bigint,
  block_hash text
);
-- What a deposit is: what a transaction pays to an address, and not where that stands in a block,
-- which a reorganisation changes.
create unique index deposits_identity on deposits (network, txid, address, asset, amount, tag, occurrence) nulls not distinct;
create index deposits_txid on deposits (network, txid);
create index deposits_block on deposits (network, block_height);

create table utxos (
  network text not null,
  txid text not null,
  vout integer not null,
  address text not null,
  wallet_id uuid not null references wallets,
  value numeric(78, 0) not null,
  -- What rides on a coin of Cardano beside its lovelace: native tokens and a reference script.
  -- Null: nothing.
  riders jsonb,
  path_index integer not null,
  origin text not null check (origin in ('deposit', 'change')),
  -- Deposits may be spent once credited; change of our own at once.
  spendable boolean not null default false,
  -- Change of one of several attempts: nobody knows yet which of them will exist.
  contested boolean not null default false,
  block_height bigint,
  spent_by uuid references chain_transactions,
  created_at timestamptz not null default now(),
  primary key (network, txid, vout)
);
create index utxos_wallet on utxos (wallet_id) where spent_by is null;

-- What the operator lets deposit addresses keep. Scope: '*', a network's code or an asset. Null:
-- the next wider scope decides.
create table sweep_settings (
  scope text primary key,
  cost_multiple numeric check (cost_multiple >= 0),
  min_amount numeric(78, 0) check (min_amount >= 0),
  updated_at timestamptz not null default now()
);
