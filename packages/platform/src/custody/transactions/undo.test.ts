import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { afterEach, before, test } from 'node:test'
import type { Queryable } from '../../core/database/pool.ts'
import { undoAbove } from '../../core/engine/outcomes/undo.ts'
import type { Included, Outcome } from '../../core/engine/interfaces/kind.ts'
import type { TransactionKind, TransactionRow } from '../../core/engine/transaction.ts'
import { post, type AccountKind, type Posting } from '../../core/ledger/post.ts'
import { createMetrics } from '../../core/metrics.ts'
import { createKinds } from '../../server/app/kinds.ts'
import { registry, useDatabase } from '../../../testing/deposits-support.ts'
import { partialApplication } from '../../../testing/partial-application.ts'
import * as fc from '../../../../../testing/property.ts'
import { forwards } from '../auto-forwarding/forwards.ts'

/**
 * Property: whatever blocks settle, take back and settle again, with another result each time, the
 * ledger ends as if only the last chain had existed. It is tested for every kind of transaction that a
 * block settles, against a transaction that was settled once.
 */
const installation = useDatabase({ migrated: true })
const database = () => installation.get()

const NOW = Date.UTC(2030, 0, 1)
const log = { info() {}, warn() {}, error() {}, debug() {} }
const services = () => {
  const given = partialApplication({
    environment: { now: () => NOW, uuid: () => randomUUID(), checkpoint() {} },
    database: database(),
    registry,
    log,
    metrics: createMetrics(),
    settings: { feeBumpAfterMs: 0, sweep: {} },
    forwards,
    keys: {},
    networks: {
      get: (code: string) => ({
        network: registry.network(code),
        fuelled: code === 'ETH' || code === 'TRX' ? {} : null,
        coins: null,
      }),
    },
  })
  return Object.assign(given, { kinds: createKinds(given) })
}

const place = { workspace: '', subAccount: '', wallets: {} as Record<string, string> }
before(async () => {
  await installation.started
  place.workspace = (await database().one<{ id: string }>(
    `insert into workspaces (name) values ('acme') returning id`,
  ))!.id
  place.subAccount = (await database().one<{ id: string }>(
    `insert into sub_accounts (workspace_id, name, path_index) values ($1, 'main', 1) returning id`,
    [place.workspace],
  ))!.id
  for (const [asset, network] of Object.entries(NETWORKS)) {
    place.wallets[asset] = (await database().one<{ id: string }>(
      `insert into wallets (workspace_id, sub_account_id, asset, network) values ($1, $2, $3, $4)
         returning id`,
      [place.workspace, place.subAccount, asset, network],
    ))!.id
  }
  for (const network of ['ETH', 'SOL', 'TRX'])
    await database().query(
      `insert into chain_addresses (network, address, workspace_id, sub_account_id, path_index, kind)
       values ($1, 'omnibus', $2, $3, 0, 'omnibus')`,
      [network, place.workspace, place.subAccount],
    )
})

const emptied = () =>
  installation.admin().query(
    `truncate ledger_postings, ledger_entries, ledger_accounts, events, cooldowns, forwards,
         forward_rules, chain_transactions, transaction_states, transactions cascade`,
  )
afterEach(emptied)

const NETWORKS: Record<string, string> = {
  BTC: 'BTC',
  ETH: 'ETH',
  USDT_ETH: 'ETH',
  TRX: 'TRX',
  SOL: 'SOL',
  USDC_SOL: 'SOL',
}
const AMOUNT = 1000n
const NEED = 100n

/** A kind of settlement: its row, and what it holds in the ledger before any block. */
interface Settlement {
  kind: TransactionKind
  asset: string
  plan?: Record<string, string>
  destination?: string
  /** What the row has reserved; the outside world balances it. */
  held: readonly (readonly [AccountKind, bigint, string?, string?])[]
  /** Its calls, in order, if it has several. */
  steps?: readonly string[]
  isForward?: boolean
}

