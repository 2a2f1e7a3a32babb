import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import * as fc from '../../../test/property.ts'
import type { Database } from '../src/database/pool.ts'
import { insertTransaction } from '../src/engine/insert.ts'
import { ApiError } from '../src/errors.ts'
import { createAccount } from '../src/exchanges/create-account.ts'
import { deleteAccount } from '../src/exchanges/delete-account.ts'
import { claim } from '../src/exchanges/lease.ts'
import { workOn } from '../src/exchanges/work.ts'
import { compareAccount } from '../src/exchanges/reconcile.ts'
import { createExchangeWithdrawal } from '../src/exchange-transfers/create-withdrawal.ts'
import { checkExchangeDestination } from '../src/exchange-transfers/destination.ts'
import { exchangeTransferLoop } from '../src/exchange-transfers/loop.ts'
import { readExchangeAddress } from '../src/exchange-transfers/read-address.ts'
import { readExchangeTransfer } from '../src/exchange-transfers/read-transfer.ts'
import { stepTransfer } from '../src/exchange-transfers/step.ts'
import { TRANSFERS } from '../src/exchange-transfers/transfer.ts'
import type { Asset } from '@custody/chains'
import { Notifier } from '../src/ledger/notifier.ts'
import { pauseMethod } from './pausable-method.ts'
import { newId, useDatabase } from './deposits-support.ts'
import { FakeVenue } from './fake-venue.ts'
import { InvoiceFixture } from './invoices-fixture.ts'
import { testEmittedEvents } from './event-assertions.ts'

interface Transfer {
  id: string
  status: string
  sub_status: string
  reason: string | null
  hash: string | null
  transaction_id: string | null
  overdue: boolean
  credited: string | null
  fee: string | null
  [field: string]: unknown
}

/**
 * Coins between a BTC wallet and an exchange: real endpoints, steps, scanner, crediting and books;
 * exchange and blocks are the test's.
 */
class Stage extends InvoiceFixture {
  readonly venue = new FakeVenue(() => this.now)
  account = ''

  constructor(database: Database) {
    super(database, 'utxo')
    Object.assign(this.services, {
      exchangeTransfers: { due: new Notifier(this.services.environment) },
      exchanges: {
        has: () => true,
        only: null,
        traits: async () => this.venue.traits,
        tried: async () => this.venue,
        account: async () => this.venue,
        forget: () => undefined,
      },
    })
  }

  override async begin(): Promise<this> {
    await super.begin()
    await this.database.query('truncate exchange_accounts cascade')
    this.account = (
      await this.ask<{ id: string }>(createAccount, {
        exchange: 'kraken',
        label: 'main',
        api_key: 'key',
        api_secret: 'secret',
        allow_withdrawal: true,
      })
    ).body.id
    this.venue.address = {
      address: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
      tag: null,
      network: 'BTC',
    }
    return this
  }

  withdraw = (more: Record<string, unknown> = {}) =>
    this.ask<Transfer>(createExchangeWithdrawal, {
      exchange_account: this.account,
      asset: 'BTC',
      amount: '0.5',
      ...more,
    })
  show = async (id: string): Promise<Transfer> =>
    (await this.ask<Transfer>(readExchangeTransfer, {}, { id })).body

  /** All that is due within so many seconds. */
  async work(seconds = 0): Promise<void> {
    for (let at = 0; ; at++) {
      for (
        let row = await claim(this.services, TRANSFERS, []);
        row;
        row = await claim(this.services, TRANSFERS, [])
      ) {
        await workOn(this.services, TRANSFERS, row, stepTransfer)
      }
      if (at >= seconds) return
      this.now += 1000
    }
  }

  /** The exchange pays, a block holds it, and it is deep enough. */
  async arrive(at = 0): Promise<string> {
    const payout = this.venue.payouts[at] ?? assert.fail('no such withdrawal')
    const txid = 'ab'.repeat(31) + String(at).padStart(2, '0')
    this.venue.pay(payout, txid.toUpperCase())
    this.chain.mine({
      txid,
      outcome: [
        {
          position: 0,
          asset: 'BTC',
          address: payout.address as string,
          amount: payout.amount / 10n ** 10n,
        },
      ],
    })
    this.chain.bury()
    await this.settle()
    return txid
  }

