-- What rides on a coin of Cardano beside its lovelace: native tokens and a reference script. Null: nothing.
alter table utxos add column riders jsonb;
