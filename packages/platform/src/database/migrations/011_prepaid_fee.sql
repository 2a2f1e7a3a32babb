-- The prepaid fee account of a workspace: USD with six decimals in the ledger kinds prepaid, prepaid_reserved and fees.
-- Whatever changes it locks its row here first, and only after the rows of wallets, so that nobody waits in a circle.

create table prepaid_accounts (
  workspace_id uuid primary key references workspaces,
  tier text not null default 'STARTER',
  -- UTC day for which the tier was last decided.
  decided_on date not null default (now() at time zone 'utc')::date,
  -- First day of the month for which a subscription was paid, and how much of it.
  paid_month date,
  paid numeric(78, 0) not null default 0 check (paid >= 0),
  -- Balance right after the last top-up: events tell when a fifth and a twentieth of it are left.
  level numeric(78, 0) not null default 0,
  -- What was told since: 0 nothing, 1 a fifth is left, 2 a twentieth, 3 empty.
  told smallint not null default 0 check (told between 0 and 3)
);
create index prepaid_accounts_turn on prepaid_accounts (decided_on);

-- USD value of what was charged for, by UTC day.
create table prepaid_volumes (
  workspace_id uuid not null references workspaces,
  day date not null,
  amount_usd numeric(78, 0) not null,
  primary key (workspace_id, day)
);

-- Both in millionths of a USD; null: nothing is charged for it.
alter table transactions add column amount_usd numeric(78, 0) check (amount_usd >= 0);
alter table transactions add column platform_fee numeric(78, 0) check (platform_fee >= 0);

insert into prepaid_accounts (workspace_id, level)
  select w.id, coalesce((select a.balance from ledger_accounts a where a.workspace_id = w.id and a.wallet_id is null and a.kind = 'prepaid' and a.asset = 'USD'), 0) from workspaces w;

-- The account's row, locked until the transaction ends.
create function prepaid_lock(p_workspace uuid) returns prepaid_accounts
language plpgsql as $$
declare
  account prepaid_accounts%rowtype;
begin
  select * into account from prepaid_accounts where workspace_id = p_workspace for update;
  if not found then
    insert into prepaid_accounts (workspace_id) values (p_workspace) on conflict do nothing;
    select * into account from prepaid_accounts where workspace_id = p_workspace for update;
  end if;
  return account;
end $$;

create function prepaid_balance(p_workspace uuid) returns numeric
language plpgsql as $$
declare
  account bigint := ledger_account(p_workspace, null, 'USD', 'prepaid', null);
begin
  return (select balance from ledger_accounts where id = account);
end $$;

-- As before; the account is named once: a volatile function in a condition is asked for every row of the table.
create or replace function spendable(p_workspace uuid, p_wallet uuid, p_asset text, p_total numeric, p_chain_reserve numeric) returns boolean
language plpgsql as $$
declare
  account bigint := ledger_account(p_workspace, p_wallet, p_asset, 'available', null);
begin
  perform 1 from ledger_accounts where id = account and balance >= p_total + coalesce(p_chain_reserve, 0) for update;
  return found;
end $$;

create function prepaid_move(p_workspace uuid, p_kind text, p_reference text, p_from text, p_to text, p_amount numeric) returns boolean
language sql as $$
  select ledger_post(p_kind, p_reference, jsonb_build_array(
    jsonb_build_object('workspace', p_workspace, 'asset', 'USD', 'kind', p_from, 'amount', (-p_amount)::text),
    jsonb_build_object('workspace', p_workspace, 'asset', 'USD', 'kind', p_to, 'amount', p_amount::text)))
$$;

-- Tells, once until the next top-up, that the balance has fallen: to a fifth, to a twentieth, below the least fee.
create function prepaid_tell(p_account prepaid_accounts, p_balance numeric, p_least numeric) returns void
language plpgsql as $$
declare
  stage smallint := case when p_balance <= 0 or p_balance < p_least then 3 when p_balance * 20 <= p_account.level then 2 when p_balance * 5 <= p_account.level then 1 else 0 end;
begin
  if stage <= p_account.told then return; end if;
  update prepaid_accounts set told = stage where workspace_id = p_account.workspace_id;
  perform emit_event(p_account.workspace_id, null, case when stage = 3 then 'prepaid_fee.empty' else 'prepaid_fee.low' end, jsonb_build_object(
    'balance', trim_scale(p_balance / 1000000), 'currency', 'USD', 'percent', case stage when 1 then 20 when 2 then 5 else 0 end, 'topped_up_to', trim_scale(p_account.level / 1000000)));
end $$;

-- Holds a fee back. Raises CU001 with the balance as its detail when the account holds less.
create function prepaid_reserve(p_workspace uuid, p_reference text, p_fee numeric, p_least numeric) returns void
language plpgsql as $$
declare
  account prepaid_accounts%rowtype := prepaid_lock(p_workspace);
  held numeric := prepaid_balance(p_workspace);
begin
  if held < p_fee then raise exception 'prepaid fee account' using errcode = 'CU001', detail = held::text; end if;
  if prepaid_move(p_workspace, 'prepaid-reserve', p_reference, 'prepaid', 'prepaid_reserved', p_fee) and p_fee > 0 then
    perform prepaid_tell(account, held - p_fee, p_least);
  end if;
end $$;

-- Takes the reserved fee of a transaction, once. False: none was reserved, or it was taken or given back before.
create function prepaid_charge(p_transaction uuid, p_day date) returns boolean
language plpgsql as $$
declare
  charged transactions%rowtype;
