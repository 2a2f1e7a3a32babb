-- contradiction: a final block of which the only endpoint returns another one, as {"height", "known",
-- "other", "since"}; null: there is none. While it stands, the network credits, settles and pays nothing.
-- accepted_block: the other block that the operator has accepted, as {"height", "hash"}
-- (custody/deposits/contradiction.ts).
alter table network_scans add column contradiction jsonb, add column accepted_block jsonb;
