import { randomUUID } from 'node:crypto'
import type { Database, Queryable } from '../src/core/database/pool.ts'
import { otherWalletPostings } from '../src/core/engine/other-wallet.ts'
import type { TransactionRow } from '../src/core/engine/transaction.ts'
import { post, type AccountKind, type Posting } from '../src/core/ledger/post.ts'
import { tankFeePostings } from '../src/custody/gas-tanks/energy-loan.ts'
import { floatPostings } from '../src/custody/gas-tanks/float.ts'

/**
 * Histories of the ledger: each operation posts the entries that the platform posts for it, with the
 * platform's own functions where they exist.
 */

/** The wallets of a history, all in one sub-account: ETH, SOL, USDC_SOL and TRX. */
export interface HistoryOwner {
  workspaceId: string
  subAccountId: string
  wallets: Readonly<Record<string, string>>
}

/** Amounts of one operation, in the smallest unit. */
export interface Amounts {
  amount: bigint
  fee: bigint
}

/** What an operation paid in network fees, by the owner of the balance: a ticker, or `tank ticker`. */
type Fees = Record<string, bigint>

const NETWORKS: Record<string, string> = { ETH: 'ETH', SOL: 'SOL', USDC_SOL: 'SOL', TRX: 'TRX' }
const TANK_KINDS = new Set(['FUEL', 'DRAIN', 'TANK_DEPOSIT', 'LEND'])
const UNSWEPT = 'deposit-address'
const SOURCE = 'omnibus'

type TransactionFields = Partial<
  Pick<TransactionRow, 'kind' | 'state' | 'status' | 'source_id' | 'destination_id'>
> & { asset: string; amount: bigint; feeAsset?: string; plan?: object; exchange?: boolean }

/** One operation in progress: writes its transactions and entries. */
class Operation {
  readonly #tx: Queryable
  readonly owner: HistoryOwner

  constructor(tx: Queryable, owner: HistoryOwner) {
    this.#tx = tx
    this.owner = owner
  }

  /** Stores a transaction and returns it. */
  async transaction(fields: TransactionFields): Promise<TransactionRow> {
    const { asset, amount, kind = 'WITHDRAWAL', state = 'CONFIRMED', plan = {} } = fields
    const isTank = TANK_KINDS.has(kind)
    const rows = await this.#tx.query<TransactionRow>(
      `insert into transactions (id, kind, workspace_id, sub_account_id, wallet_id, asset, network,
         amount, fee_asset, source_type, source_id, destination_type, destination_id, state, status,
         created_at, plan, hash)
       values ($1::uuid, $2, $3, $4, $5, $6, $7, $8, $9, 'INTERNAL', $10, $11, $12, $13, $14, now(), $15,
         $1::uuid::text)
       returning *`,
      [
        randomUUID(),
        kind,
        this.owner.workspaceId,
        this.owner.subAccountId,
        isTank ? null : this.owner.wallets[asset],
        asset,
        NETWORKS[asset],
        amount.toString(),
        fields.feeAsset ?? asset,
        fields.source_id ?? SOURCE,
        fields.exchange ? 'EXCHANGE' : 'EXTERNAL',
        fields.destination_id ?? 'destination',
        state,
        fields.status ?? 'confirmed',
        JSON.stringify(plan),
      ],
    )
    return rows[0] as TransactionRow
  }

  /** Posts an entry; the balancing posting of each asset goes to the outside world. */
  async entry(kind: string, reference: string, postings: readonly Posting[]): Promise<void> {
    const rest = new Map<string, bigint>()
    for (const { asset, amount } of postings) rest.set(asset, (rest.get(asset) ?? 0n) - amount)
    const outside = [...rest].map(([asset, amount]): Posting => ({
      workspace: this.owner.workspaceId,
      asset,
      kind: 'chain',
      amount,
    }))
    await post(this.#tx, kind, reference, [...postings, ...outside], { overdraw: true })
  }

  wallet(asset: string, kind: AccountKind, amount: bigint, address: string | null = null): Posting {
    const wallet = this.owner.wallets[asset] ?? null
    return { workspace: this.owner.workspaceId, wallet, asset, kind, address, amount }
  }

  tank(asset: string, kind: AccountKind, amount: bigint, address: string | null = null): Posting {
    return { workspace: this.owner.workspaceId, asset, kind, address, amount }
  }

  /** Reserves an amount in a wallet. */
  reserve(id: string, asset: string, amount: bigint): Promise<void> {
    return this.entry('reserve', id, [
      this.wallet(asset, 'available', -amount),
      this.wallet(asset, 'reserved', amount),
    ])
  }

  /** Records an invoice's refund that a transaction pays. */
  async refund(row: TransactionRow): Promise<void> {
    const invoice = `inv_${row.id}`
    await this.#tx.query(
      `insert into invoices (id, workspace_id, sub_account_id, tolerance, response, expires_at,
         created_at, updated_at) values ($1, $2, $3, 0, '', now(), now(), now())`,
      [invoice, row.workspace_id, row.sub_account_id],
    )
    await this.#tx.query(
      'insert into invoice_refunds (workspace_id, transaction_id, invoice_id) values ($1, $2, $3)',
      [row.workspace_id, row.id, invoice],
    )
  }
}

