import type { Queryable, Database } from '../../core/database/pool.ts'
import { nothingExcludes } from '../../core/engine/outcomes/expiry.ts'
import { replacementsOf } from '../../core/engine/replacement.ts'
import {
  ENDED_IN_BLOCK,
  type AskPurpose,
  type Included,
  type Kind,
  type StateRule,
} from '../../core/engine/interfaces/kind.ts'
import type { Environment } from '../../core/environment.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { Metrics } from '../../core/metrics.ts'
import { endTransaction } from '../../core/engine/outcomes/settle.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { post } from '../../core/ledger/post.ts'
import {
  generationOf,
  postSettled,
  reverseSettled,
  settlementReference,
} from '../../core/engine/settlement.ts'
import type { Purpose } from '../../core/signing/sign.ts'
import { awaitsCompany, partsOf, wakeFuelled } from './shared-fuel.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  metrics: Metrics
}

/**
 * Milliseconds after which fuel is bumped, even if the operator has not enabled fee bumps, because
 * all of a tank's transactions wait behind one that is stuck.
 */
const FUEL_BUMP_AFTER_MS = 60_000

/** States of a payment that a gas tank sends. */
const TANK_STATES: readonly StateRule<'FUEL' | 'DRAIN'>[] = [
  { state: 'QUEUED', run: 'build', next: ['SIGNING', 'FAILED'], endsIfCancelled: true },
  { state: 'SIGNING', run: 'sign', next: ['SIGNED', 'QUEUED', 'FAILED'], endsIfCancelled: true },
  { state: 'SIGNED', run: 'broadcast', next: ['BROADCASTING'] },
  {
    state: 'BROADCASTING',
    run: 'broadcast',
    next: ['CONFIRMING', 'REPLACING', 'QUEUED', 'FAILED'],
  },
  {
    state: 'CONFIRMING',
    run: 'confirm',
    next: ['CONFIRMED', 'REVERTED', 'BROADCASTING', 'REPLACING', 'QUEUED', 'FAILED'],
  },
  { state: 'REPLACING', run: 'replace', next: ['BROADCASTING'] },
  ...ENDED_IN_BLOCK,
  { state: 'FAILED', next: [] },
]

/**
 * Fuel: native coin from a gas tank that pays for the fee of one transfer, or of several at one
 * address, authorised by their requests.
 */
export const fuelKind = (services: Services): Kind<'FUEL'> => ({
  states: TANK_STATES,
  heldBack: (row) => awaitsCompany(services, row),
  endsIfHeld: (row, isJudged) => blocksOthers(services, row, isJudged),
  isSignedTogether: (row) => row.plan.together !== undefined,
  async purpose(row, _replacement, of) {
    const parts = await partsOf(services.database, row.workspace_id, row.id)
    if (parts.length > 0) return sharedPurpose(services, row.workspace_id, parts, of)
    const parent = await services.database.one<TransactionRow>(
      'select * from transactions where workspace_id = $2 and id = $1',
      [row.parent_id, row.workspace_id],
    )
    if (!parent) throw new Error('a fuel transaction has no parent transaction')
    const {
      replacement: id,
      for_gas: gas,
      for_max_fee_per_gas: price,
      for_l1_fee: l1Fee,
    } = row.plan
    const replacement = id
      ? (await replacementsOf(services.database, parent)).find((each) => each.id === id)
      : undefined
    return {
      kind: 'fuel',
      for: await of(parent, replacement),
      gas: String(gas),
      max_fee_per_gas: String(price),
      l1_fee: l1Fee ?? '0',
    }
  },
  // Fuel is booked as soon as it is in a block: the transfer waits for it, and its bytes stay valid
  // if the block is reorganised. On chains where transactions may expire, it is booked when it is
  // final.
  async included(tx, row, o) {
    if (o.final || !nothingExcludes(services.networks.get(row.network))) await bookFuel(tx, row, o)
  },
  settle: (tx, row, o) => endTransaction(services, tx, row, o, false),
  async undo(tx, row, { succeeded }) {
    await reverseSettled(tx, row, ['fuel', 'fuel-fee'])
    if (succeeded) await bookUnused(tx, row, -1n)
    return { settled: null }
  },
  bumpAfterMs: () => FUEL_BUMP_AFTER_MS,
  release: (tx, row) => giveBack(tx, row, BigInt(row.plan.need ?? '0')),
})

