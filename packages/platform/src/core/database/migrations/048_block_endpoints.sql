-- The endpoint that returned a block, if several must agree: if a quorum returns other content of the
-- same block, this endpoint is named.
alter table blocks add column endpoint text;
-- Since when a quorum of endpoints returns the deposit's block without the deposit; null: it does not.
alter table deposits add column refuted_at timestamptz;
