-- Writes withdrawals of one workspace, of any of its wallets, by one commit: those of which there
-- is nothing to say but that they are created. Answers their ids. All others it leaves alone, to
-- create_withdrawal: what was asked for before, what a wallet cannot send, and what a wallet is
-- asked for whose accounts somebody else holds, for whom it does not wait: two that each hold
-- several wallets could wait for each other. Raises CU001 and CU007, as create_withdrawal does,
-- when one of them has that to be told; then nothing is written. "p": a list of what
-- create_withdrawal takes, without refunds and transfers to exchanges, each with a tier and a
-- platform fee.
create or replace function write_withdrawals(p_workspace uuid, p jsonb) returns uuid[]
language plpgsql as $$
declare
  kept uuid[];
  written uuid[];
  available bigint[];
  reserved bigint[];
  totals numeric[];
  fees numeric[];
  least numeric;
  tiers text[];
  account prepaid_accounts%rowtype;
  held numeric;
  prepaid bigint;
  prepaid_reserved bigint;
begin
  -- In one order, so that two calls with the same sequence_ids do not wait for each other; of two
  -- with one key the first has it.
  with fresh as (
    insert into idempotency (workspace_id, wallet_id, sequence_id, transaction_id, payload_hash, response)
      select p_workspace, a.wallet_id, a.sequence_id, a.id, a.payload_hash, a.response
      from rows from (jsonb_to_recordset(p) as (id uuid, wallet_id uuid, sequence_id text, payload_hash text, response text))
        with ordinality a(id, wallet_id, sequence_id, payload_hash, response, at)
      where a.sequence_id is not null order by a.wallet_id, a.sequence_id, a.at
      on conflict do nothing returning transaction_id
  ) select array_agg(transaction_id) into kept from fresh;
  with asked as (
    select a.*, a.amount + a.fee_reserve total
    from rows from (jsonb_to_recordset(p) as (
      id uuid, wallet_id uuid, sequence_id text, asset text, amount numeric, fee_reserve numeric, chain_reserve numeric,
      platform_fee numeric, platform_fee_least numeric, prepaid_tier text)) with ordinality
      a(id, wallet_id, sequence_id, asset, amount, fee_reserve, chain_reserve, platform_fee, platform_fee_least, prepaid_tier, at)
    where a.sequence_id is null or a.id = any(kept)
  ), needed as materialized (
    select a.wallet_id, a.asset, sum(a.total) total, max(coalesce(a.chain_reserve, 0)) chain_reserve from asked a group by 1, 2
  ), free as materialized (
    select l.id, l.wallet_id, l.asset, l.kind, l.balance from needed n
      join ledger_accounts l on l.workspace_id = p_workspace and l.wallet_id = n.wallet_id and l.asset = n.asset
        and l.kind in ('available', 'reserved') and l.address is null
      for update of l skip locked
  ), able as (
    select n.wallet_id, v.id available, r.id reserved from needed n
      join wallets w on w.workspace_id = p_workspace and w.id = n.wallet_id and w.status = 'active'
      join free v on v.wallet_id = n.wallet_id and v.asset = n.asset and v.kind = 'available' and v.balance >= n.total + n.chain_reserve
      join free r on r.wallet_id = n.wallet_id and r.asset = n.asset and r.kind = 'reserved'
  ) select array_agg(a.id order by a.at), array_agg(b.available order by a.at), array_agg(b.reserved order by a.at),
      array_agg(a.total order by a.at), array_agg(a.platform_fee order by a.at), max(a.platform_fee_least),
      array_agg(distinct a.prepaid_tier)
    into written, available, reserved, totals, fees, least, tiers from asked a join able b on b.wallet_id = a.wallet_id;
  if cardinality(written) is distinct from jsonb_array_length(p) then
    -- Of the others nothing stays, for create_withdrawal finds its row by the key.
    delete from idempotency i using jsonb_to_recordset(p) a(id uuid, wallet_id uuid, sequence_id text)
      where i.workspace_id = p_workspace and i.wallet_id = a.wallet_id and i.sequence_id = a.sequence_id and i.transaction_id = a.id
        and (written is null or a.id <> all(written));
    if written is null then return '{}'; end if;
    p := (select jsonb_agg(e.value order by e.at) from jsonb_array_elements(p) with ordinality e(value, at)
      where (e.value->>'id')::uuid = any(written));
  end if;
  perform write_transaction(p);
  perform ledger_moves(p_workspace, 'reserve', written::text[], available, reserved, totals);
  insert into events (workspace_id, sub_account_id, type, payload)
    select p_workspace, a.sub_account_id, 'transaction.created', a.response::jsonb
    from jsonb_to_recordset(p) a(sub_account_id uuid, response text);
  -- Last, as everybody has it.
  account := prepaid_lock(p_workspace);
  if tiers <> array[account.tier] then raise exception 'tier' using errcode = 'CU007'; end if;
  prepaid := ledger_account(p_workspace, null, 'USD', 'prepaid', null);
  prepaid_reserved := ledger_account(p_workspace, null, 'USD', 'prepaid_reserved', null);
  held := (select balance from ledger_accounts where workspace_id = p_workspace and id = prepaid);
  held := held - (select sum(fee) from unnest(fees) fee);
  if held < 0 then raise exception 'prepaid fee account' using errcode = 'CU001'; end if;
  perform ledger_moves(p_workspace, 'prepaid-reserve', written::text[], array_fill(prepaid, array[cardinality(written)]),
    array_fill(prepaid_reserved, array[cardinality(written)]), fees);
  if 0 < any(fees) then perform prepaid_tell(account, held, least); end if;
  return written;
end $$;
