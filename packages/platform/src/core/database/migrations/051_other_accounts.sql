-- Tokens that an address received in another token account than its usual one. They are listed with
-- the coins that are not spent.
alter table coins_aside
  -- Ticker; null: the coin of the network.
  add column asset text,
  -- Token account that received them; null if the network has none.
  add column account text check (length(account) <= 128);
alter table coins_aside drop constraint coins_aside_reason_check;
alter table coins_aside
  add constraint coins_aside_reason_check check (reason in ('CASH_TOKENS', 'TOKEN_ACCOUNT'));