  /** Whether the exchange says what the books claim. */
  async agrees(): Promise<boolean> {
    const row = await this.database.one('select * from exchange_accounts where id = $1', [
      this.account,
    ])
    return (await compareAccount(this.services, row as never)).gaps?.length === 0
  }

  wallet = async (): Promise<bigint> =>
    BigInt(
      (
        await this.database.one<{ sum: string }>(
          `select coalesce(sum(balance), 0)::text sum from ledger_accounts where asset = 'BTC' and kind = 'available'`,
        )
      )?.sum ?? '0',
    )

  /** A transfer that its caller has signed to the exchange, as the engine leaves it. */
  async carry(body: Record<string, unknown> = {}): Promise<{ id: string; transaction: string }> {
    const asset = this.services.registry.asset('BTC') as Asset
    const given = {
      asset: 'BTC',
      amount: '1',
      destination_address: this.venue.address.address,
      destination_type: 'EXCHANGE',
      source_type: 'INTERNAL',
      destination_id: this.account,
      ...body,
    }
    const checked = await checkExchangeDestination(this.services, this.caller, given as never, {
      asset,
      network: this.network,
      amount: 100_000_000n,
    })
    if (!checked) return { id: '', transaction: '' }
    const wallet = await this.database.one<{ id: string }>('select id from wallets limit 1')
    const transaction = await insertTransaction(this.database, {
      id: randomUUID(),
      kind: 'WITHDRAWAL',
      state: 'CREATED',
      workspace_id: this.caller.workspaceId,
      sub_account_id: this.caller.subAccountId,
      wallet_id: wallet?.id ?? null,
      asset: 'BTC',
      network: 'BTC',
      amount: 100_000_000n,
      fee_asset: 'BTC',
      source_type: 'INTERNAL',
      source_id: 'x',
      destination_type: 'EXCHANGE',
      destination_id: this.venue.address.address,
    })
    await this.database.query('select exchange_transfer_open($1, $2, $3)', [
      JSON.stringify(checked.row),
      transaction.id,
      checked.shown,
    ])
    return { id: checked.row.id, transaction: transaction.id }
  }

  /** What the chain did with it. */
  async becomes(
    transaction: string,
    change: { hash?: string; confirmations?: number; status?: string; state?: string },
  ): Promise<void> {
    for (const [column, value] of Object.entries(change))
      await this.database.query(`update transactions set ${column} = $2 where id = $1`, [
        transaction,
        value,
      ])
  }
}

let current: Stage | undefined
const database = useDatabase({ migrated: true, now: () => current?.now ?? Date.now() })
const open = async () => (current = await new Stage(database.get()).begin())
const refused = (code: string, message: RegExp) => (error: unknown) =>
  error instanceof ApiError && error.code === code && (assert.match(error.message, message), true)
const stateOf = ({ status, sub_status }: Transfer) => `${status} ${sub_status}`

test('a withdrawal from the exchange is followed to its deposit, which is not foreign and counts once', async () => {
  const stage = await open()
  const {
    body: { id },
  } = await stage.withdraw()
  await stage.work()
  assert.equal(stateOf(await stage.show(id)), 'pending WITHDRAWING')
  assert.ok(await stage.agrees(), 'it is off the books as it is off the account')
  const txid = await stage.arrive()
  await stage.work(70)
  const done = await stage.show(id)
  assert.deepEqual(
    [stateOf(done), done.fee, done.hash?.toLowerCase()],
    ['completed DONE', '0.0001', txid],
  )
  const deposit = await stage.database.one<{
    source_type: string
    source_id: string
    state: string
  }>('select source_type, source_id, state from transactions where id = $1', [done.transaction_id])
  assert.deepEqual([deposit?.source_type, deposit?.source_id], ['EXCHANGE', stage.account])
  assert.deepEqual(
    [await stage.wallet(), stage.venue.held, stage.venue.asked],
    [49_990_000n, 95n * 10n ** 17n, 1],
  )
  assert.ok(await stage.agrees())
})

test("an exchange that pays through a contract: the operator's adopted deposit ends the withdrawal", async () => {
  const stage = await open()
  const { id } = (await stage.withdraw()).body
  await stage.work()
  const txid = await stage.arrive()
  // As an adoption writes it: no scan has read a transaction.
  await stage.database.query(
    `update deposits set adopted = true, txid = 'adopted:' || transaction_id where txid = $1`,
    [txid],
  )
  await stage.work(120)
  const { status, transaction_id: deposit } = await stage.show(id)
  assert.equal(status, 'completed')
  assert.ok(deposit)
})

