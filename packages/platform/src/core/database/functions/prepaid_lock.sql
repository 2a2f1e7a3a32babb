-- The account's row, locked until the transaction ends.
create or replace function prepaid_lock(p_workspace uuid) returns prepaid_accounts
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