/**
 * Whether a fuel transaction that a policy does not allow now blocks the gas tank or other transfers
 * that share it, and the policy judges what it is for before it is started again.
 */
async function blocksOthers(
  { database, networks }: Services,
  row: TransactionRow<'FUEL'>,
  isJudged: (served: TransactionRow) => boolean,
): Promise<boolean> {
  const isShared = (await partsOf(database, row.workspace_id, row.id)).length > 1
  if (!networks.get(row.network).nextNonce && !isShared) return false
  const served = await database.one<TransactionRow>(
    'select * from transactions where workspace_id = $1 and id = $2',
    [row.workspace_id, row.parent_id],
  )
  return served !== undefined && isJudged(served)
}

/** Returns a purpose that contains each transfer's own request and its maximum cost. */
async function sharedPurpose(
  services: Services,
  workspace: string,
  parts: Awaited<ReturnType<typeof partsOf>>,
  of: AskPurpose,
): Promise<Purpose> {
  const rows = await services.database.query<TransactionRow>(
    'select * from transactions where workspace_id = $2 and id = any($1)',
    [parts.map(({ transaction_id: id }) => id), workspace],
  )
  const shown = await Promise.all(
    parts.map(async ({ transaction_id: id, gas, max_fee_per_gas, l1_fee }) => {
      const row = rows.find((each) => each.id === id)
      if (!row) throw new Error('a fuel transaction has no parent transaction')
      return { for: await of(row), gas, max_fee_per_gas, l1_fee }
    }),
  )
  const [first, ...beside] = shown
  if (!first) throw new Error('a fuel transaction has no parent transaction')
  return { kind: 'fuel', ...first, ...(beside.length === 0 ? {} : { beside }) }
}

async function bookFuel(
  tx: Queryable,
  row: TransactionRow,
  { fee, feeMax, succeeded, final }: Included,
): Promise<void> {
  const scope = { workspace: row.workspace_id, asset: row.asset }
  const amount = BigInt(row.amount)
  // `need` includes the L1 fee of a rollup, which the transaction's own fee limit does not contain.
  const reserved = amount + BigInt(row.plan.need ?? feeMax)
  const moved = succeeded ? amount : 0n
  const done = await post(tx, 'fuel', settlementReference(row), [
    { ...scope, kind: 'tank_reserved', amount: -reserved },
    { ...scope, kind: 'float_reserved', address: row.destination_id, amount: moved },
    { ...scope, kind: 'chain', amount: fee },
    { ...scope, kind: 'tank', amount: reserved - moved - fee },
  ])
  if (!done) {
    if (final) await correctFee(tx, row, fee)
    return
  }
  if (succeeded) {
    if (generationOf(row) > 0) await bookUnused(tx, row, 1n)
    await tx.query(
      `update transactions set plan = plan || '{"settled":"1"}' where workspace_id = $2 and id = $1`,
      [row.id, row.workspace_id],
    )
  }
  await wakeFuelled(tx, row)
}

/**
 * Moves the parts of a fuel transaction whose transfers have failed to the free float, after a
 * reorganisation: they no longer reserve it.
 * @param sign 1: fuel that arrived again; -1: fuel that was taken back after its transfer had failed
 */
