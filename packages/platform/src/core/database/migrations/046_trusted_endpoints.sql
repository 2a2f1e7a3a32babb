-- Until when the operator trusts endpoints of a network although their newest block seems to be old
-- (core/engine/endpoints/belief.ts).
alter table network_scans add column trusted_until timestamptz;
