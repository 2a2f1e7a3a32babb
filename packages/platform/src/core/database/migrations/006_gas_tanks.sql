-- Each workspace's reserve of a network's native coin, which pays network fees.

create table gas_tanks (
  id uuid primary key default gen_random_uuid(),
  workspace_id uuid not null references workspaces,
  network text not null,
  address text not null,
  threshold numeric(78, 0) not null,
  -- What it may pay for one transaction, and up to which gas price; null: the network's own cap
  -- alone.
  fee_cap numeric(78, 0) check (fee_cap > 0),
  max_gas_price numeric(78, 0) check (max_gas_price > 0),
  -- The last status that an event told of.
  status text not null default 'ok' check (status in ('ok', 'low', 'empty')),
  -- Local chains only: what a new tank is filled with on its first use.
  first_fill numeric(78, 0) not null default 0,
  first_fill_hash text,
  created_at timestamptz not null default now(),
  unique (workspace_id, network)
);
