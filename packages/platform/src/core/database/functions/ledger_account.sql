-- The id of an account, which is made where there is none. Each form has a statement of its own:
-- "is not distinct from" uses no index.
create or replace function ledger_account(p_workspace uuid, p_wallet uuid, p_asset text, p_kind text, p_address text) returns bigint
language plpgsql as $$
declare
  found_id bigint;
begin
  -- A second look finds what another transaction made meanwhile.
  for attempt in 1..2 loop
    if p_wallet is null and p_address is null then
      select id into found_id from ledger_accounts
        where workspace_id = p_workspace and wallet_id is null and asset = p_asset and kind = p_kind and address is null;
    elsif p_wallet is null then
      select id into found_id from ledger_accounts
        where workspace_id = p_workspace and wallet_id is null and asset = p_asset and kind = p_kind and address = p_address;
    elsif p_address is null then
      select id into found_id from ledger_accounts
        where workspace_id = p_workspace and wallet_id = p_wallet and asset = p_asset and kind = p_kind and address is null;
    else
      select id into found_id from ledger_accounts
        where workspace_id = p_workspace and wallet_id = p_wallet and asset = p_asset and kind = p_kind and address = p_address;
    end if;
    exit when found_id is not null or attempt = 2;
    insert into ledger_accounts (workspace_id, wallet_id, asset, kind, address) values (p_workspace, p_wallet, p_asset, p_kind, p_address)
      on conflict do nothing returning id into found_id;
    exit when found_id is not null;
  end loop;
  return found_id;
end $$;
