-- The network that this database belongs to, written at its first start: coins of local chains are
-- not money.
create table installation (
  one boolean primary key default true check (one),
  network text not null check (network in ('local', 'mainnet')),
  bound_at timestamptz not null default now()
);
