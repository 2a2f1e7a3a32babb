-- What the signer nodes have recorded, compared with what this database knows: after an older backup was restored the
-- nodes know more, and the platform adopts it.

-- How far each node's record was compared. Restored with the database, so that everything since is looked at again.
create table signer_marks (
  node integer primary key,
  generation integer not null,
  height bigint not null,
  hash text not null,
  compared_at timestamptz not null
);
-- Every transaction that a node signs was committed here before: one that is not found is a lost commit.
create index chain_transactions_bytes on chain_transactions using hash ((unsigned->>'bytes'));

-- Recorded by the nodes, and not adopted: reconciling tries again, and tells of it until it is.
create table unadopted_steps (
  id text primary key,
  recorded jsonb not null,
  reason text not null,
  -- False: nothing was signed as far as anybody knows, so that nothing is missing.
  matters boolean not null,
  noted_at timestamptz not null
);

-- From where a network is scanned again while addresses are being found; null: no search is under way.
alter table network_scans add column rescan_from bigint;

-- Forwarded before the deposits that it came from were found again: they wait no more.
alter table forward_rules add column ahead numeric(78, 0) not null default 0 check (ahead >= 0);

-- Adopted sweeps of one address are booked side by side; a new one still waits for all of them.
drop index transactions_sweep;
create unique index transactions_sweep on transactions (network, source_id, asset) where kind = 'SWEEP' and status = 'pending' and not plan ? 'adopted';