begin
  select * into charged from transactions where id = p_transaction;
  if charged.platform_fee is null then return false; end if;
  perform prepaid_lock(charged.workspace_id);
  if not exists (select 1 from ledger_entries where kind = 'prepaid-reserve' and reference = p_transaction::text)
    or exists (select 1 from ledger_entries where kind = 'prepaid-refund' and reference = p_transaction::text) then return false; end if;
  if not prepaid_move(charged.workspace_id, 'prepaid-charge', p_transaction::text, 'prepaid_reserved', 'fees', charged.platform_fee) then return false; end if;
  insert into prepaid_volumes as v (workspace_id, day, amount_usd) values (charged.workspace_id, p_day, coalesce(charged.amount_usd, 0))
    on conflict (workspace_id, day) do update set amount_usd = v.amount_usd + excluded.amount_usd;
  return true;
end $$;

-- Gives the fee of a transaction back that failed, once, whether it was taken already or only reserved.
create function prepaid_release(p_transaction uuid, p_day date) returns boolean
language plpgsql as $$
declare
  failed transactions%rowtype;
  charged boolean;
begin
  select * into failed from transactions where id = p_transaction;
  if failed.platform_fee is null then return false; end if;
  perform prepaid_lock(failed.workspace_id);
  if not exists (select 1 from ledger_entries where kind = 'prepaid-reserve' and reference = p_transaction::text) then return false; end if;
  charged := exists (select 1 from ledger_entries where kind = 'prepaid-charge' and reference = p_transaction::text);
  if not prepaid_move(failed.workspace_id, 'prepaid-refund', p_transaction::text, case when charged then 'fees' else 'prepaid_reserved' end, 'prepaid', failed.platform_fee) then return false; end if;
  if charged then
    insert into prepaid_volumes as v (workspace_id, day, amount_usd) values (failed.workspace_id, p_day, -coalesce(failed.amount_usd, 0))
      on conflict (workspace_id, day) do update set amount_usd = v.amount_usd + excluded.amount_usd;
  end if;
  -- What was empty can pay again, and may become empty again.
  update prepaid_accounts set told = 2 where workspace_id = failed.workspace_id and told = 3;
  return true;
end $$;

-- The operator's top-up or correction. Answers the new balance; raises CU001 where it would fall below zero.
create function prepaid_adjust(p_workspace uuid, p_reference text, p_amount numeric, p_least numeric) returns numeric
language plpgsql as $$
declare
  account prepaid_accounts%rowtype := prepaid_lock(p_workspace);
  held numeric := prepaid_balance(p_workspace);
begin
  if held + p_amount < 0 then raise exception 'prepaid fee account' using errcode = 'CU001', detail = held::text; end if;
  if not prepaid_move(p_workspace, 'prepaid-adjust', p_reference, 'chain', 'prepaid', p_amount) then return held; end if;
  if p_amount > 0 then
    update prepaid_accounts set level = held + p_amount, told = 0 where workspace_id = p_workspace returning * into account;
  end if;
  perform prepaid_tell(account, held + p_amount, p_least);
  return held + p_amount;
end $$;

-- Creates a withdrawal: idempotency row, reservations of amount and platform fee, transfer, event, in one call.
-- Answers {"replayed", "response", "payload_hash"}. Raises 'insufficient' (P0002) when the wallet holds too little, and
-- CU001 when the prepaid fee account does.
create or replace function create_withdrawal(p jsonb) returns jsonb
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
  if not spendable(workspace, wallet, p->>'asset', total, (p->>'chain_reserve')::numeric) then raise exception 'insufficient' using errcode = 'P0002'; end if;
  insert into transactions (id, kind, workspace_id, sub_account_id, wallet_id, asset, network, amount, fee, fee_asset,
      source_type, source_id, destination_type, destination_id, address_tag, memo, sequence_id, state, status,
      request, fee_rate, fee_level, plan, created_at, updated_at, next_run_at, amount_usd, platform_fee)
    values ((p->>'id')::uuid, 'WITHDRAWAL', workspace, (p->>'sub_account_id')::uuid, wallet, p->>'asset', p->>'network',
      (p->>'amount')::numeric, (p->>'fee')::numeric, p->>'fee_asset', p->>'source_type', p->>'source_id',
      p->>'destination_type', p->>'destination_id', p->>'address_tag', p->>'memo', p->>'sequence_id', 'CREATED', 'pending',
      p->'request', p->>'fee_rate', p->>'fee_level', jsonb_build_object('fee_reserve', p->>'fee_reserve'),
      (p->>'created_at')::timestamptz, (p->>'created_at')::timestamptz, now(), (p->>'amount_usd')::numeric, (p->>'platform_fee')::numeric);
  perform ledger_post('reserve', p->>'id', jsonb_build_array(
    jsonb_build_object('workspace', workspace, 'wallet', wallet, 'asset', p->>'asset', 'kind', 'available', 'amount', (-total)::text),
    jsonb_build_object('workspace', workspace, 'wallet', wallet, 'asset', p->>'asset', 'kind', 'reserved', 'amount', total::text)));
  perform emit_event(workspace, (p->>'sub_account_id')::uuid, 'transaction.created', (p->>'response')::jsonb);
  if p->>'platform_fee' is not null then
    perform prepaid_reserve(workspace, p->>'id', (p->>'platform_fee')::numeric, (p->>'platform_fee_least')::numeric);
  end if;
  notify work;
  return jsonb_build_object('replayed', false, 'response', p->>'response');
end $$;