test("a lost answer: the exchange is queried by our id or by the withdrawal's content, and nothing is sent twice", async () => {
  for (const withdrawalId of [true, false]) {
    const stage = await open()
    stage.venue.traits = { ...stage.venue.traits, withdrawalId }
    stage.venue.mood = 'lost'
    const first = (await stage.withdraw()).body.id
    const second = (await stage.withdraw()).body.id
    await stage.work(10)
    assert.deepEqual(
      [stateOf(await stage.show(first)), stateOf(await stage.show(second))],
      ['pending WITHDRAWING', 'pending WITHDRAWING'],
    )
    assert.equal(stage.venue.asked, 2)
    const ids = await Promise.all(
      [first, second].map(async (id) => (await stage.show(id))['exchange_transfer_id']),
    )
    assert.deepEqual(
      ids.toSorted(),
      stage.venue.payouts.map(({ venueId }) => venueId).toSorted(),
      'each has one of its own',
    )
    await stage.arrive(0)
    await stage.arrive(1)
    await stage.work(70)
    assert.deepEqual(
      [stateOf(await stage.show(first)), stateOf(await stage.show(second))],
      ['completed DONE', 'completed DONE'],
    )
    assert.equal(await stage.wallet(), 99_980_000n)
    assert.ok(await stage.agrees())
  }
})

test('an exchange pays two withdrawals in one transaction: each gets its own deposit, in either order', async () => {
  const stage = await open()
  const [one, two] = [
    (await stage.withdraw()).body.id,
    (await stage.withdraw({ amount: '0.7' })).body.id,
  ]
  await stage.work()
  const outcome = stage.venue.payouts.toReversed().map((payout, position) => {
    stage.venue.pay(payout, 'cd'.repeat(32))
    return {
      position,
      asset: 'BTC',
      address: payout.address as string,
      amount: payout.amount / 10n ** 10n,
    }
  })
  stage.chain.mine({ txid: 'cd'.repeat(32), outcome })
  stage.chain.bury()
  await stage.settle()
  await stage.work(70)
  const [first, second] = await Promise.all([one, two].map((id) => stage.show(id)))
  assert.deepEqual(
    [first, second].map((each) => stateOf(each as Transfer)),
    ['completed DONE', 'completed DONE'],
  )
  const amounts = await Promise.all(
    [first, second].map(
      async (each) =>
        (
          await stage.database.one<{ amount: string }>(
            'select amount::text from transactions where id = $1',
            [each?.transaction_id],
          )
        )?.amount,
    ),
  )
  assert.deepEqual(amounts, ['49990000', '69990000'], 'each is the deposit of its own amount')
  assert.ok(await stage.agrees())
})

test('a list without the tag or the address does not hide a withdrawal whose answer was lost', async () => {
  for (const untold of [{ tag: null }, { address: null }]) {
    const stage = await open()
    stage.venue.traits = { ...stage.venue.traits, withdrawalId: false }
    stage.venue.mood = 'lost'
    const {
      body: { id },
    } = await stage.withdraw()
    await stage.database.query(`update exchange_transfers set address_tag = $2 where id = $1`, [
      id,
      'tag' in untold ? '7' : null,
    ])
    stage.venue.isDown = true
    await stage.work()
    Object.assign(stage.venue.payouts[0] ?? assert.fail('nothing was paid'), untold)
    stage.venue.isDown = false
    await stage.work(120)
    assert.deepEqual(
      [stateOf(await stage.show(id)), stage.venue.asked],
      ['pending WITHDRAWING', 1],
      JSON.stringify(untold),
    )
  }
})

