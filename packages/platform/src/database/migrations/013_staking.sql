-- Tron's Stake 2.0: stakes, their cooldown, and what is taken back.

alter table transactions drop constraint transactions_kind_check;
alter table transactions add constraint transactions_kind_check check (kind in ('WITHDRAWAL', 'DEPOSIT', 'SWEEP', 'FUEL', 'TANK_DEPOSIT', 'DRAIN', 'STAKE', 'UNSTAKE', 'RELEASE'));

-- Stake by the address that has its resource, and what an unstake under way has taken of it; cooling: unstaked, and not
-- yet released, by the same address. All of it stands on the chain in the name of the wallet's own account.
alter table ledger_accounts drop constraint ledger_accounts_kind_check;
alter table ledger_accounts add constraint ledger_accounts_kind_check check (kind in ('available', 'reserved', 'unswept', 'frozen', 'tank', 'tank_reserved', 'float', 'float_reserved', 'suspense', 'prepaid', 'prepaid_reserved', 'fees', 'chain',
  'staked_energy', 'staked_bandwidth', 'staked_energy_reserved', 'staked_bandwidth_reserved', 'cooling'));

-- Which of its calls a chain transaction of a stake is, and the unstaked TRX that came back with it.
alter table chain_transactions add column step text check (step in ('freeze', 'delegate', 'undelegate', 'unfreeze', 'withdraw'));
alter table chain_transactions add column withdrawn numeric(78, 0);

-- One row for each unstake that is final, as the chain keeps it.
create table cooldowns (
  transaction_id uuid primary key references transactions,
  wallet_id uuid not null references wallets,
  network text not null,
  -- The account whose stake it was on the chain, and who had its resource.
  account text not null,
  address text not null,
  resource text not null check (resource in ('ENERGY', 'BANDWIDTH')),
  amount numeric(78, 0) not null check (amount > 0),
  -- By the time of the chain's blocks.
  release_at timestamptz not null,
  -- The release under way that the caller has asked for.
  releasing_by uuid references transactions,
  released_by uuid references transactions,
  -- When `staking.releasable` told of it.
  told_at timestamptz
);
create index cooldowns_open on cooldowns (wallet_id, release_at) where released_by is null;
-- A second unstake counts those of its account that are under way.
create index transactions_staking on transactions (wallet_id) where kind in ('STAKE', 'UNSTAKE', 'RELEASE') and status = 'pending';
