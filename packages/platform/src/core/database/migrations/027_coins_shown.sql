-- What has no number in its account's order, and what takes another's place, is noted as shown to
-- the nodes from now on: of what is under way, any may have been shown before.
update chain_transactions c set shown_at = 'epoch' from transactions t
  where t.id = c.transaction_id and t.status = 'pending' and c.shown_at is null and (c.nonce is null or c.replaces is not null);