type Run = (o: Operation, amounts: Amounts) => Promise<Fees>

const NO_FEE: Fees = {}

/** A deposit, up to its last entry. */
const deposit =
  (asset: string, ...entries: ('frozen' | 'credit' | 'reverted' | 'frozen-reverted')[]): Run =>
  async (o, { amount }) => {
    const { id } = await o.transaction({ kind: 'DEPOSIT', asset, amount, state: 'CREDITED' })
    const frozen = (value: bigint) => o.wallet(asset, 'frozen', value, UNSWEPT)
    const unswept = (value: bigint) => o.wallet(asset, 'unswept', value, UNSWEPT)
    const wasFrozen = entries[0] === 'frozen'
    const postings = {
      frozen: ['deposit-frozen', [frozen(amount)]],
      credit: ['deposit', [...(wasFrozen ? [frozen(-amount)] : []), unswept(amount)]],
      reverted: ['deposit-reverted', [unswept(-amount)]],
      'frozen-reverted': ['deposit-frozen-reverted', [frozen(-amount)]],
    } as const
    for (const name of entries) {
      const [kind, moved] = postings[name]
      await o.entry(kind, `${id}:0`, moved)
    }
    return NO_FEE
  }

/** An amount below zero that the operator writes off, and a deposit that repays it. */
const writtenOff: Run = async (o, { amount }) => {
  const { id } = await o.transaction({ kind: 'DEPOSIT', asset: 'ETH', amount, state: 'CREDITED' })
  const lost = (value: bigint) => [
    o.wallet('ETH', 'available', -value),
    o.wallet('ETH', 'written_off', value),
  ]
  await o.entry('deposit-reverted', `${id}:0`, [o.wallet('ETH', 'available', -amount)])
  await o.entry('written-off', randomUUID(), lost(-amount))
  await o.entry('deposit', `${id}:1`, [o.wallet('ETH', 'available', amount)])
  await o.entry('written-off-repaid', `${id}:1`, lost(amount))
  return NO_FEE
}

const suspended: Run = async (o, { amount }) => {
  const { id } = await o.transaction({ kind: 'DEPOSIT', asset: 'ETH', amount, state: 'CREDITED' })
  const suspense = (value: bigint) => o.tank('ETH', 'suspense', value, UNSWEPT)
  await o.entry('deposit', `${id}:0`, [suspense(amount)])
  await o.entry('deposit-assigned', id, [suspense(-amount), o.wallet('ETH', 'available', amount)])
  return NO_FEE
}

