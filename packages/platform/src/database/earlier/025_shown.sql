-- When a transaction was first shown to a signer node. Until then nothing can be signed of it, and
-- it may take another place in its account's order.
alter table chain_transactions add column shown_at timestamptz;
-- On networks where a signed transaction can die, what waits may have been shown before this was
-- written down.
update chain_transactions set shown_at = 'epoch' where state = 'BUILT' and network in ('XRP', 'XLM');
