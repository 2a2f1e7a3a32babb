-- The id of an account, which is made where there is none.
create or replace function ledger_account(p_workspace uuid, p_wallet uuid, p_asset text, p_kind text, p_address text) returns bigint
language plpgsql as $$
declare
  found_id bigint;
begin
  select id into found_id from ledger_accounts
    where workspace_id = p_workspace and wallet_id is not distinct from p_wallet and asset = p_asset and kind = p_kind
      and address is not distinct from p_address;
  if found_id is null then
    insert into ledger_accounts (workspace_id, wallet_id, asset, kind, address) values (p_workspace, p_wallet, p_asset, p_kind, p_address)
      on conflict do nothing returning id into found_id;
    if found_id is null then
      select id into found_id from ledger_accounts
        where workspace_id = p_workspace and wallet_id is not distinct from p_wallet and asset = p_asset and kind = p_kind
          and address is not distinct from p_address;
    end if;
  end if;
  return found_id;
end $$;