/** A withdrawal that pays its fee itself. */
const ownFee =
  (fields: Partial<TransactionFields> = {}, isRefund = false): Run =>
  async (o, { amount, fee }) => {
    const row = await o.transaction({ asset: 'SOL', amount, ...fields })
    if (isRefund) await o.refund(row)
    const total = amount + fee * 2n
    const isDone = row.state === 'CONFIRMED'
    await o.reserve(row.id, 'SOL', total)
    await o.entry('settle', row.id, [
      o.wallet('SOL', 'reserved', -total),
      o.wallet('SOL', 'available', total - fee - (isDone ? amount : 0n)),
    ])
    return { SOL: fee }
  }

/** A withdrawal whose block a reorganisation removed: the returned amount includes its fee. */
const takenBack: Run = async (o, { amount, fee }) => {
  const plan = { generation: '1' }
  const row = await o.transaction({ asset: 'SOL', amount, state: 'CONFIRMING', plan })
  await o.reserve(row.id, 'SOL', amount + fee)
  const settled = (sign: bigint) => [o.wallet('SOL', 'reserved', sign * (amount + fee))]
  await o.entry('settle', row.id, settled(-1n))
  await o.entry('settle-reverted', row.id, settled(1n))
  return { SOL: fee }
}

/** A withdrawal or sweep whose fee the gas tank's fuel pays. */
const fuelled =
  (kind: 'WITHDRAWAL' | 'SWEEP', state: 'CONFIRMED' | 'REVERTED' = 'CONFIRMED'): Run =>
  async (o, { amount, fee }) => {
    const row = await o.transaction({ kind, asset: 'ETH', amount, state })
    const fuel = await o.transaction({ kind: 'FUEL', asset: 'ETH', amount: fee * 2n })
    const held = fee * 2n
    const need = fee + 1n
    await o.entry('fuel-reserve', fuel.id, [
      o.tank('ETH', 'tank', -held - need),
      o.tank('ETH', 'tank_reserved', held + need),
    ])
    await o.entry('fuel-bump', `${fuel.id}:1`, [
      o.tank('ETH', 'tank', -1n),
      o.tank('ETH', 'tank_reserved', 1n),
    ])
    await o.entry('fuel', fuel.id, [
      o.tank('ETH', 'tank_reserved', -held - need - 1n),
      o.tank('ETH', 'float_reserved', held, SOURCE),
      o.tank('ETH', 'tank', need + 1n - fee),
    ])
    await o.entry('fuel-fee', fuel.id, [o.tank('ETH', 'tank', 1n)])
    const isDone = state === 'CONFIRMED'
    if (kind === 'WITHDRAWAL') await o.reserve(row.id, 'ETH', amount)
    const moved =
      kind === 'WITHDRAWAL'
        ? [
            o.wallet('ETH', 'reserved', -amount),
            ...(isDone ? [] : [o.wallet('ETH', 'available', amount)]),
          ]
        : [o.wallet('ETH', 'unswept', -amount, UNSWEPT), o.wallet('ETH', 'available', amount)]
    const paid = floatPostings(row, held, fee).filter((each) => each.kind !== 'chain')
    await o.entry('settle', row.id, [...moved, ...paid])
    return { 'tank ETH': fee * 2n - 1n }
  }

/** A token's withdrawal or sweep whose fee the SOL wallet pays. */
const otherWallet =
  (kind: 'WITHDRAWAL' | 'SWEEP'): Run =>
  async (o, { amount, fee }) => {
    const feeWallet = o.owner.wallets['SOL'] as string
    const plan = { fee_wallet: feeWallet, fee_held: (fee * 2n).toString() }
    const row = await o.transaction({ kind, asset: 'USDC_SOL', feeAsset: 'SOL', amount, plan })
    if (kind === 'WITHDRAWAL') await o.reserve(row.id, 'USDC_SOL', amount)
    await o.entry('reserve-adjust', row.id, [
      o.wallet('SOL', 'available', -fee * 2n),
      o.wallet('SOL', 'reserved', fee * 2n),
    ])
    const paid = otherWalletPostings(row, fee).filter((each) => each.kind !== 'chain')
    await o.entry('settle', row.id, [
      ...(kind === 'WITHDRAWAL'
        ? [o.wallet('USDC_SOL', 'reserved', -amount)]
        : [
            o.wallet('USDC_SOL', 'unswept', -amount, UNSWEPT),
            o.wallet('USDC_SOL', 'available', amount),
          ]),
      ...paid,
    ])
    return { SOL: fee }
  }

