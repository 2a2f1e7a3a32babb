-- The nodes' reason if they persistently refuse a signed replacement while an earlier transaction of
-- the transfer waits in their mempool. Null: they do not.
alter table chain_transactions add column declined text;
