-- Statements of reserves: what the chains held and what was owed at one moment. Rows are only ever
-- added: functions/only_added.sql.
create table if not exists reserve_snapshots (
  id uuid primary key,
  created_at timestamptz not null,
  -- The exact bytes that the nodes signed, and the list of addresses that they bind.
  statement text not null,
  holdings text not null,
  -- SHA-256 of the statement, hex.
  hash text not null unique,
  signatures jsonb not null,
  -- Of which the secret of each sub-account is made; sealed.
  secret bytea not null
);
create index if not exists reserve_snapshots_time on reserve_snapshots (created_at desc, id);

-- The leaves of each asset's tree, in the order in which they stand there.
create table if not exists reserve_leaves (
  snapshot_id uuid not null references reserve_snapshots,
  asset text not null,
  place integer not null check (place >= 0),
  -- Null: a workspace's suspense, whose owner is not known yet.
  sub_account_id uuid references sub_accounts,
  hash bytea not null,
  nonce bytea not null,
  balance numeric(78, 0) not null check (balance >= 0),
  primary key (snapshot_id, asset, place)
);
create unique index if not exists reserve_leaves_owner on reserve_leaves (snapshot_id, sub_account_id, asset)
  where sub_account_id is not null;
