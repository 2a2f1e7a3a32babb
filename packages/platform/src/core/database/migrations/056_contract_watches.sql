-- How far the balances of a network's addresses are compared with the books, to find native coins that
-- contracts paid (custody/contract-payments). cursor: the last address of the round in progress.
-- round_s: duration of the last complete round. paused: workspaces whose surpluses are not credited now,
-- as [{workspace, reason}]. traced: whether an endpoint has reported what contracts pay, as claims.
create table contract_watches (
  network text primary key,
  cursor text not null default '',
  round_began_at timestamptz,
  round_s integer,
  looked_at timestamptz,
  paused jsonb not null default '[]',
  traced boolean not null default false
);

-- Transfers from one of our own addresses that are on a chain and in no transaction of this database.
create table unrecorded_transfers (
  network text not null,
  txid text not null,
  workspace_id uuid not null references workspaces,
  sender text not null,
  noted_at timestamptz not null,
  primary key (workspace_id, network, txid)
);

-- Addresses whose balances are compared most often.
create index chain_addresses_shared on chain_addresses (network, address) where kind in ('omnibus', 'tank');
