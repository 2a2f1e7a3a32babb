-- Screening of counterparties: settings and frozen addresses of each sub-account, and what is held
-- by them.

create table aml_settings (
  sub_account_id uuid primary key references sub_accounts,
  provider text not null check (provider in ('CHAINALYSIS', 'ELLIPTIC', 'TRM')),
  -- AES-256-GCM under the installation's secrets key, bound to the sub-account.
  sealed_token bytea not null,
  risk_levels text[] not null,
  screen_deposits boolean not null,
  screen_withdrawals boolean not null,
  updated_at timestamptz not null default now()
);

-- One row per freeze event. `space` is where an address means the same party: `evm` for every EVM
-- chain, else the network.
create table frozen_addresses (
  id uuid primary key,
  workspace_id uuid not null references workspaces,
  sub_account_id uuid not null references sub_accounts,
  space text not null,
  address_key text not null,
  address text not null,
  address_tag text,
  asset text not null,
  -- The provider, or OFAC.
  source text not null,
  risk_level text not null,
  transaction_id uuid not null references transactions,
  frozen_at timestamptz not null,
  unfrozen_at timestamptz,
  unfrozen_by uuid references api_users
);
create unique index frozen_addresses_active on frozen_addresses (sub_account_id, space, address_key) where unfrozen_at is null;
-- Screening asks when an address was last frozen, also where it is frozen no more.
create index frozen_addresses_key on frozen_addresses (sub_account_id, space, address_key);

-- What a freeze event holds. Released once, when the address is unfrozen; a transaction goes on
-- when nothing holds it.
create table aml_holds (
  transaction_id uuid not null references transactions,
  freeze_id uuid not null references frozen_addresses,
  held_at timestamptz not null,
  released_at timestamptz,
  primary key (transaction_id, freeze_id)
);
create index aml_holds_freeze on aml_holds (freeze_id) where released_at is null;

-- Every answer of a provider, as evidence. `risk_level` null: the provider knows nothing against
-- the address.
create table aml_screenings (
  id bigint generated always as identity primary key,
  transaction_id uuid not null references transactions,
  provider text not null,
  address_key text not null,
  risk_level text,
  screened_at timestamptz not null
);
create index aml_screenings_transaction on aml_screenings (transaction_id);
