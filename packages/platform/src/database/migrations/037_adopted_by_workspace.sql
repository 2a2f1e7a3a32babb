-- As all indexes of the large tables it begins with the workspace; with the height no other index is walked for the lowest.
drop index if exists deposits_adopted;
create index deposits_adopted on deposits (workspace_id, network, address, asset, block_height) where adopted;
