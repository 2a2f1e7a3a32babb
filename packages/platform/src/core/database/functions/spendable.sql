-- Whether a wallet can send this much, its row locked if so. One whose chain keeps a reserve on its
-- account sends no more than what lies above it. The account is named once: a volatile function in
-- a condition is asked for every row of the table.
create or replace function spendable(p_workspace uuid, p_wallet uuid, p_asset text, p_total numeric, p_chain_reserve numeric)
returns boolean
language plpgsql as $$
declare
  account bigint := ledger_account(p_workspace, p_wallet, p_asset, 'available', null);
begin
  perform 1 from ledger_accounts
    where workspace_id = p_workspace and id = account and balance >= p_total + coalesce(p_chain_reserve, 0) for update;
  return found;
end $$;
