-- A deposit that an operator made of what an address holds beyond the books: the block is the one
-- by which the chain held it.
alter table deposits add column if not exists adopted boolean not null default false;
create index if not exists deposits_adopted on deposits (workspace_id, network, address, asset, block_height) where adopted;
