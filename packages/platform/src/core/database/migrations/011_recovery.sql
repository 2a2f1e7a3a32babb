-- What the signer nodes have recorded, compared with what this database knows: after an older
-- backup was restored the nodes know more, and the platform adopts it.

-- How far each node's record was compared. Restored with the database, so that everything since is
-- looked at again.
create table signer_marks (
  node integer primary key,
  generation integer not null,
  height bigint not null,
  hash text not null,
  compared_at timestamptz not null
);

-- Recorded by the nodes, and not adopted: reconciling tries again, and tells of it until it is.
create table unadopted_steps (
  id text primary key,
  recorded jsonb not null,
  reason text not null,
  -- False: nothing was signed as far as anybody knows, so that nothing is missing.
  matters boolean not null,
  noted_at timestamptz not null
);
