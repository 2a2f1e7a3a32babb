-- p_postings: [{"wallet","asset","kind","address","amount"}], all of one workspace; amounts as
-- text. Returns false when this (kind, reference) was posted before. p_overdraw lets balances go
-- below zero (reorganisations only).
create or replace function ledger_post(
  p_workspace uuid, p_kind text, p_reference text, p_postings jsonb, p_overdraw boolean default false) returns boolean
language plpgsql as $$
declare
  entry bigint;
  posting record;
begin
  insert into ledger_entries (workspace_id, kind, reference) values (p_workspace, p_kind, p_reference)
    on conflict do nothing returning id into entry;
  if entry is null then return false; end if;
  -- Accounts are always locked in the order of their ids, so that two entries cannot wait for each
  -- other.
  for posting in
    select a.account, a.amount, sum(a.amount) over (partition by a.asset) as difference
    from (
      select ledger_account(p_workspace, p.wallet, p.asset, p.kind, p.address) as account, p.asset, sum(p.amount) as amount
      from jsonb_to_recordset(p_postings) as p(wallet uuid, asset text, kind text, address text, amount numeric)
      group by 1, 2
    ) a
    order by a.account
  loop
    if posting.difference <> 0 then raise exception 'ledger entry % % does not balance', p_kind, p_reference; end if;
    if posting.amount <> 0 then
      with moved as (
        update ledger_accounts
          set balance = balance + posting.amount, overdrawn = (overdrawn or p_overdraw) and balance + posting.amount < 0
          where workspace_id = p_workspace and id = posting.account
      )
      insert into ledger_postings (workspace_id, entry_id, account_id, amount)
        values (p_workspace, entry, posting.account, posting.amount);
    end if;
  end loop;
  return true;
end $$;
