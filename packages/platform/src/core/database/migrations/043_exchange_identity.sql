-- Identity of exchange accounts (commerce/exchanges/identity.ts): one account at an exchange counts
-- once in the installation, whichever and however many of its API keys are linked.
alter table exchange_accounts
  -- `id …`: the exchange's own account ID. `key …`: the exchange reports none, and this is the hash
  -- of the API key. Null: not read since the account was linked.
  add column venue_account text,
  -- proven: the exchange's account ID is known. unproven: the exchange reports none. duplicate:
  -- another linked account is the same account at the exchange, and this one is not counted.
  add column identity text not null default 'unread'
    check (identity in ('unread', 'proven', 'unproven', 'duplicate'));
create unique index exchange_accounts_venue_account on exchange_accounts (exchange, venue_account)
  where status <> 'deleted' and identity <> 'duplicate';
-- Duplicates, which the unique index leaves out.
create index exchange_accounts_same on exchange_accounts (exchange, venue_account)
  where status <> 'deleted' and venue_account is not null;

alter table audits
  -- Differences between the ledger and customers' accounts at exchanges, which are not part of
  -- `differences`.
  add column exchange_differences integer not null default 0;
