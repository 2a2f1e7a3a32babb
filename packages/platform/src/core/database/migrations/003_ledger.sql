-- Double entry. Every entry sums to zero per asset, checked as it is posted; an entry is posted
-- once per (kind, reference).

-- Of a wallet: available, reserved, unswept (by address); frozen: deposits that are held, on the
-- chain and ours, and nobody's to spend; staked_* by the address that has the resource,
-- staked_*_reserved what an unstake under way has taken of it, cooling what is unstaked and not yet
-- released: all of these stand on the chain in the name of the wallet's own account. Of a
-- workspace: tank, tank_reserved, float and float_reserved (by address), suspense (by address),
-- prepaid, prepaid_reserved, fees. chain: the outside world, the negative of all we hold.
create table ledger_accounts (
  id bigint generated always as identity primary key,
  workspace_id uuid not null references workspaces,
  wallet_id uuid references wallets,
  asset text not null,
  kind text not null check (kind in (
    'available', 'reserved', 'unswept', 'frozen', 'tank', 'tank_reserved', 'float', 'float_reserved', 'suspense',
    'prepaid', 'prepaid_reserved', 'fees', 'chain',
    'staked_energy', 'staked_bandwidth', 'staked_energy_reserved', 'staked_bandwidth_reserved', 'cooling')),
  address text,
  balance numeric(78, 0) not null default 0,
  -- Only a deposit that a reorganisation takes back may leave an account below zero.
  overdrawn boolean not null default false,
  constraint ledger_not_negative check (balance >= 0 or overdrawn or kind in ('chain', 'fees'))
);
create unique index ledger_accounts_key on ledger_accounts (workspace_id, wallet_id, asset, kind, address) nulls not distinct;
create index ledger_accounts_address on ledger_accounts (address) where address is not null;

create table ledger_entries (
  id bigint generated always as identity primary key,
  kind text not null,
  reference text not null,
  created_at timestamptz not null default now(),
  unique (kind, reference)
);

create table ledger_postings (
  entry_id bigint not null references ledger_entries,
  account_id bigint not null references ledger_accounts,
  amount numeric(78, 0) not null,
  primary key (entry_id, account_id)
);
create index ledger_postings_account on ledger_postings (account_id);