/** A sweep that pays its fee out of the amount. */
const ownSweep: Run = async (o, { amount, fee }) => {
  const { id } = await o.transaction({ kind: 'SWEEP', asset: 'SOL', amount })
  await o.entry('settle', id, [
    o.wallet('SOL', 'unswept', -amount - fee, UNSWEPT),
    o.wallet('SOL', 'available', amount),
  ])
  return { SOL: fee }
}

/** A consolidation of coins, which leaves its amount in the wallet. */
const consolidated: Run = async (o, { amount, fee }) => {
  const { id } = await o.transaction({ kind: 'CONSOLIDATION', asset: 'SOL', amount })
  await o.reserve(id, 'SOL', fee * 2n)
  await o.entry('settle', id, [
    o.wallet('SOL', 'reserved', -fee * 2n),
    o.wallet('SOL', 'available', fee),
  ])
  return { SOL: fee }
}

const failed: Run = async (o, { amount }) => {
  const { id } = await o.transaction({ asset: 'SOL', amount, state: 'FAILED', status: 'failed' })
  await o.reserve(id, 'SOL', amount)
  await o.entry('release', id, [
    o.wallet('SOL', 'reserved', -amount),
    o.wallet('SOL', 'available', amount),
  ])
  return NO_FEE
}

/** A stake for another address, its end, and the release of the coins. */
const staked: Run = async (o, { amount, fee }) => {
  const stake = await o.transaction({ kind: 'STAKE', asset: 'TRX', amount })
  const paid = (row: TransactionRow) =>
    floatPostings(row, fee, fee).filter((each) => each.kind !== 'chain')
  const held = (value: bigint, of: string) => o.wallet('TRX', 'staked_energy_reserved', value, of)
  const [account, receiver] = ['account', 'receiver']
  await o.reserve(stake.id, 'TRX', amount)
  await o.entry('staking-freeze', stake.id, [
    o.wallet('TRX', 'reserved', -amount),
    held(amount, account),
    o.tank('TRX', 'float_reserved', -fee, SOURCE),
  ])
  await o.entry('staking-delegate', stake.id, [
    held(-amount, account),
    o.wallet('TRX', 'staked_energy', amount, receiver),
    ...paid(stake),
  ])
  const unstake = await o.transaction({ kind: 'UNSTAKE', asset: 'TRX', amount })
  await o.entry('unstake-reserve', unstake.id, [
    o.wallet('TRX', 'staked_energy', -amount, receiver),
    held(amount, receiver),
  ])
  await o.entry('staking-undelegate', unstake.id, [
    held(-amount, receiver),
    held(amount, account),
    ...paid(unstake),
  ])
  await o.entry('staking-unfreeze', unstake.id, [
    held(-amount, account),
    o.wallet('TRX', 'cooling', amount, receiver),
    ...paid(unstake),
  ])
  const release = await o.transaction({ kind: 'RELEASE', asset: 'TRX', amount })
  await o.entry('staking-withdraw', release.id, paid(release))
  await o.entry('staking-release', release.id, [
    o.wallet('TRX', 'cooling', -amount, receiver),
    o.wallet('TRX', 'available', amount),
  ])
  return { 'tank TRX': fee * 5n }
}