const OF_WALLET = new Set<AccountKind>([
  'available',
  'reserved',
  'unswept',
  'cooling',
  'staked_bandwidth_reserved',
])
const isTank = (kind: TransactionKind) => ['FUEL', 'DRAIN', 'LEND', 'LEND_BACK'].includes(kind)
const staked = (kind: AccountKind, address: string) => [kind, AMOUNT, address] as const

const SETTLEMENTS: Record<string, Settlement> = {
  withdrawal: {
    kind: 'WITHDRAWAL',
    asset: 'BTC',
    plan: { fee_reserve: '100' },
    held: [['reserved', AMOUNT + NEED]],
  },
  'withdrawal with fuel': {
    kind: 'WITHDRAWAL',
    asset: 'ETH',
    plan: { need: '100' },
    held: [
      ['reserved', AMOUNT],
      ['float_reserved', NEED, 'source', 'ETH'],
    ],
  },
  'withdrawal paid by another wallet': {
    kind: 'WITHDRAWAL',
    asset: 'USDC_SOL',
    plan: { fee_wallet: 'SOL', fee_held: '100' },
    held: [
      ['reserved', AMOUNT],
      ['reserved', NEED, undefined, 'SOL'],
    ],
  },
  forward: {
    kind: 'WITHDRAWAL',
    asset: 'BTC',
    plan: { fee_reserve: '100' },
    held: [['reserved', AMOUNT + NEED]],
    isForward: true,
  },
  consolidation: {
    kind: 'CONSOLIDATION',
    asset: 'BTC',
    plan: { fee_reserve: '100', sum_most: '1100' },
    held: [['reserved', NEED]],
  },
  sweep: {
    kind: 'SWEEP',
    asset: 'ETH',
    plan: { need: '100', height: '1' },
    held: [
      ['unswept', AMOUNT, 'source'],
      ['float_reserved', NEED, 'source', 'ETH'],
    ],
  },
  'sweep that pays itself': {
    kind: 'SWEEP',
    asset: 'SOL',
    plan: { need: '100', own: '1', height: '1' },
    held: [['unswept', AMOUNT + NEED, 'source']],
  },
  fuel: {
    kind: 'FUEL',
    asset: 'ETH',
    plan: { need: '100' },
    held: [['tank_reserved', AMOUNT + NEED]],
  },
  drain: {
    kind: 'DRAIN',
    asset: 'ETH',
    plan: { reserved_fee: '100' },
    held: [['tank_reserved', AMOUNT + NEED]],
  },
  loan: {
    kind: 'LEND',
    asset: 'TRX',
    plan: { reserved_fee: '100', back_fee: '100' },
    held: [
      ['tank_reserved', 2n * NEED],
      ['staked_energy_reserved', AMOUNT, 'source'],
    ],
  },
  'return of a loan': {
    kind: 'LEND_BACK',
    asset: 'TRX',
    plan: { reserved_fee: '100' },
    held: [
      ['tank_reserved', NEED],
      ['staked_energy', AMOUNT, 'destination'],
    ],
  },
  stake: {
    kind: 'STAKE',
    asset: 'TRX',
    plan: { need: '100', resource: 'ENERGY', float_taken: '100' },
    destination: 'source',
    held: [
      ['reserved', AMOUNT],
      ['float_reserved', NEED, 'source', 'TRX'],
    ],
    steps: ['freeze'],
  },
  'stake for another address': {
    kind: 'STAKE',
    asset: 'TRX',
    plan: { need: '200', resource: 'ENERGY', float_taken: '200' },
    held: [
      ['reserved', AMOUNT],
      ['float_reserved', 2n * NEED, 'source', 'TRX'],
    ],
    steps: ['freeze', 'delegate'],
  },
  unstake: {
    kind: 'UNSTAKE',
    asset: 'TRX',
    plan: { need: '200', resource: 'BANDWIDTH', delay_days: '14', float_taken: '200' },
    held: [
      staked('staked_bandwidth_reserved', 'destination'),
      ['float_reserved', 2n * NEED, 'source', 'TRX'],
    ],
    steps: ['undelegate', 'unfreeze'],
  },
  release: {
    kind: 'RELEASE',
    asset: 'TRX',
    plan: { need: '100', float_taken: '100' },
    held: [
      ['cooling', AMOUNT, 'destination'],
      ['float_reserved', NEED, 'source', 'TRX'],
    ],
    steps: ['withdraw'],
  },
}

