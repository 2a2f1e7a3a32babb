import type { Database } from '../../src/core/database/pool.ts'

/** PostgreSQL error code of the simulation's triggers. */
export const WATCH_CODE = 'WATCH'

/**
 * Trigger for the simulation's databases. It checks the postings of a transaction at commit,
 * independently of `ledger_post`. It refuses an entry that does not sum to zero in each asset, a
 * balance that differs from its postings, and a negative balance where none is allowed.
 */
export const LEDGER_WATCH = `do $$ begin
create function simulated.ledger_holds() returns trigger language plpgsql as $watch$
declare
  account bigint := (to_jsonb(new)->>(case tg_table_name when 'ledger_postings' then 'account_id' else 'id' end))::bigint;
  wrong text;
begin
  if tg_table_name = 'ledger_postings' then
    select format('entry %s does not sum to zero: %s %s', p.entry_id, a.asset, sum(p.amount)) into wrong
      from public.ledger_postings p join public.ledger_accounts a on a.workspace_id = p.workspace_id and a.id = p.account_id
      where p.workspace_id = new.workspace_id and p.entry_id = (to_jsonb(new)->>'entry_id')::bigint
      group by p.entry_id, a.asset having sum(p.amount) <> 0 limit 1;
  end if;
  if wrong is null then
    select format('%s %s has %s, and %s was posted', a.kind, a.asset, a.balance, p.posted) into wrong
      from public.ledger_accounts a cross join lateral (
        select coalesce(sum(p.amount), 0) posted from public.ledger_postings p
        where p.workspace_id = a.workspace_id and p.account_id = a.id) p
      where a.workspace_id = new.workspace_id and a.id = account
        and (a.balance <> p.posted or a.balance < 0 and not a.overdrawn
          and a.kind not in ('chain', 'fees', 'venue', 'venue_outside', 'venue_fees'));
  end if;
  if wrong is not null then raise exception using errcode = '${WATCH_CODE}', message = 'the ledger at a commit: ' || wrong; end if;
  return null;
end $watch$;
create constraint trigger watched after insert or update on public.ledger_postings
  deferrable initially deferred for each row execute function simulated.ledger_holds();
create constraint trigger watched after insert or update of balance on public.ledger_accounts
  deferrable initially deferred for each row execute function simulated.ledger_holds();
end $$`

/**
 * Returns a database that calls `report` for each change that a trigger refuses, even if the
 * platform retries and does not report it.
 */
export function watched(database: Database, report: (problem: string) => void): Database {
  const seen = (error: unknown): never => {
    if ((error as { code?: unknown }).code === WATCH_CODE) report((error as Error).message)
    throw error
  }
  return {
    ...database,
    query: (text, values) => database.query<never>(text, values).catch(seen),
    transaction: (work) => database.transaction(work).catch(seen),
  }
}
