-- At most one sweep of an address and asset is under way.
create unique index transactions_sweep on transactions (network, source_id, asset) where kind = 'SWEEP' and status = 'pending';
create index transactions_network_state on transactions (network, state) where status = 'pending';
create index deposits_txid on deposits (network, txid);
