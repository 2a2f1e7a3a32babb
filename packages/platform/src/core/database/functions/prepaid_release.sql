-- Gives the fee of a transaction back that failed, once, whether it was taken already or only
-- reserved.
create or replace function prepaid_release(p_workspace uuid, p_transaction uuid, p_day date) returns boolean
language plpgsql as $$
declare
  failed transactions%rowtype;
  charged boolean;
begin
  select * into failed from transactions where workspace_id = p_workspace and id = p_transaction;
  if failed.platform_fee is null then return false; end if;
  perform prepaid_lock(p_workspace);
  if not exists (
    select 1 from ledger_entries where workspace_id = p_workspace and kind = 'prepaid-reserve' and reference = p_transaction::text
  ) then return false; end if;
  charged := exists (
    select 1 from ledger_entries where workspace_id = p_workspace and kind = 'prepaid-charge' and reference = p_transaction::text);
  if not prepaid_move(p_workspace, 'prepaid-refund', p_transaction::text,
    case when charged then 'fees' else 'prepaid_reserved' end, 'prepaid', failed.platform_fee) then
    return false;
  end if;
  if charged then
    insert into prepaid_volumes as v (workspace_id, day, amount_usd) values (p_workspace, p_day, -coalesce(failed.amount_usd, 0))
      on conflict (workspace_id, day) do update set amount_usd = v.amount_usd + excluded.amount_usd;
  end if;
  -- What was empty can pay again, and may become empty again.
  update prepaid_accounts set told = 2 where workspace_id = p_workspace and told = 3;
  return true;
end $$;
