-- The one place where a row of transactions is made. `p` holds its columns by name, or is a list of
-- such; what is absent has the table's default. The columns are named once more where they are
-- read: read of the table's own type, all of its columns would be. `unless_there`: answers null
-- instead of raising where an index says that there is one already.
create or replace function write_transaction(p jsonb, unless_there boolean default false) returns setof transactions
language plpgsql as $$
declare
  asked jsonb := case jsonb_typeof(p) when 'array' then p else jsonb_build_array(p) end;
  made integer;
begin
  return query insert into transactions (
      id, kind, workspace_id, sub_account_id, wallet_id, parent_id, asset, network, amount, fee, fee_asset,
      source_type, source_id, destination_type, destination_id, address_tag, memo, sequence_id,
      state, status, hash, confirmations, request, fee_rate, fee_level, plan,
      created_at, updated_at, next_run_at, amount_usd, platform_fee)
    select
      t.id, t.kind, t.workspace_id, t.sub_account_id, t.wallet_id, t.parent_id, t.asset, t.network,
      t.amount, coalesce(t.fee, 0), t.fee_asset,
      t.source_type, t.source_id, t.destination_type, t.destination_id, t.address_tag, t.memo, t.sequence_id,
      t.state, t.status, t.hash, coalesce(t.confirmations, 0), t.request, t.fee_rate, t.fee_level, coalesce(t.plan, '{}'),
      t.created_at, t.updated_at, t.next_run_at, t.amount_usd, t.platform_fee
    from jsonb_to_recordset(asked) as t(
      id uuid, kind text, workspace_id uuid, sub_account_id uuid, wallet_id uuid, parent_id uuid, asset text, network text, amount numeric,
      fee numeric, fee_asset text, source_type text, source_id text, destination_type text, destination_id text, address_tag text,
      memo text, sequence_id text, state text, status text, hash text, confirmations integer, request jsonb, fee_rate text,
      fee_level text, plan jsonb, created_at timestamptz, updated_at timestamptz, next_run_at timestamptz, amount_usd numeric,
      platform_fee numeric)
    on conflict do nothing
    returning *;
  get diagnostics made = row_count;
  if made < jsonb_array_length(asked) and not unless_there then
    raise exception 'transaction % is there already', p->>'id' using errcode = 'unique_violation';
  end if;
end $$;
