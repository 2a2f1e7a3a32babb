-- The transfers that one fuel pays for, and what the nodes are told that each may cost: as many as
-- come while it waits.
create table if not exists fuel_parts (
  fuel_id uuid not null references transactions,
  transaction_id uuid not null references transactions,
  gas numeric(78, 0) not null,
  max_fee_per_gas numeric(78, 0) not null,
  l1_fee numeric(78, 0) not null,
  -- What the fuel brings for it, in the smallest native unit.
  amount numeric(78, 0) not null check (amount > 0),
  primary key (fuel_id, transaction_id)
);
create index if not exists fuel_parts_transaction on fuel_parts (transaction_id);
-- Fuel of an address that waits or is under way.
create index if not exists transactions_fuel on transactions (network, destination_id) where kind = 'FUEL' and status = 'pending';
-- What waits in a wallet for coins: the next of them is woken when change comes.
create index if not exists transactions_wallet_queue on transactions (wallet_id, created_at, id)
  where state = 'QUEUED' and status = 'pending';
