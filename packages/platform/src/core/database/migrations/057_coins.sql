-- What callers have set for the coins of their wallets (custody/coins). Rows refer to the output, not to
-- the row of `utxos`, which a reorganisation removes and a rescan writes again: label and freeze stay.
create table coin_settings (
  workspace_id uuid not null references workspaces,
  network text not null,
  txid text not null check (length(txid) <= 128),
  vout integer not null check (vout >= 0),
  label text check (length(label) between 1 and 200),
  -- The platform chooses no frozen coin for a transaction.
  frozen boolean not null default false,
  updated_at timestamptz not null,
  primary key (workspace_id, network, txid, vout)
);
create index coin_settings_frozen on coin_settings (workspace_id, network, txid, vout) where frozen;

-- Serves the list of a wallet's coins, the largest first, and all that utxos_wallet served.
create index utxos_largest on utxos (workspace_id, wallet_id, value desc, txid, vout) where spent_by is null;
drop index utxos_wallet;