/** What happens next. `undo`: a reorganisation removes this many of the settled blocks. */
type Event =
  | { is: 'settle'; fee: bigint; succeeded: boolean; cancelled: boolean }
  | { is: 'undo'; blocks: number }
  | { is: 'fail' }

const event: fc.Arbitrary<Event> = fc.oneof(
  fc.record({
    is: fc.constant('settle' as const),
    fee: fc.bigInt({ min: 0n, max: NEED }),
    succeeded: fc.boolean(),
    cancelled: fc.integer({ min: 0, max: 5 }).map((n) => n === 0),
  }),
  fc.record({ is: fc.constant('undo' as const), blocks: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ is: fc.constant('fail' as const) }),
)

/** One transaction of a settlement's kind, and the blocks that have settled it. */
class Subject {
  readonly id = randomUUID()
  readonly #of: Settlement
  readonly #tx: Queryable
  #settled: { height: number; event: Event }[] = []
  #height = 100
  /** Whether it was ended without a block. */
  #hasFailed = false

  constructor(tx: Queryable, of: Settlement) {
    this.#tx = tx
    this.#of = of
  }

  get network(): string {
    return NETWORKS[this.#of.asset] as string
  }

  async open(): Promise<void> {
    const { kind, asset, held, steps = [null], destination = 'destination' } = this.#of
    const tx = this.#tx
    const plan = { ...this.#of.plan }
    if (plan['fee_wallet'] !== undefined) plan['fee_wallet'] = place.wallets['SOL'] as string
    if (this.#of.isForward) plan['rule_id'] = this.id
    const feeAsset = asset === 'USDC_SOL' ? 'SOL' : asset
    await tx.query(
      `insert into transactions (id, kind, workspace_id, sub_account_id, wallet_id, asset, network,
         amount, fee, fee_asset, source_type, source_id, destination_type, destination_id, state,
         status, created_at, plan, hash, lease_token)
       values ($1::uuid, $2, $3, $4, $5, $6, $7, $8, 0, $9, 'INTERNAL', 'source', 'EXTERNAL', $10,
         'CONFIRMING', 'pending', now(), $11, $1::uuid::text, $1::uuid)`,
      [
        this.id,
        kind,
        place.workspace,
        place.subAccount,
        isTank(kind) ? null : place.wallets[asset],
        asset,
        this.network,
        AMOUNT.toString(),
        feeAsset,
        destination,
        JSON.stringify(plan),
      ],
    )
    for (const [at, step] of steps.entries()) {
      await tx.query(
        `insert into chain_transactions (id, workspace_id, transaction_id, network, attempt, state, step,
           unsigned, signed, hash, fee_max)
         values ($1, $2, $3, $4, $5, 'SIGNED', $6, '{}', '', $7, 120)`,
        [randomUUID(), place.workspace, this.id, this.network, at + 1, step, `${this.id}-${at}`],
      )
    }
    if (kind === 'RELEASE')
      await tx.query(
        `insert into cooldowns (transaction_id, wallet_id, network, account, address, resource, amount,
           release_at, workspace_id, releasing_by)
         values ($1, $2, 'TRX', 'source', 'destination', 'ENERGY', $3, now(), $4, $5)`,
        [await this.#unstaked(), place.wallets['TRX'], AMOUNT.toString(), place.workspace, this.id],
      )
    if (kind === 'SWEEP') await this.#deposits()
    if (this.#of.isForward) await this.#rule()
    const postings = held.map(([of, amount, address, other]): Posting => ({
      workspace: place.workspace,
      wallet: !isTank(kind) && OF_WALLET.has(of) ? (place.wallets[other ?? asset] ?? null) : null,
      asset: other ?? asset,
      kind: of,
      address: address ?? null,
      amount,
    }))
    const outside = postings.map((each) => ({
      ...each,
      wallet: null,
      kind: 'chain' as const,
      address: null,
      amount: -each.amount,
    }))
    await post(tx, 'reserve', this.id, [...postings, ...outside])
  }

  /** Inserts an unstake whose cooldown is released. */
  async #unstaked(): Promise<string> {
    const id = randomUUID()
    await this.#tx.query(
      `insert into transactions (id, kind, workspace_id, sub_account_id, wallet_id, asset, network,
         amount, fee, fee_asset, source_type, destination_type, state, status, created_at)
       values ($1, 'UNSTAKE', $2, $3, $4, 'TRX', 'TRX', 1000, 0, 'TRX', 'INTERNAL', 'INTERNAL',
         'CONFIRMED', 'confirmed', now())`,
      [id, place.workspace, place.subAccount, place.wallets['TRX']],
    )
    return id
  }

  /** Inserts a deposit that the sweep moves, and one that an earlier sweep moved. */
  async #deposits(): Promise<void> {
    for (const [kind, state, seconds] of [
      ['DEPOSIT', 'SWEPT', 30],
      ['SWEEP', 'CONFIRMED', 20],
      ['DEPOSIT', 'CREDITED', 10],
    ])
      await this.#tx.query(
        `insert into transactions (id, kind, workspace_id, sub_account_id, wallet_id, asset, network,
           amount, fee, fee_asset, source_type, source_id, destination_type, destination_id, state,
           status, created_at, updated_at, plan)
         values ($1, $2, $3, $4, $5, $6, $7, 1, 0, $6, 'EXTERNAL', 'source', 'INTERNAL', 'source', $8,
           'confirmed', now(), now() - $9 * interval '1 second',
           case when $2 = 'SWEEP' then jsonb_build_object('height', '0') else '{}' end)`,
        [
          randomUUID(),
          kind,
          place.workspace,
          place.subAccount,
          place.wallets[this.#of.asset],
          this.#of.asset,
          this.network,
          state,
          seconds,
        ],
      )
  }

  async #rule(): Promise<void> {
    await this.#tx.query(
      `insert into forward_rules (id, workspace_id, sub_account_id, wallet_id, asset, network,
         min_amount, daily_cap, destination, expires_at, state, request, created_at)
       values ($1, $2, $3, $4, 'BTC', 'BTC', 1, 1000, 'destination', now(), 'ENDED', '{}', now())`,
      [this.id, place.workspace, place.subAccount, place.wallets['BTC']],
    )
    await this.#tx.query(
      `insert into forwards (workspace_id, transaction_id, rule_id, amount, created_at)
       values ($1, $2, $2, 1000, now())`,
      [place.workspace, this.id],
    )
  }

  async row(): Promise<TransactionRow> {
    return (await this.#tx.one<TransactionRow>(
      'update transactions set lease_token = id where id = $1 returning *',
      [this.id],
    ))!
  }

  async apply(next: Event): Promise<void> {
    if (next.is === 'undo') return this.#undo(next.blocks)
    const row = await this.row()
    if (row.status !== 'pending') return
    await (next.is === 'settle' ? this.#settle(row, next) : this.#fail(row))
  }

  async #settle(row: TransactionRow, next: Event & { is: 'settle' }): Promise<void> {
    const { kind, steps = [null] } = this.#of
    const rule = services().kinds[kind]
    const step = steps[Number(row.plan.step ?? '0')] ?? null
    const height = this.#height++
    const cancelled = next.cancelled && kind === 'WITHDRAWAL'
    const chain: Included = {
      fee: next.fee,
      feeMax: 120n,
      succeeded: next.succeeded,
      final: true,
    }
    await this.#tx.query(
      `update chain_transactions set state = 'CONFIRMED', block_height = $3, block_hash = 'block',
         fee = $4, succeeded = $5 where transaction_id = $1 and step is not distinct from $2`,
      [this.id, step, height, next.fee.toString(), next.succeeded],
    )
    await rule.included?.(this.#tx, row, chain)
    const outcome: Outcome = {
      fee: next.fee,
      succeeded: next.succeeded && !cancelled,
      cancelled,
      confirmations: 3,
      staking:
        steps[0] === null
          ? undefined
          : {
              withdrawn: step === 'withdraw' && next.succeeded ? AMOUNT : 0n,
              time: NOW,
            },
    }
    await rule.settle?.(this.#tx, row, outcome)
    this.#settled.push({ height, event: next })
  }

  /** Ends it without another block, as when its bytes have expired. */
  async #fail(row: TransactionRow): Promise<void> {
    const rule = services().kinds[this.#of.kind]
    if (!rule.release) return
    await rule.failing?.(this.#tx, row, 'expired')
    const { state = 'FAILED' } = await rule.release(this.#tx, row, 'expired')
    await this.#tx.query(
      `update transactions set state = $2, status = 'failed', lease_token = null where id = $1`,
      [this.id, state],
    )
    this.#hasFailed = true
  }

  async #undo(blocks: number): Promise<void> {
    const gone = this.#settled.splice(Math.max(0, this.#settled.length - blocks))
    const [lowest] = gone
    if (!lowest) return
    this.#hasFailed = false
    const before = await this.row()
    await undoAbove(services(), this.#tx, this.network, lowest.height - 1)
    const row = await this.row()
    assert.deepEqual(
      [row.status, row.state, row.confirmed_at, row.failure_reason, row.confirmations],
      ['pending', 'CONFIRMING', null, null, 0],
    )
    assert.equal(
      Number(row.plan.generation),
      Number(before.plan.generation ?? '0') + gone.length,
      'each settled block that is taken back is a generation',
    )
  }

  /** What the last chain has of it: the settled blocks that are left, and its end without a block. */
  get story(): Event[] {
    return [
      ...this.#settled.map((each) => each.event),
      ...(this.#hasFailed ? [{ is: 'fail' } as const] : []),
    ]
  }
}

/** Everything that a settlement changes, without what identifies the transaction. */
async function stateOf(tx: Queryable, subject: Subject) {
  const balances = await tx.query(
    `select asset, kind, address, wallet_id, balance::text from ledger_accounts where balance <> 0
      order by asset, kind, address, wallet_id`,
  )
  const { state, status, plan, failure_reason: reason } = await subject.row()
  const { generation: _, rule_id: _rule, ...rest } = plan
  const cooldowns = await tx.query(
    `select amount::text, released_by is null "isCooling",
       released_by is null and releasing_by is null "isFree" from cooldowns order by 1, 2, 3`,
  )
  const deposits = await tx.query(
    `select state from transactions where kind = 'DEPOSIT' order by created_at, state`,
  )
  const rules = await tx.query('select waiting::text, ahead::text from forward_rules')
  const chain = await tx.query(
    `select attempt, state, fee::text, succeeded, block_hash from chain_transactions order by attempt`,
  )
  const set = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null))
  // One whose next call is signed already is sent again; otherwise that call is built.
  const stage = status === 'pending' ? 'pending' : state
  return { balances, cooldowns, deposits, rules, chain, stage, status, reason, plan: set }
}

class RolledBack extends Error {}

/** Runs a story on a new transaction, returns the resulting state and story, and takes everything back. */
async function played(of: Settlement, events: readonly Event[]) {
  let result: { state: Awaited<ReturnType<typeof stateOf>>; story: Event[] } | undefined
  await database()
    .transaction(async (tx) => {
      const subject = new Subject(tx, of)
      await subject.open()
      for (const next of events) await subject.apply(next)
      result = { state: await stateOf(tx, subject), story: subject.story }
      throw new RolledBack()
    })
    .catch((error: unknown) => {
      if (!(error instanceof RolledBack)) throw error
    })
  return result!
}

for (const [name, of] of Object.entries(SETTLEMENTS)) {
  test(`${name}: the books are those of the last chain, whatever was taken back before`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 1, maxLength: 8 }), async (events) => {
        const { state, story } = await played(of, events)
        const once = await played(of, story)
        assert.deepEqual(state, once.state)
      }),
      { numRuns: 60 },
    )
  })
}
