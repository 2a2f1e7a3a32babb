-- Posts many entries at once, each of which moves one amount from one account to another; a place
-- of the arrays for each. An amount of nothing has an entry without postings. Raises a unique
-- violation where one was posted before. The caller holds all accounts.
create or replace function ledger_moves(
  p_workspace uuid, p_kind text, p_references text[], p_sources bigint[], p_targets bigint[], p_amounts numeric[]) returns void
language plpgsql as $$
begin
  with moved as (
    select m.* from unnest(p_references, p_sources, p_targets, p_amounts) m(reference, source, target, amount)
  ), entered as (
    insert into ledger_entries (workspace_id, kind, reference) select p_workspace, p_kind, m.reference from moved m returning id, reference
  )
  insert into ledger_postings (workspace_id, entry_id, account_id, amount)
    select p_workspace, e.id, side.account, side.amount
    from entered e join moved m on m.reference = e.reference
      cross join lateral (values (m.source, -m.amount), (m.target, m.amount)) side(account, amount)
    where m.amount <> 0;
  update ledger_accounts a set balance = a.balance + s.amount, overdrawn = a.overdrawn and a.balance + s.amount < 0
    from (
      select side.account, sum(side.amount) amount
      from unnest(p_sources, p_targets, p_amounts) m(source, target, amount)
        cross join lateral (values (m.source, -m.amount), (m.target, m.amount)) side(account, amount)
      group by side.account
    ) s
    where a.workspace_id = p_workspace and a.id = s.account and s.amount <> 0;
end $$;
