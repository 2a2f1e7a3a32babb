-- Wallets and the addresses whose keys are ours.

create table wallets (
  id uuid primary key default gen_random_uuid(),
  workspace_id uuid not null references workspaces,
  sub_account_id uuid not null references sub_accounts,
  asset text not null,
  network text not null,
  status text not null default 'active' check (status in ('active', 'inactive')),
  created_at timestamptz not null default now(),
  unique (sub_account_id, asset)
);

-- What the operator made of a wallet, and when. Rows are only ever added: functions/only_added.sql.
create table wallet_status_changes (
  id bigint generated always as identity primary key,
  wallet_id uuid not null references wallets,
  status text not null check (status in ('active', 'inactive')),
  reason text,
  changed_at timestamptz not null
);
create index wallet_status_changes_wallet on wallet_status_changes (wallet_id, id);

-- Every address whose key is ours, once per network.
create table chain_addresses (
  network text not null,
  address text not null,
  workspace_id uuid not null references workspaces,
  sub_account_id uuid references sub_accounts,
  path_index integer not null,
  kind text not null check (kind in ('omnibus', 'deposit', 'change', 'tank')),
  created_at timestamptz not null default now(),
  primary key (network, address)
);
create unique index chain_addresses_path on chain_addresses (network, workspace_id, sub_account_id, path_index) nulls not distinct;

-- Addresses as listed: an omnibus address of an account-based chain serves several wallets, and on
-- networks with tags (destination tags, memos) one address serves a sub-account, with a tag for
-- each deposit address.
create table wallet_addresses (
  id uuid primary key default gen_random_uuid(),
  wallet_id uuid not null references wallets,
  network text not null,
  address text not null,
  address_tag text,
  label text,
  -- A wallet's omnibus address is listed from the start; the first POST /address hands it out.
  handed_out boolean not null default true,
  created_at timestamptz not null default now(),
  foreign key (network, address) references chain_addresses (network, address)
);
create unique index wallet_addresses_place on wallet_addresses (wallet_id, address, address_tag) nulls not distinct;
create unique index wallet_addresses_tag on wallet_addresses (network, address, address_tag) where address_tag is not null;
