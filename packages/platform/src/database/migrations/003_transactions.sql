-- Transfers, deposits, sweeps, fuel: one table for what a user lists, one for what goes on a chain.

create table transactions (
  id uuid primary key,
  kind text not null check (kind in ('WITHDRAWAL', 'DEPOSIT', 'SWEEP', 'FUEL', 'TANK_DEPOSIT', 'DRAIN')),
  workspace_id uuid not null references workspaces,
  sub_account_id uuid references sub_accounts,
  wallet_id uuid references wallets,
  parent_id uuid references transactions,
  asset text not null,
  network text not null,
  amount numeric(78, 0) not null check (amount >= 0),
  fee numeric(78, 0) not null default 0,
  fee_asset text not null,
  source_type text not null,
  source_id text,
  destination_type text not null,
  destination_id text,
  address_tag text,
  memo text,
  sequence_id text,
  state text not null,
  status text not null check (status in ('pending', 'confirmed', 'failed')),
  failure_reason text,
  -- Why the last attempt made no progress; never shown as a failure.
  last_error text,
  hash text,
  confirmations integer not null default 0,
  -- The caller's signed request, raw: {api_key, token, method, uri, body}; and the nodes' receipts.
  request jsonb,
  receipts jsonb not null default '[]',
  -- What the worker decided and must not decide again differently: fee plan, reservations.
  plan jsonb not null default '{}',
  fee_rate text,
  fee_level text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  confirmed_at timestamptz,
  next_run_at timestamptz,
  lease_until timestamptz,
  lease_token uuid,
  attempts integer not null default 0
);
create index transactions_work on transactions (next_run_at) where next_run_at is not null;
create index transactions_list on transactions (sub_account_id, created_at desc, id desc);
create index transactions_hash on transactions (hash) where hash is not null;
create index transactions_parent on transactions (parent_id) where parent_id is not null;

-- Where a deposit stands on its chain. A reorganisation marks it, it is never deleted.
create table deposits (
  transaction_id uuid primary key references transactions,
  network text not null,
  txid text not null,
  -- Output index (UTXO), log index (tokens), -1 for the native value of an account-based transaction.
  position integer not null,
  address text not null,
  sender text,
  block_height bigint,
  block_hash text,
  unique (network, txid, position)
);
create index deposits_block on deposits (network, block_height);

create table idempotency (
  wallet_id uuid not null references wallets,
  sequence_id text not null,
  transaction_id uuid not null,
  payload_hash text not null,
  response text not null,
  created_at timestamptz not null default now(),
  primary key (wallet_id, sequence_id)
);

-- Signed bytes are committed here before any broadcast.
create table chain_transactions (
  id uuid primary key,
  transaction_id uuid not null references transactions,
  network text not null,
  attempt integer not null default 1,
  state text not null check (state in ('BUILT', 'SIGNED', 'INCLUDED', 'CONFIRMED', 'VOID')),
  account text,
  nonce bigint,
  unsigned jsonb not null,
  signed text,
  hash text,
  fee_max numeric(78, 0) not null,
  fee numeric(78, 0),
  succeeded boolean,
  block_height bigint,
  block_hash text,
  broadcast_at timestamptz,
  created_at timestamptz not null default now(),
  unique (transaction_id, attempt)
);
create unique index chain_transactions_nonce on chain_transactions (network, account, nonce) where state <> 'VOID' and nonce is not null;
create unique index chain_transactions_hash on chain_transactions (network, hash) where hash is not null;
create index chain_transactions_block on chain_transactions (network, block_height) where block_height is not null;

-- Next nonce of each account that signs; locked while one is taken.
create table signing_accounts (
  network text not null,
  address text not null,
  next_nonce bigint not null default 0,
  primary key (network, address)
);

