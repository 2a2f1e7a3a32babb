-- The last rescan of each network: the heights that are read again, how far it is, and what it has
-- found (deposits/rescan.ts).
create table rescans (
  network text primary key references network_scans,
  from_height bigint not null,
  to_height bigint not null,
  next_height bigint not null,
  -- Of the block below next_height, where this rescan has read it.
  last_hash text,
  found integer not null default 0,
  last_error text,
  -- Of the process that works on it; null: it has ended, or was stopped.
  token uuid,
  started_at timestamptz not null,
  updated_at timestamptz not null,
  check (from_height >= 0 and from_height <= to_height and next_height between from_height and to_height + 1)
);