test('a withdrawal that the exchange never accepted: failed once proven, else unknown with an alert', async () => {
  const stage = await open()
  stage.venue.mood = 'never'
  const {
    body: { id },
  } = await stage.withdraw()
  await stage.work(60)
  assert.equal(stateOf(await stage.show(id)), 'unknown ASKING')
  stage.venue.isDown = true
  await stage.work(100)
  assert.equal(
    stateOf(await stage.show(id)),
    'unknown ASKING',
    'an exchange that is away proves nothing',
  )
  stage.venue.isDown = false
  await stage.work(70)
  assert.deepEqual(
    [stateOf(await stage.show(id)), (await stage.show(id)).reason],
    ['failed FAILED', 'NOT_TAKEN'],
  )
  stage.venue.traits = { ...stage.venue.traits, absence: null }
  stage.venue.mood = 'never'
  const other = (await stage.withdraw()).body.id
  await stage.work(600)
  assert.deepEqual(
    [stateOf(await stage.show(other)), (await stage.show(other)).overdue],
    ['unknown ASKING', true],
  )
  assert.ok(
    stage.logged.some(
      ({ level, message }) => level === 'error' && message.startsWith('it is unknown'),
    ),
  )
  assert.equal(stage.venue.asked, 2)
  assert.ok(await stage.agrees())
})

test('a process that dies at any point: the next one continues, nothing is sent or booked twice', async () => {
  for (const name of ['sending', 'answered', 'taken', 'arrived']) {
    const stage = await open()
    const {
      body: { id },
    } = await stage.withdraw()
    stage.crashAt = `exchange-withdrawal.${name}`
    await stage.work(1)
    // The lease of the dead one runs out.
    await stage.work(130)
    if (name !== 'sending') await stage.arrive()
    await stage.work(260)
    assert.equal(stage.crashAt, null, name)
    const wanted = name === 'sending' ? 'failed FAILED' : 'completed DONE'
    assert.deepEqual(
      [stateOf(await stage.show(id)), stage.venue.asked],
      [wanted, name === 'sending' ? 0 : 1],
      name,
    )
    assert.ok(await stage.agrees(), name)
  }
})

test('withdrawals that the exchange refuses, limits, cancels or leaves pending', async () => {
  const stage = await open()
  stage.venue.mood = 'refuse'
  const refusal = (await stage.withdraw()).body.id
  await stage.work()
  assert.deepEqual(
    [stateOf(await stage.show(refusal)), (await stage.show(refusal)).reason],
    ['failed FAILED', 'INSUFFICIENT_FUNDS'],
  )
  stage.venue.mood = 'later'
  const limited = (await stage.withdraw()).body.id
  await stage.work(3)
  assert.equal(stateOf(await stage.show(limited)), 'pending WITHDRAWING')
  const [payout] = stage.venue.payouts
  await assert.rejects(
    stage.ask(deleteAccount, {}, { id: stage.account }),
    refused('EXCHANGE_ACCOUNT_BUSY', /a transfer of the account is in progress/),
  )
  await stage.work(3700)
  assert.deepEqual(
    [stateOf(await stage.show(limited)), (await stage.show(limited)).overdue],
    ['pending WITHDRAWING', true],
  )
  stage.venue.giveBack(payout as NonNullable<typeof payout>)
  await stage.work(61)
  assert.deepEqual(
    [stateOf(await stage.show(limited)), await stage.wallet()],
    ['failed FAILED', 0n],
  )
  assert.ok(await stage.agrees(), 'given back')
  await stage.ask(deleteAccount, {}, { id: stage.account })
})

test('refused while the same request waits: that is refused too; one after the refusal is accepted', async () => {
  const stage = await open()
  const gate = pauseMethod(stage.services.exchanges, 'account')
  const body = { sequence_id: 'w1' }
  const waits = stage.withdraw(body)
  await gate.reached
  const status = (to: string) => stage.database.query('update wallets set status = $1', [to])
  await status('inactive')
  await assert.rejects(stage.withdraw(body), refused('WALLET_INACTIVE', /inactive/))
  await status('active')
  gate.open()
  await assert.rejects(waits, refused('WALLET_INACTIVE', /inactive/))
  const { body: taken } = await stage.withdraw(body)
  assert.deepEqual((await stage.withdraw(body)).body, taken)
  assert.equal((await stage.database.query('select 1 from exchange_transfers')).length, 1)
})

