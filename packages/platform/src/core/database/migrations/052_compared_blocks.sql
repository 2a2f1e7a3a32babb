-- Height up to which a quorum of endpoints has returned the final blocks of a network; null: a single
-- endpoint is sufficient, or none was compared yet (custody/deposits/compare-blocks.ts).
alter table network_scans add column compared_height bigint;
