-- Holds a fee back. Raises CU001 with the balance as its detail when the account holds less.
create or replace function prepaid_reserve(p_workspace uuid, p_reference text, p_fee numeric, p_least numeric) returns void
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
