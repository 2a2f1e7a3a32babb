-- Posts the opposite of each entry with one of these kinds and references, once: the block that settled
-- it has left the chain. The reversal's kind ends with '-reverted'. Balances may go below zero, because
-- the chain decides. Returns the number of entries that were reversed.
create or replace function ledger_reverse(p_workspace uuid, p_kinds text[], p_references text[]) returns integer
language plpgsql as $$
declare
  entry record;
  reversed integer := 0;
begin
  for entry in
    select e.id, e.kind, e.reference from ledger_entries e
    where e.workspace_id = p_workspace and e.kind = any(p_kinds) and e.reference = any(p_references)
      and not exists (
        select 1 from ledger_entries r
        where r.workspace_id = p_workspace and r.kind = e.kind || '-reverted' and r.reference = e.reference)
    order by e.id desc
  loop
    perform ledger_post(p_workspace, entry.kind || '-reverted', entry.reference, (
      select coalesce(jsonb_agg(jsonb_build_object('wallet', a.wallet_id, 'asset', a.asset, 'kind', a.kind,
        'address', a.address, 'amount', (-p.amount)::text)), '[]')
      from ledger_postings p
        join ledger_accounts a on a.workspace_id = p.workspace_id and a.id = p.account_id
      where p.workspace_id = p_workspace and p.entry_id = entry.id), true);
    reversed := reversed + 1;
  end loop;
  return reversed;
end $$;
