-- Tron's Stake 2.0: one row for each unstake that is final, as the chain keeps it.

create table cooldowns (
  transaction_id uuid primary key references transactions,
  -- Null: a gas tank's.
  wallet_id uuid references wallets,
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
create index cooldowns_open on cooldowns (network, account, release_at) where released_by is null;