async function bookUnused(tx: Queryable, row: TransactionRow, sign: 1n | -1n): Promise<void> {
  const unused = await tx.query<{ amount: string }>(
    // The rows are locked, so that none of these transfers fails meanwhile.
    `select coalesce(p.amount, $3::numeric)::text amount from transactions t
       left join fuel_parts p on p.workspace_id = t.workspace_id and p.fuel_id = $2
         and p.transaction_id = t.id
     where t.workspace_id = $1 and t.status = 'failed' and (t.state = 'PARTIAL' or not exists (
         select 1 from chain_transactions c where c.workspace_id = $1 and c.transaction_id = t.id
           and c.state = 'CONFIRMED'))
       and t.id = any(array(
       select transaction_id from fuel_parts where workspace_id = $1 and fuel_id = $2
       union select $4::uuid)) for update of t`,
    [row.workspace_id, row.id, row.amount, row.parent_id],
  )
  const amount = sign * unused.reduce((sum, part) => sum + BigInt(part.amount), 0n)
  if (amount === 0n) return
  const scope = { workspace: row.workspace_id, asset: row.asset, address: row.destination_id }
  await post(
    tx,
    sign > 0n ? 'fuel-unused' : 'fuel-unused-reverted',
    settlementReference(row),
    [
      { ...scope, kind: 'float_reserved', amount: -amount },
      { ...scope, kind: 'float', amount },
    ],
    { overdraw: true },
  )
}

/**
 * Books the difference in the tank once the fee is final: after a reorganisation, the transaction
 * may be in a block with another base fee.
 */
async function correctFee(tx: Queryable, row: TransactionRow, fee: bigint): Promise<void> {
  const booked = await tx.one<{ amount: string }>(
    `select p.amount::text from ledger_entries e
       join ledger_postings p on p.workspace_id = e.workspace_id and p.entry_id = e.id
       join ledger_accounts a on a.workspace_id = p.workspace_id and a.id = p.account_id
     where e.workspace_id = $2 and e.kind = 'fuel' and e.reference = $1 and a.kind = 'chain'`,
    [settlementReference(row), row.workspace_id],
  )
  const more = fee - BigInt(booked?.amount ?? '0')
  if (more === 0n) return
  const scope = { workspace: row.workspace_id, asset: row.asset }
  await postSettled(
    tx,
    row,
    'fuel-fee',
    [
      { ...scope, kind: 'tank', amount: -more },
      { ...scope, kind: 'chain', amount: more },
    ],
    { overdraw: true },
  )
}

/** Drain: sends the full balance of a gas tank to the address in the operator's recorded order. */
export const drainKind = (
  services: Pick<Services, 'environment' | 'registry' | 'metrics'>,
): Kind<'DRAIN'> => ({
  states: TANK_STATES,
  endsIfHeld: async () => true,
  purpose: async (row) => ({ kind: 'drain', order: String(row.plan.order) }),
  async settle(tx, row, o) {
    const scope = { workspace: row.workspace_id, asset: row.asset }
    const reserved = BigInt(row.amount) + BigInt(row.plan.reserved_fee ?? '0')
    const moved = o.succeeded ? BigInt(row.amount) : 0n
    await postSettled(tx, row, 'settle', [
      { ...scope, kind: 'tank_reserved', amount: -reserved },
      { ...scope, kind: 'chain', amount: moved + o.fee },
      { ...scope, kind: 'tank', amount: reserved - moved - o.fee },
    ])
    await endTransaction(services, tx, row, o, false)
  },
  async undo(tx, row) {
    await reverseSettled(tx, row, ['settle'])
    return {}
  },
  release: (tx, row) => giveBack(tx, row, BigInt(row.plan.reserved_fee ?? '0')),
})

/** A payment into a gas tank, which the scanner credits. */
export const tankDepositKind: Kind<'TANK_DEPOSIT'> = {
  states: [
    { state: 'CONFIRMING', next: ['CREDITED', 'REORGED'] },
    { state: 'CREDITED', next: ['REORGED'] },
    { state: 'REORGED', next: ['CONFIRMING'] },
  ],
}

async function giveBack(
  tx: Queryable,
  row: TransactionRow,
  fee: bigint,
): Promise<Record<string, never>> {
  const scope = { workspace: row.workspace_id, asset: row.asset }
  const held = BigInt(row.amount) + fee
  await post(tx, 'release', row.id, [
    { ...scope, kind: 'tank_reserved', amount: -held },
    { ...scope, kind: 'tank', amount: held },
  ])
  await wakeFuelled(tx, row)
  return {}
}