/** A loan of the tank's stake, and its return. */
const loan: Run = async (o, { amount, fee }) => {
  const plan = { reserved_fee: fee.toString() }
  const row = await o.transaction({ kind: 'LEND', asset: 'TRX', amount, plan })
  const paid = tankFeePostings(row, fee).filter((each) => each.kind !== 'chain')
  const staked = (value: bigint, of: string) => o.tank('TRX', 'staked_energy', value, of)
  await o.entry('loan-reserve', row.id, [
    staked(-amount, 'tank'),
    o.tank('TRX', 'staked_energy_reserved', amount, 'tank'),
    o.tank('TRX', 'tank', -fee * 2n),
    o.tank('TRX', 'tank_reserved', fee * 2n),
  ])
  await o.entry('loan', row.id, [
    o.tank('TRX', 'staked_energy_reserved', -amount, 'tank'),
    staked(amount, 'borrower'),
    ...paid,
  ])
  await o.entry('loan-return', row.id, [
    staked(-amount, 'borrower'),
    staked(amount, 'tank'),
    ...paid,
  ])
  return { 'tank TRX': fee * 2n }
}

const tankDeposit: Run = async (o, { amount }) => {
  const fields = { kind: 'TANK_DEPOSIT', asset: 'TRX', amount, state: 'CREDITED' } as const
  const { id } = await o.transaction(fields)
  await o.entry('deposit', `${id}:0`, [o.tank('TRX', 'tank', amount)])
  return NO_FEE
}

const drain =
  (state: 'CONFIRMED' | 'REVERTED'): Run =>
  async (o, { amount, fee }) => {
    const { id } = await o.transaction({ kind: 'DRAIN', asset: 'ETH', amount, state })
    const total = amount + fee * 2n
    await o.entry('drain-reserve', id, [
      o.tank('ETH', 'tank', -total),
      o.tank('ETH', 'tank_reserved', total),
    ])
    await o.entry('settle', id, [
      o.tank('ETH', 'tank_reserved', -total),
      o.tank('ETH', 'tank', total - fee - (state === 'CONFIRMED' ? amount : 0n)),
    ])
    return { 'tank ETH': fee }
  }

/** All operations. */
export const OPERATIONS: Readonly<Record<string, Run>> = {
  deposit: deposit('ETH', 'credit'),
  'deposit of a token': deposit('USDC_SOL', 'credit'),
  'held deposit that is released': deposit('SOL', 'frozen', 'credit'),
  'held deposit that a reorganisation reverts': deposit('SOL', 'frozen', 'frozen-reverted'),
  'deposit that a reorganisation reverts': deposit('TRX', 'credit', 'reverted'),
  'deposit that is assigned from suspense': suspended,
  'amount that is written off': writtenOff,
  withdrawal: ownFee(),
  forward: ownFee({ plan: { rule_id: randomUUID() } }),
  refund: ownFee({}, true),
  'transfer to an exchange': ownFee({ exchange: true }),
  'reverted withdrawal': ownFee({ state: 'REVERTED', status: 'failed' }),
  'failed withdrawal': failed,
  'consolidation of coins': consolidated,
  'withdrawal that a reorganisation took back': takenBack,
  'withdrawal that fuel pays': fuelled('WITHDRAWAL'),
  'reverted withdrawal that fuel pays': fuelled('WITHDRAWAL', 'REVERTED'),
  'withdrawal that another wallet pays': otherWallet('WITHDRAWAL'),
  'sweep that fuel pays': fuelled('SWEEP'),
  'sweep that another wallet pays': otherWallet('SWEEP'),
  'sweep that pays itself': ownSweep,
  'stake, unstake and release': staked,
  'energy loan': loan,
  'deposit to a gas tank': tankDeposit,
  drain: drain('CONFIRMED'),
  'reverted drain': drain('REVERTED'),
}

/**
 * Runs operations one after the other.
 * @returns the network fees that they paid, by the owner of the balance
 */
export async function runHistory(
  database: Database,
  owner: HistoryOwner,
  operations: readonly ({ name: string } & Amounts)[],
): Promise<ReadonlyMap<string, bigint>> {
  const fees = new Map<string, bigint>()
  for (const { name, ...amounts } of operations) {
    const paid = await database.transaction(async (tx) =>
      (OPERATIONS[name] as Run)(new Operation(tx, owner), amounts),
    )
    for (const [of, fee] of Object.entries(paid)) fees.set(of, (fees.get(of) ?? 0n) + fee)
  }
  return fees
}