test('forbidden withdrawals and destinations are refused by the field, and the exchange is not contacted', async () => {
  const stage = await open()
  const { body: first } = await stage.withdraw({ sequence_id: 'w1' })
  const again = await stage.withdraw({ sequence_id: 'w1' })
  assert.deepEqual([again.body.id, again.headers['idempotent-replayed']], [first.id, 'true'])
  assert.ok((await stage.withdraw({ sequence_id: 'w1', amount: '1' })).headers['warning'])
  for (const [more, code, message] of [
    [{ amount: '0' }, 'INVALID_AMOUNT', /^amount: must be greater/],
    [{ amount: '0.00000001' }, 'INVALID_AMOUNT', /^amount: must be at least/],
    [
      { address: stage.venue.address.address },
      'INVALID_ADDRESS',
      /^address: is not an address of the BTC wallet; a withdrawal from an exchange can only be sent to one of its addresses/,
    ],
    [{ address: 'x' }, 'INVALID_ADDRESS', /^address: /],
    [{ address_tag: '7' }, 'INVALID_REQUEST', /^address_tag: /],
    [{ asset: 'XXX' }, 'UNSUPPORTED_ASSET', /asset/],
    [{ exchange_account: randomUUID() }, 'NOT_FOUND', /^exchange_account: /],
    [{ exchange_account: 'x' }, 'NOT_FOUND', /^exchange_account: /],
  ] as const)
    await assert.rejects(stage.withdraw(more), refused(code, message), JSON.stringify(more))
  stage.venue.isUnregistered = true
  await assert.rejects(
    stage.withdraw(),
    refused('NOT_FOUND', /^exchange_account: .*register it there first/),
  )
  await stage.database.query('update exchange_accounts set allow_withdrawal = false')
  await assert.rejects(
    stage.withdraw(),
    refused('INVALID_REQUEST', /^exchange_account: was linked without allow_withdrawal/),
  )
  const { caller } = stage
  stage.caller = { ...caller, subAccountId: randomUUID() }
  await assert.rejects(stage.withdraw(), refused('NOT_FOUND', /^exchange_account: /))
  await assert.rejects(
    stage.show(first.id),
    refused('NOT_FOUND', /exchange transfer .* does not exist/),
  )
  stage.caller = caller
  assert.equal((await stage.database.query('select 1 from exchange_transfers')).length, 1)
})

test("to the exchange: pending until it credits the chain's payment, once; a failed transfer ends it", async () => {
  const stage = await open()
  const { id, transaction } = await stage.carry()
  await stage.work(5)
  assert.equal(stateOf(await stage.show(id)), 'pending MOVING')
  const hash = newId().replaceAll('-', '').repeat(2)
  await stage.becomes(transaction, { hash, confirmations: 1, state: 'CONFIRMING' })
  await stage.work(20)
  assert.equal((await stage.show(id)).hash, hash)
  stage.venue.credit('ff'.repeat(32), 10n ** 17n)
  await stage.work(60)
  assert.equal(stateOf(await stage.show(id)), 'pending MOVING', 'another’s deposit is not this one')
  stage.venue.credit(hash, 10n ** 18n)
  stage.crashAt = 'exchange-transfer.credited'
  await stage.work(70)
  await stage.work(130)
  assert.deepEqual(
    [stateOf(await stage.show(id)), (await stage.show(id)).credited],
    ['completed DONE', '1'],
  )
  assert.equal(await stage.agrees(), false, 'what a stranger paid in stays a difference')
  stage.venue.held -= 10n ** 17n
  assert.ok(await stage.agrees())
  const other = await stage.carry()
  await stage.becomes(other.transaction, { status: 'failed', state: 'FAILED' })
  await stage.work(60)
  assert.equal(stateOf(await stage.show(other.id)), 'failed FAILED')
  assert.ok(await stage.agrees())
})

