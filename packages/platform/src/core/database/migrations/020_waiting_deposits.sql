-- A new wallet looks for what came in before it: found without a walk over all that its sub-account
-- ever received.
create index if not exists transactions_waiting on transactions (sub_account_id, asset) where kind = 'DEPOSIT' and wallet_id is null;
