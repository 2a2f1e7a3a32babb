-- What a deposit is: what a transaction pays to an address, and not where that stands in a block, which a
-- reorganisation changes. Equal payments of one transaction are told apart by their number among each other.
-- Deposits of before are found by the same content wherever a block now shows them, so that none is credited again.

alter table deposits add column asset text, add column amount numeric(78, 0), add column tag text, add column occurrence integer;
update deposits d set asset = t.asset, amount = t.amount, tag = t.address_tag from transactions t where t.id = d.transaction_id;
update deposits d set occurrence = n.occurrence from (
  select transaction_id, row_number() over (partition by network, txid, address, asset, amount, tag order by position) - 1 occurrence from deposits
) n where n.transaction_id = d.transaction_id;
alter table deposits alter column asset set not null, alter column amount set not null, alter column occurrence set not null;
alter table deposits drop constraint deposits_network_txid_position_key;
create unique index deposits_identity on deposits (network, txid, address, asset, amount, tag, occurrence) nulls not distinct;