test("the address is the exchange's current one, which the caller signed; a changed one must be named twice", async () => {
  const stage = await open()
  const [one, two] = [
    stage.venue.address.address,
    'bcrt1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qzf4jry',
  ]
  await assert.rejects(
    stage.carry({ destination_address: two }),
    refused(
      'INVALID_ADDRESS',
      /^destination_address: the deposit address of this account at kraken for BTC is bcrt1qw508/,
    ),
  )
  await assert.rejects(
    stage.carry({ destination_id: undefined }),
    refused('INVALID_REQUEST', /^destination_id: /),
  )
  await assert.rejects(
    stage.carry({ destination_id: randomUUID() }),
    refused('NOT_FOUND', /^destination_id: /),
  )
  await assert.rejects(
    stage.carry({ destination_type: 'EXTERNAL' }),
    refused('INVALID_REQUEST', /^destination_id: is allowed only with/),
  )
  const told = async () =>
    (
      await stage.ask<Record<string, unknown>>(
        readExchangeAddress,
        {},
        { id: stage.account },
        { asset: 'BTC' },
      )
    ).body
  assert.deepEqual(await told(), {
    asset: 'BTC',
    network: 'BTC',
    address: one,
    address_tag: null,
    changed: false,
    previous: null,
  })
  await stage.carry()
  stage.venue.address = { ...stage.venue.address, address: two }
  assert.deepEqual(await told(), {
    asset: 'BTC',
    network: 'BTC',
    address: two,
    address_tag: null,
    changed: true,
    previous: { address: one, address_tag: null },
  })
  await assert.rejects(
    stage.carry(),
    refused(
      'EXCHANGE_ADDRESS_CHANGED',
      /^confirm_address: the deposit address at kraken for BTC was bcrt1qw508\w+ and is now bcrt1qrp33\w+;/,
    ),
  )
  await assert.rejects(
    stage.carry({ confirm_address: one }),
    refused('EXCHANGE_ADDRESS_CHANGED', /confirm_address/),
  )
  await stage.carry({ confirm_address: two })
  await stage.carry()
  stage.venue.address = { ...stage.venue.address, address: 'not an address' }
  await assert.rejects(stage.carry(), refused('EXCHANGE_UNAVAILABLE', /is not an address of BTC/))
  stage.venue.isDown = true
  await assert.rejects(stage.carry(), refused('EXCHANGE_UNAVAILABLE', /cannot be queried/))
  assert.equal((await stage.database.query('select 1 from exchange_transfers')).length, 3)
})

test('the loop of a platform does the same', async () => {
  const stage = await open()
  const {
    body: { id },
  } = await stage.withdraw()
  const over = new AbortController()
  const loop = exchangeTransferLoop(stage.services)
  await loop.run(over.signal)
  over.abort()
  await loop.run(over.signal)
  assert.equal(stateOf(await stage.show(id)), 'pending WITHDRAWING')
})

test('whatever fails: balances at the exchange, in transit and in the wallet plus fees equal the initial balance', async () => {
  const mood = fc.constantFrom('ok', 'ok', 'lost', 'never', 'refuse', 'later')
  const step = fc.record({
    what: fc.constantFrom('withdraw', 'withdraw', 'pay', 'back', 'work', 'die', 'down'),
    mood,
    at: fc.integer({ min: 0, max: 3 }),
    die: fc.constantFrom('sending', 'answered', 'taken', 'arrived'),
  })
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 3, maxLength: 9 }),
      fc.boolean(),
      async (steps, withdrawalId) => {
        const stage = await open()
        stage.venue.traits = { ...stage.venue.traits, withdrawalId }
        const total = stage.venue.held
        const paid = new Set<string>()
        const pay = async (at: number) => {
          const payout = stage.venue.payouts[at]
          if (payout?.status !== 'pending') return
          await stage.arrive(at)
          paid.add(payout.venueId)
        }
        for (const { what, mood: next, at, die } of steps) {
          if (what === 'withdraw') {
            stage.venue.mood = next as FakeVenue['mood']
            await stage.withdraw()
          }
          if (what === 'pay') await pay(at)
          if (what === 'back' && stage.venue.payouts[at]?.status === 'pending')
            stage.venue.giveBack(stage.venue.payouts[at])
          if (what === 'die') stage.crashAt = `exchange-withdrawal.${die}`
          if (what === 'down') stage.venue.isDown = !stage.venue.isDown
          await stage.work(what === 'work' ? 130 : 2)
        }
        stage.venue.isDown = false
        stage.crashAt = null
        stage.venue.mood = 'ok'
        await stage.work(400)
        for (const at of stage.venue.payouts.keys()) await pay(at)
        await stage.work(200)
        const rows = await stage.database.query<{ state: string }>(
          'select state from exchange_transfers',
        )
        assert.ok(
          rows.every(({ state }) => state === 'DONE' || state === 'FAILED'),
          JSON.stringify(rows),
        )
        const fees = stage.venue.fee * BigInt(paid.size)
        assert.equal(stage.venue.held + (await stage.wallet()) * 10n ** 10n + fees, total)
        assert.equal(
          rows.filter(({ state }) => state === 'DONE').length,
          paid.size,
          'each payout is one transfer',
        )
        assert.ok(await stage.agrees())
      },
    ),
    { numRuns: 12 },
  )
})

testEmittedEvents(database.get, ['exchange_transfer.created', 'exchange_transfer.updated'])
