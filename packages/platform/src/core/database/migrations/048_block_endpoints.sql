-- The endpoint that returned a block, if several must agree: if a quorum returns other content of the
-- same block, this endpoint is named.
alter table blocks add column endpoint text;
