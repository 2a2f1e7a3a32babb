-- Whose installation it is and who calls it. Amounts are numeric(78,0) in the smallest unit, here
-- and in all further files.

-- The network that this database belongs to, written at its first start: coins of local chains are
-- not money.
create table installation (
  one boolean primary key default true check (one),
  network text not null check (network in ('local', 'mainnet')),
  bound_at timestamptz not null default now()
);

create table workspaces (
  id uuid primary key default gen_random_uuid(),
  name text not null unique,
  created_at timestamptz not null default now()
);

-- The public half of a workspace key with the certificates of all three signer nodes.
create table workspace_keys (
  workspace_id uuid not null references workspaces,
  curve text not null check (curve in ('secp256k1', 'ed25519')),
  key_id text not null unique,
  public_key bytea not null,
  chain_code bytea not null,
  epoch integer not null,
  certificates jsonb not null,
  created_at timestamptz not null default now(),
  primary key (workspace_id, curve)
);

create table sub_accounts (
  id uuid primary key default gen_random_uuid(),
  workspace_id uuid not null references workspaces,
  name text not null,
  -- First element of every derivation path; 0 is the workspace's gas tanks.
  path_index integer not null check (path_index >= 1),
  created_at timestamptz not null default now(),
  unique (workspace_id, name),
  unique (workspace_id, path_index)
);

create table api_users (
  api_key uuid primary key,
  sub_account_id uuid not null references sub_accounts,
  role text not null check (role in ('full', 'read-only')),
  public_key_pem text not null,
  rate_limit integer check (rate_limit > 0),
  created_at timestamptz not null default now(),
  revoked_at timestamptz
);

create table request_nonces (
  api_key uuid not null,
  nonce text not null,
  expires_at timestamptz not null,
  primary key (api_key, nonce)
);
create index request_nonces_expiry on request_nonces (expires_at);

create table rate_windows (
  subject text not null,
  window_start timestamptz not null,
  requests integer not null,
  primary key (subject, window_start)
);
create index rate_windows_start on rate_windows (window_start);

create table events (
  id bigint generated always as identity primary key,
  workspace_id uuid not null references workspaces,
  sub_account_id uuid references sub_accounts,
  type text not null,
  payload jsonb not null,
  created_at timestamptz not null default now()
);
