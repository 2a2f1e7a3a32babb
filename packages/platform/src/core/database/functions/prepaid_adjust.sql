-- The operator's top-up or correction. Answers the new balance; raises CU001 where it would fall
-- below zero.
create or replace function prepaid_adjust(p_workspace uuid, p_reference text, p_amount numeric, p_least numeric) returns numeric
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
