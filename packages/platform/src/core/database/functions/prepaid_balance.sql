-- What the account holds, without what is reserved.
create or replace function prepaid_balance(p_workspace uuid) returns numeric
language plpgsql as $$
declare
  account bigint := ledger_account(p_workspace, null, 'USD', 'prepaid', null);
begin
  return (select balance from ledger_accounts where workspace_id = p_workspace and id = account);
end $$;
