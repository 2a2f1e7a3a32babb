-- Creates a withdrawal: idempotency row, reservations of amount and platform fee, transfer, event,
-- in one call. "plan", "updated_at" and "next_run_at" are the row's as they are. Answers
-- {"replayed": false}, or {"replayed": true, "response", "payload_hash"}: what was answered before.
-- Raises CU002 when the wallet is inactive, CU003 when it holds too little, CU001 when the prepaid
-- fee account does, CU004 and CU005 as invoice_refund.sql says, CU006 when the exchange account
-- that it goes to is unlinked, CU007 when the fee was quoted by another tier ("prepaid_tier") than
-- the workspace has. All of it after the idempotency row, for which it waits: what was answered
-- once is answered again, whatever has changed since.
create or replace function create_withdrawal(p jsonb) returns jsonb
language plpgsql as $$
declare
  existing idempotency%rowtype;
  wallet uuid := (p->>'wallet_id')::uuid;
  workspace uuid := (p->>'workspace_id')::uuid;
  total numeric := (p->>'amount')::numeric + (p->>'fee_reserve')::numeric;
begin
  if p->>'sequence_id' is not null then
    insert into idempotency (workspace_id, wallet_id, sequence_id, transaction_id, payload_hash, response)
      values (workspace, wallet, p->>'sequence_id', (p->>'id')::uuid, p->>'payload_hash', p->>'response')
      on conflict do nothing;
    if not found then
      select * into existing from idempotency
        where workspace_id = workspace and wallet_id = wallet and sequence_id = p->>'sequence_id';
      return jsonb_build_object('replayed', true, 'response', existing.response, 'payload_hash', existing.payload_hash);
    end if;
  end if;
  perform 1 from wallets where workspace_id = workspace and id = wallet and status = 'active';
  if not found then raise exception 'inactive' using errcode = 'CU002'; end if;
  if not spendable(workspace, wallet, p->>'asset', total, (p->>'chain_reserve')::numeric) then
    raise exception 'insufficient' using errcode = 'CU003';
  end if;
  perform write_transaction(p);
  perform ledger_post(workspace, 'reserve', p->>'id', jsonb_build_array(
    jsonb_build_object('wallet', wallet, 'asset', p->>'asset', 'kind', 'available', 'amount', (-total)::text),
    jsonb_build_object('wallet', wallet, 'asset', p->>'asset', 'kind', 'reserved', 'amount', total::text)));
  perform emit_event(workspace, (p->>'sub_account_id')::uuid, 'transaction.created', (p->>'response')::jsonb);
  if p->>'platform_fee' is not null then
    perform 1 from prepaid_accounts where workspace_id = workspace and tier <> p->>'prepaid_tier';
    if found then raise exception 'tier' using errcode = 'CU007'; end if;
    perform prepaid_reserve(workspace, p->>'id', (p->>'platform_fee')::numeric, (p->>'platform_fee_least')::numeric);
  end if;
  -- Last, because crediting a deposit locks accounts before the invoice too.
  if p->>'invoice_id' is not null then perform invoice_refund(workspace, p->>'invoice_id', (p->>'id')::uuid); end if;
  if p->'exchange_transfer' <> 'null' then
    perform exchange_transfer_open(p->'exchange_transfer', (p->>'id')::uuid, p->>'exchange_shown');
  end if;
  return '{"replayed": false}';
end $$;
