-- How often a request under an idempotency key was refused, and how last: another that was under
-- way with the same key meanwhile is refused too when it comes to its commit. Forgotten when none
-- can be under way any more.
create table if not exists refused_keys (
  sub_account_id uuid not null references sub_accounts,
  -- Whose keys: orders, conversions, ...
  scope text not null,
  name text not null,
  payload_hash text not null,
  refusals integer not null default 1,
  -- {code, message, field, details}
  refusal jsonb not null,
  refused_at timestamptz not null,
  primary key (sub_account_id, scope, name, payload_hash)
);
create index if not exists refused_keys_forgotten on refused_keys (refused_at);
-- What its caller was answered; null: it was ordered before this was kept, or is only quoted.
alter table conversions add column if not exists response text;