create table utxos (
  network text not null,
  txid text not null,
  vout integer not null,
  address text not null,
  wallet_id uuid not null references wallets,
  value numeric(78, 0) not null,
  path_index integer not null,
  origin text not null check (origin in ('deposit', 'change')),
  -- Deposits may be spent once credited; change of our own at once.
  spendable boolean not null default false,
  block_height bigint,
  spent_by uuid references chain_transactions,
  created_at timestamptz not null default now(),
  primary key (network, txid, vout)
);
create index utxos_wallet on utxos (wallet_id) where spent_by is null;

create table blocks (
  network text not null,
  height bigint not null,
  hash text not null,
  parent text not null,
  primary key (network, height)
);

-- One row per network: the scanner's position and lease.
create table network_scans (
  network text primary key,
  height bigint,
  tip_height bigint not null default 0,
  final_height bigint not null default 0,
  genesis text,
  lease_until timestamptz,
  lease_token uuid,
  updated_at timestamptz not null default now()
);

create table gas_tanks (
  id uuid primary key default gen_random_uuid(),
  workspace_id uuid not null references workspaces,
  network text not null,
  address text not null,
  threshold numeric(78, 0) not null,
  -- Local chains only: what a new tank is filled with on its first use.
  first_fill numeric(78, 0) not null default 0,
  first_fill_hash text,
  created_at timestamptz not null default now(),
  unique (workspace_id, network)
);

-- Creates a withdrawal: idempotency row, reservation, transfer, event, in one call.
-- Answers {"replayed", "response", "payload_hash"}. Raises 'insufficient' (P0002) when the wallet holds too little.
create function create_withdrawal(p jsonb) returns jsonb
language plpgsql as $$
declare
  existing idempotency%rowtype;
  wallet uuid := (p->>'wallet_id')::uuid;
  workspace uuid := (p->>'workspace_id')::uuid;
  total numeric := (p->>'amount')::numeric + (p->>'fee_reserve')::numeric;
begin
  if p->>'sequence_id' is not null then
    insert into idempotency (wallet_id, sequence_id, transaction_id, payload_hash, response)
      values (wallet, p->>'sequence_id', (p->>'id')::uuid, p->>'payload_hash', p->>'response')
      on conflict do nothing;
    if not found then
      select * into existing from idempotency where wallet_id = wallet and sequence_id = p->>'sequence_id';
      return jsonb_build_object('replayed', true, 'response', existing.response, 'payload_hash', existing.payload_hash);
    end if;
  end if;
  perform 1 from ledger_accounts
    where id = ledger_account(workspace, wallet, p->>'asset', 'available', null) and balance >= total for update;
  if not found then raise exception 'insufficient' using errcode = 'P0002'; end if;
  insert into transactions (id, kind, workspace_id, sub_account_id, wallet_id, asset, network, amount, fee, fee_asset,
      source_type, source_id, destination_type, destination_id, address_tag, memo, sequence_id, state, status,
      request, fee_rate, fee_level, plan, created_at, updated_at, next_run_at)
    values ((p->>'id')::uuid, 'WITHDRAWAL', workspace, (p->>'sub_account_id')::uuid, wallet, p->>'asset', p->>'network',
      (p->>'amount')::numeric, (p->>'fee')::numeric, p->>'fee_asset', p->>'source_type', p->>'source_id',
      p->>'destination_type', p->>'destination_id', p->>'address_tag', p->>'memo', p->>'sequence_id', 'CREATED', 'pending',
      p->'request', p->>'fee_rate', p->>'fee_level', jsonb_build_object('fee_reserve', p->>'fee_reserve'),
      (p->>'created_at')::timestamptz, (p->>'created_at')::timestamptz, now());
  perform ledger_post('reserve', p->>'id', jsonb_build_array(
    jsonb_build_object('workspace', workspace, 'wallet', wallet, 'asset', p->>'asset', 'kind', 'available', 'amount', (-total)::text),
    jsonb_build_object('workspace', workspace, 'wallet', wallet, 'asset', p->>'asset', 'kind', 'reserved', 'amount', total::text)));
  perform emit_event(workspace, (p->>'sub_account_id')::uuid, 'transaction.created', (p->>'response')::jsonb);
  notify work;
  return jsonb_build_object('replayed', false, 'response', p->>'response');
end $$;
