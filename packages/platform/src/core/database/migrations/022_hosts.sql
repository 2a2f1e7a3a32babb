-- Processes of the platform, on whatever hosts: what each does, and when it was last there, by its
-- own clock.
create table if not exists processes (
  id uuid primary key,
  role text not null,
  host text not null,
  started_at timestamptz not null,
  seen_at timestamptz not null
);
-- Which scanner follows a network, and until when if it does not say so again.
alter table network_scans add column if not exists holder uuid;
alter table network_scans add column if not exists held_until timestamptz;
-- What a worker holds it says again while it works on it: few rows of many.
create index if not exists transactions_leased on transactions (lease_token) where lease_token is not null;
-- Sealed at the first start: a process with another secrets key learns so when it starts, not when
-- it needs a secret.
alter table installation add column if not exists sealed_mark bytea;
-- Until then the processes of all hosts hold the database, as one of them adopts what the nodes
-- recorded.
alter table installation add column if not exists adopting_until timestamptz;
