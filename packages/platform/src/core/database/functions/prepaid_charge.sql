-- Takes the reserved fee of a transaction, once. False: none was reserved, or it was taken or given
-- back before.
create or replace function prepaid_charge(p_workspace uuid, p_transaction uuid, p_day date) returns boolean
language plpgsql as $$
declare
  charged transactions%rowtype;
begin
  select * into charged from transactions where workspace_id = p_workspace and id = p_transaction;
  if charged.platform_fee is null then return false; end if;
  perform prepaid_lock(p_workspace);
  if not exists (
    select 1 from ledger_entries where workspace_id = p_workspace and kind = 'prepaid-reserve' and reference = p_transaction::text
  ) or exists (
    select 1 from ledger_entries where workspace_id = p_workspace and kind = 'prepaid-refund' and reference = p_transaction::text
  ) then return false; end if;
  if not prepaid_move(p_workspace, 'prepaid-charge', p_transaction::text, 'prepaid_reserved', 'fees', charged.platform_fee) then
    return false;
  end if;
  insert into prepaid_volumes as v (workspace_id, day, amount_usd) values (p_workspace, p_day, coalesce(charged.amount_usd, 0))
    on conflict (workspace_id, day) do update set amount_usd = v.amount_usd + excluded.amount_usd;
  return true;
end $$;
