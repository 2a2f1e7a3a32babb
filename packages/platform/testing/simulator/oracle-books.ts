import type { Database } from '../../src/core/database/pool.ts'

/** Properties that the ledger alone must have at rest: each statement selects violations. */
const RULES: Record<string, string> = {
  'an entry of the ledger does not sum to zero': `select p.entry_id::text, a.asset,
    sum(p.amount)::text sum
    from ledger_postings p join ledger_accounts a on a.id = p.account_id group by 1, 2
      having sum(p.amount) <> 0`,
  'a balance is not what was posted': `select a.id::text, a.kind, a.asset, a.balance::text,
    coalesce(sum(p.amount), 0)::text posted
    from ledger_accounts a left join ledger_postings p on p.account_id = a.id
      group by a.workspace_id, a.id having a.balance <> coalesce(sum(p.amount), 0)`,
  'something is still reserved': `select kind, asset, balance::text from ledger_accounts
    where kind in ('reserved', 'tank_reserved', 'float_reserved') and balance <> 0`,
  'a balance is below nothing': `select kind, asset, balance::text from ledger_accounts
    where kind in ('available', 'tank') and balance < 0`,
  'chain transactions are open': `select state, network, nonce::text from chain_transactions
    where state in ('BUILT', 'SIGNED', 'INCLUDED')`,
  'numbers of an account have a gap': `select network, account, count(distinct nonce)::text count,
    min(nonce)::text least, max(nonce)::text most
    from chain_transactions where state = 'CONFIRMED' and nonce is not null and account is not null
      group by 1, 2
    having count(distinct nonce) <> max(nonce) - min(nonce) + 1`,
  'a tank paid for nothing': `select t.id, t.network, t.amount::text from transactions t
    where t.kind = 'FUEL' and t.status = 'confirmed' and t.parent_id is null
      and not exists (select 1 from fuel_parts f where f.fuel_id = t.id)`,
  'a frozen address was paid': `select t.id, t.asset, f.frozen_at, c.shown_at from transactions t
    join frozen_addresses f on f.sub_account_id = t.sub_account_id and f.address = t.destination_id
      and f.address_tag is null
    -- Each rebuilt transaction was screened again; a later freeze does not hold the replacement of a signed one.
    join chain_transactions c on c.transaction_id = t.id and c.replaces is null
    where t.kind = 'WITHDRAWAL' and c.shown_at > f.frozen_at
      and c.shown_at < coalesce(f.unfrozen_at, 'infinity')
      -- What was released from a freeze of this address before is not held by another of it.
      and not exists (select 1 from aml_holds h join frozen_addresses e on e.id = h.freeze_id
        where h.transaction_id = t.id and h.released_at <= c.shown_at and e.space = f.space
          and e.address_key = f.address_key)`,
}

export async function wrongInBooks(database: Database): Promise<string[]> {
  const problems: string[] = []
  for (const [what, statement] of Object.entries(RULES)) {
    const rows = await database.query(statement)
    if (rows.length > 0) problems.push(`${what}: ${JSON.stringify(rows).slice(0, 1000)}`)
  }
  return problems
}
