-- Workspaces, callers, wallets, addresses. Amounts are numeric(78,0) in the smallest unit.

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

-- Addresses as handed out: an omnibus address of an account-based chain serves several wallets.
create table wallet_addresses (
  id uuid primary key default gen_random_uuid(),
  wallet_id uuid not null references wallets,
  network text not null,
  address text not null,
  label text,
  created_at timestamptz not null default now(),
  unique (wallet_id, address),
  foreign key (network, address) references chain_addresses (network, address)
);

create table events (
  id bigint generated always as identity primary key,
  workspace_id uuid not null references workspaces,
  sub_account_id uuid references sub_accounts,
  type text not null,
  payload jsonb not null,
  created_at timestamptz not null default now()
);

create function emit_event(p_workspace uuid, p_sub_account uuid, p_type text, p_payload jsonb) returns void
language sql as $$
  insert into events (workspace_id, sub_account_id, type, payload) values (p_workspace, p_sub_account, p_type, p_payload)
$$;

-- Spends a nonce and counts the request in one call, after the signature was verified.
-- Answers (nonce_ok, requests in this window). A limited request does not spend its nonce.
create function admit_request(p_api_key uuid, p_nonce text, p_subject text, p_window timestamptz, p_limit integer)
returns table (nonce_ok boolean, requests integer)
language plpgsql as $$
declare
  counted integer;
  spent integer;
begin
  insert into rate_windows as w (subject, window_start, requests) values (p_subject, p_window, 1)
    on conflict (subject, window_start) do update set requests = w.requests + 1
    returning w.requests into counted;
  if counted > p_limit then
    return query select true, counted;
    return;
  end if;
  insert into request_nonces (api_key, nonce, expires_at) values (p_api_key, p_nonce, now() + interval '10 minutes')
    on conflict do nothing;
  get diagnostics spent = row_count;
  return query select spent = 1, counted;
end $$;
