import type { Queryable } from '../../core/database/pool.ts'
import { post, type Posting } from '../../core/ledger/post.ts'
import type { AccountRow } from './account.ts'
import type { Balance, Fill } from './venue.ts'

/**
 * Returns the ledger asset for a coin at an exchange. It differs from the assets of networks, which
 * have other decimals.
 */
const claimOn = (coin: string): string => `venue:${coin}`

type Owner = Pick<AccountRow, 'id' | 'workspace_id'>

/** Returns both postings of an increase of the claim on an exchange by an amount. */
const claim = ({ id, workspace_id: workspace }: Owner, coin: string, amount: bigint): Posting[] => [
  { workspace, asset: claimOn(coin), kind: 'venue', address: id, amount },
  { workspace, asset: claimOn(coin), kind: 'venue_outside', address: id, amount: -amount },
]

/** Books the balances that the exchange reported when the account was linked. */
export async function bookOpening(
  tx: Queryable,
  owner: Owner,
  balances: readonly Balance[],
): Promise<void> {
  await post(
    tx,
    'venue-opening',
    owner.id,
    balances.flatMap(({ coin, total }) => claim(owner, coin, total)),
  )
}

/**
 * Books the account's balances out of the ledger when the account is deleted. The ledger has no
 * claim on the exchange afterwards.
 */
export async function bookClosing(tx: Queryable, owner: Owner): Promise<void> {
  const held = await claims(tx, owner)
  await post(
    tx,
    'venue-closing',
    owner.id,
    [...held].flatMap(([coin, amount]) => claim(owner, coin, -amount)),
  )
}

/**
 * Books the exchange's balance as correct, on the caller's confirmation, although no order explains
 * the difference.
 * @param reference unique for each correction
 */
export async function bookCorrection(
  tx: Queryable,
  owner: Owner,
  reference: string,
  changes: ReadonlyMap<string, bigint>,
): Promise<void> {
  await post(
    tx,
    'venue-correction',
    reference,
    [...changes].flatMap(([coin, amount]) => claim(owner, coin, amount)),
  )
}

/** Books one fill, once: the amounts bought and sent, and the fee. A negative fee is a rebate. */
export async function bookFill(
  tx: Queryable,
  owner: Owner,
  o: { market: string; base: string; quote: string; side: 'buy' | 'sell'; fill: Fill },
): Promise<void> {
  const {
    market,
    base,
    quote,
    side,
    fill: { tradeId, amount, cost, fee, feeCoin },
  } = o
  const sign = side === 'buy' ? 1n : -1n
  const workspace = owner.workspace_id
  await post(
    tx,
    'venue-fill',
    `${owner.id}:${market}:${tradeId}`,
    merged([
      ...claim(owner, base, sign * amount),
      ...claim(owner, quote, -sign * cost),
      { workspace, asset: claimOn(feeCoin), kind: 'venue', address: owner.id, amount: -fee },
      { workspace, asset: claimOn(feeCoin), kind: 'venue_fees', address: owner.id, amount: fee },
    ]),
  )
}

/** Books the amount that an exchange credited for a transfer to it. */
export async function bookDeposit(
  tx: Queryable,
  owner: Owner,
  transferId: string,
  coin: string,
  amount: bigint,
): Promise<void> {
  await post(tx, 'venue-deposit', transferId, claim(owner, coin, amount))
}

/** Books the amount that an exchange deducted for a withdrawal, including its fee. */
export async function bookWithdrawal(
  tx: Queryable,
  owner: Owner,
  transferId: string,
  coin: string,
  amount: bigint,
): Promise<void> {
  await post(tx, 'venue-withdrawal', transferId, claim(owner, coin, -amount))
}

/** Books the amount that the exchange returned, because it did not pay the withdrawal. */
export async function bookWithdrawalBack(
  tx: Queryable,
  owner: Owner,
  transferId: string,
  coin: string,
  amount: bigint,
): Promise<void> {
  await post(tx, 'venue-withdrawal-back', transferId, claim(owner, coin, amount))
}

/** Merges postings so that each account has one. */
function merged(postings: readonly Posting[]): Posting[] {
  const sums = new Map<string, Posting>()
  for (const each of postings) {
    const key = `${each.kind} ${each.asset}`
    sums.set(key, { ...each, amount: (sums.get(key)?.amount ?? 0n) + each.amount })
  }
  return [...sums.values()]
}

/** Returns the ledger's claims on an exchange, coin by coin, in units. */
export async function claims(database: Queryable, owner: Owner): Promise<Map<string, bigint>> {
  const rows = await database.query<{ asset: string; balance: string }>(
    `select asset, balance::text from ledger_accounts
     where workspace_id = $2 and kind = 'venue' and address = $1 and balance <> 0 order by asset`,
    [owner.id, owner.workspace_id],
  )
  return new Map(
    rows.map(({ asset, balance }) => [asset.slice(claimOn('').length), BigInt(balance)]),
  )
}
