-- Networks with one address per sub-account and a tag for each deposit address (destination tags, memos).

alter table wallet_addresses add column address_tag text;
alter table wallet_addresses drop constraint wallet_addresses_wallet_id_address_key;
create unique index wallet_addresses_place on wallet_addresses (wallet_id, address, address_tag) nulls not distinct;
create unique index wallet_addresses_tag on wallet_addresses (network, address, address_tag) where address_tag is not null;

-- Last ledger or second in which a transaction can be included; null: it never expires.
alter table chain_transactions add column valid_until bigint;
-- EXPIRED: dead on its chain; it keeps its sequence until another attempt takes it over or the transfer fails.
alter table chain_transactions drop constraint chain_transactions_state_check;
alter table chain_transactions add constraint chain_transactions_state_check check (state in ('BUILT', 'SIGNED', 'INCLUDED', 'CONFIRMED', 'EXPIRED', 'VOID'));

-- A wallet whose chain keeps a reserve on its account sends no more than what lies above it.
create function spendable(p_workspace uuid, p_wallet uuid, p_asset text, p_total numeric, p_chain_reserve numeric) returns boolean
language plpgsql as $$
begin
  perform 1 from ledger_accounts
    where id = ledger_account(p_workspace, p_wallet, p_asset, 'available', null) and balance >= p_total + coalesce(p_chain_reserve, 0) for update;
  return found;
end $$;

-- Creates a withdrawal: idempotency row, reservation, transfer, event, in one call.
-- Answers {"replayed", "response", "payload_hash"}. Raises 'insufficient' (P0002) when the wallet holds too little.
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
