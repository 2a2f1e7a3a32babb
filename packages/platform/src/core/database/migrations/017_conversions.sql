-- What a conversion would be, and the order that it became.
create table if not exists conversions (
  id uuid primary key,
  workspace_id uuid not null references workspaces,
  sub_account_id uuid not null references sub_accounts,
  account_id uuid not null references exchange_accounts,
  exchange text not null,
  market text not null,
  side text not null check (side in ('buy', 'sell')),
  from_coin text not null,
  to_coin text not null,
  -- Units of 18 decimals: what was asked to be given; what the order is of and its limit; what
  -- comes of it, after the exchange's fee.
  given numeric(78, 0) not null check (given > 0),
  amount numeric(78, 0) not null check (amount > 0),
  price numeric(78, 0) not null check (price > 0),
  receive numeric(78, 0) not null,
  -- What other accounts would have given, or why they could not.
  others jsonb not null default '[]',
  expires_at timestamptz not null,
  -- Null until it is done.
  order_id uuid unique references orders,
  sequence_id text,
  payload_hash text,
  created_at timestamptz not null
);
create unique index if not exists conversions_sequence on conversions (sub_account_id, sequence_id) where sequence_id is not null;
create index if not exists conversions_expired on conversions (expires_at) where order_id is null;
