import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import * as fc from '../../../../../testing/property.ts'
import type { Database } from '../../core/database/pool.ts'
import { insertTransaction } from '../../core/engine/insert.ts'
import { ApiError } from '../../core/errors.ts'
import { createAccount } from '../exchanges/create-account.ts'
import { deleteAccount } from '../exchanges/delete-account.ts'
import { claim } from '../exchanges/lease.ts'
import { workOn } from '../exchanges/work.ts'
import { compareAccount } from '../exchanges/reconcile.ts'
import { createExchangeWithdrawal } from './create-withdrawal.ts'
import { checkExchangeDestination } from './destination.ts'
import { exchangeTransferLoop } from './loop.ts'
import { readExchangeAddress } from './read-address.ts'
import { readExchangeTransfer } from './read-transfer.ts'
import { stepTransfer } from './step.ts'
import { TRANSFERS } from './transfer.ts'
import type { Asset } from '@custody/chains'
import { Notifier } from '../../core/ledger/notifier.ts'
import { pauseMethod } from '../../../testing/pausable-method.ts'
import { adminOf } from '../../../testing/test-database.ts'
import { newId, useDatabase } from '../../../testing/deposits-support.ts'
import { FakeVenue } from '../../../testing/venues/fake-venue.ts'
import { InvoiceFixture } from '../../../testing/invoices-fixture.ts'
import { testEmittedEvents } from '../../../testing/event-assertions.ts'

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
 * Transfers between a BTC wallet and an exchange with real endpoints, steps, scanner, crediting and
 * ledger. The test controls the exchange and the blocks.
 */
class TransferFixture extends InvoiceFixture {
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
    await adminOf(this.database).query('truncate exchange_accounts cascade')
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

  /** Processes all work that becomes due within `seconds`. */
  async work(seconds = 0): Promise<void> {
    for (let at = 0; ; at++) {
      for (
        let row = await claim(this.services, TRANSFERS, []);
        row;
        row = await claim(this.services, TRANSFERS, [])
      ) {
        await workOn(this.services, TRANSFERS, row, (leased) => stepTransfer(this.services, leased))
      }
      if (at >= seconds) return
      this.now += 1000
    }
  }

  /** Makes the exchange pay a withdrawal and mines the payment to full depth. */
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

  /** Returns whether the exchange's balances match the ledger. */
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
          `select coalesce(sum(balance), 0)::text sum from ledger_accounts where asset = 'BTC'
            and kind = 'available'`,
        )
      )?.sum ?? '0',
    )

  /**
   * Creates a transfer to the exchange that its caller has signed, in the state in which the engine
   * leaves it.
   */
  async carry(body: Record<string, unknown> = {}): Promise<{ id: string; transaction: string }> {
    const asset = this.services.registry.asset('BTC') as Asset
    const transferBody = {
      asset: 'BTC',
      amount: '1',
      destination_address: this.venue.address.address,
      destination_type: 'EXCHANGE',
      source_type: 'INTERNAL',
      destination_id: this.account,
      ...body,
    }
    const checked = await checkExchangeDestination(
      this.services,
      this.caller,
      transferBody as never,
      {
        asset,
        network: this.network,
        amount: 100_000_000n,
      },
    )
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

  /** Sets columns of a transaction to simulate its outcome on the chain. */
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

let current: TransferFixture | undefined
const database = useDatabase({ migrated: true, now: () => current?.now ?? Date.now() })
const open = async () => (current = await new TransferFixture(database.get()).begin())
const refused = (code: string, message: RegExp) => (error: unknown) =>
  error instanceof ApiError && error.code === code && (assert.match(error.message, message), true)
const stateOf = ({ status, sub_status }: Transfer) => `${status} ${sub_status}`

test('matches a withdrawal to its deposit, and credits that deposit once', async () => {
  const fixture = await open()
  const {
    body: { id },
  } = await fixture.withdraw()
  await fixture.work()
  assert.equal(stateOf(await fixture.show(id)), 'pending WITHDRAWING')
  assert.ok(await fixture.agrees(), 'it is off the books as it is off the account')
  const txid = await fixture.arrive()
  await fixture.work(70)
  const done = await fixture.show(id)
  assert.deepEqual(
    [stateOf(done), done.fee, done.hash?.toLowerCase()],
    ['completed DONE', '0.0001', txid],
  )
  const deposit = await fixture.database.one<{
    source_type: string
    source_id: string
    state: string
  }>('select source_type, source_id, state from transactions where id = $1', [done.transaction_id])
  assert.deepEqual([deposit?.source_type, deposit?.source_id], ['EXCHANGE', fixture.account])
  assert.deepEqual(
    [await fixture.wallet(), fixture.venue.held, fixture.venue.requestCount],
    [49_990_000n, 95n * 10n ** 17n, 1],
  )
  assert.ok(await fixture.agrees())
})

test('an adopted surplus completes a withdrawal that the exchange paid through a contract', async () => {
  const fixture = await open()
  const { id } = (await fixture.withdraw()).body
  await fixture.work()
  const txid = await fixture.arrive()
  // Simulates the rows of an adoption: no scan has read the transaction.
  await fixture.database.query(
    `update deposits set adopted = true, txid = 'adopted:' || transaction_id where txid = $1`,
    [txid],
  )
  await fixture.work(120)
  const { status, transaction_id: deposit } = await fixture.show(id)
  assert.equal(status, 'completed')
  assert.ok(deposit)
})

test('after a lost response, finds the withdrawal at the exchange and does not repeat it', async () => {
  for (const withdrawalId of [true, false]) {
    const fixture = await open()
    fixture.venue.traits = { ...fixture.venue.traits, withdrawalId }
    fixture.venue.mood = 'lost'
    const first = (await fixture.withdraw()).body.id
    const second = (await fixture.withdraw()).body.id
    await fixture.work(10)
    assert.deepEqual(
      [stateOf(await fixture.show(first)), stateOf(await fixture.show(second))],
      ['pending WITHDRAWING', 'pending WITHDRAWING'],
    )
    assert.equal(fixture.venue.requestCount, 2)
    const ids = await Promise.all(
      [first, second].map(async (id) => (await fixture.show(id))['exchange_transfer_id']),
    )
    assert.deepEqual(
      ids.toSorted(),
      fixture.venue.payouts.map(({ venueId }) => venueId).toSorted(),
      'each has one of its own',
    )
    await fixture.arrive(0)
    await fixture.arrive(1)
    await fixture.work(70)
    assert.deepEqual(
      [stateOf(await fixture.show(first)), stateOf(await fixture.show(second))],
      ['completed DONE', 'completed DONE'],
    )
    assert.equal(await fixture.wallet(), 99_980_000n)
    assert.ok(await fixture.agrees())
  }
})

test('assigns two withdrawals that were paid in one transaction to one deposit each', async () => {
  const fixture = await open()
  const [one, two] = [
    (await fixture.withdraw()).body.id,
    (await fixture.withdraw({ amount: '0.7' })).body.id,
  ]
  await fixture.work()
  const outcome = fixture.venue.payouts.toReversed().map((payout, position) => {
    fixture.venue.pay(payout, 'cd'.repeat(32))
    return {
      position,
      asset: 'BTC',
      address: payout.address as string,
      amount: payout.amount / 10n ** 10n,
    }
  })
  fixture.chain.mine({ txid: 'cd'.repeat(32), outcome })
  fixture.chain.bury()
  await fixture.settle()
  await fixture.work(70)
  const [first, second] = await Promise.all([one, two].map((id) => fixture.show(id)))
  assert.deepEqual(
    [first, second].map((each) => stateOf(each as Transfer)),
    ['completed DONE', 'completed DONE'],
  )
  const amounts = await Promise.all(
    [first, second].map(
      async (each) =>
        (
          await fixture.database.one<{ amount: string }>(
            'select amount::text from transactions where id = $1',
            [each?.transaction_id],
          )
        )?.amount,
    ),
  )
  assert.deepEqual(amounts, ['49990000', '69990000'], 'each is the deposit of its own amount')
  assert.ok(await fixture.agrees())
})

test('finds a withdrawal with a lost response even if the exchange’s list omits tag or address', async () => {
  for (const missing of [{ tag: null }, { address: null }]) {
    const fixture = await open()
    fixture.venue.traits = { ...fixture.venue.traits, withdrawalId: false }
    fixture.venue.mood = 'lost'
    const {
      body: { id },
    } = await fixture.withdraw()
    await fixture.database.query(`update exchange_transfers set address_tag = $2 where id = $1`, [
      id,
      'tag' in missing ? '7' : null,
    ])
    fixture.venue.isDown = true
    await fixture.work()
    Object.assign(fixture.venue.payouts[0] ?? assert.fail('nothing was paid'), missing)
    fixture.venue.isDown = false
    await fixture.work(120)
    assert.deepEqual(
      [stateOf(await fixture.show(id)), fixture.venue.requestCount],
      ['pending WITHDRAWING', 1],
      JSON.stringify(missing),
    )
  }
})

test('a withdrawal that the exchange never accepted fails if proven, and otherwise is unknown', async () => {
  const fixture = await open()
  fixture.venue.mood = 'never'
  const {
    body: { id },
  } = await fixture.withdraw()
  await fixture.work(60)
  assert.equal(stateOf(await fixture.show(id)), 'unknown ASKING')
  fixture.venue.isDown = true
  await fixture.work(100)
  assert.equal(
    stateOf(await fixture.show(id)),
    'unknown ASKING',
    'an exchange that is away proves nothing',
  )
  fixture.venue.isDown = false
  await fixture.work(70)
  assert.deepEqual(
    [stateOf(await fixture.show(id)), (await fixture.show(id)).reason],
    ['failed FAILED', 'NOT_TAKEN'],
  )
  fixture.venue.traits = { ...fixture.venue.traits, absence: null }
  fixture.venue.mood = 'never'
  const other = (await fixture.withdraw()).body.id
  await fixture.work(600)
  assert.deepEqual(
    [stateOf(await fixture.show(other)), (await fixture.show(other)).overdue],
    ['unknown ASKING', true],
  )
  assert.ok(
    fixture.logged.some(
      ({ level, message }) => level === 'error' && message.startsWith('it is unknown'),
    ),
  )
  assert.equal(fixture.venue.requestCount, 2)
  assert.ok(await fixture.agrees())
})

test('a withdrawal is sent and booked once, wherever the process ends', async () => {
  for (const name of ['sending', 'answered', 'taken', 'arrived']) {
    const fixture = await open()
    const {
      body: { id },
    } = await fixture.withdraw()
    fixture.crashAt = `exchange-withdrawal.${name}`
    await fixture.work(1)
    // The lease of the dead process expires.
    await fixture.work(130)
    if (name !== 'sending') await fixture.arrive()
    await fixture.work(260)
    assert.equal(fixture.crashAt, null, name)
    const wanted = name === 'sending' ? 'failed FAILED' : 'completed DONE'
    assert.deepEqual(
      [stateOf(await fixture.show(id)), fixture.venue.requestCount],
      [wanted, name === 'sending' ? 0 : 1],
      name,
    )
    assert.ok(await fixture.agrees(), name)
  }
})

test('handles withdrawals that the exchange refuses, limits, cancels or leaves pending', async () => {
  const fixture = await open()
  fixture.venue.mood = 'refuse'
  const refusal = (await fixture.withdraw()).body.id
  await fixture.work()
  assert.deepEqual(
    [stateOf(await fixture.show(refusal)), (await fixture.show(refusal)).reason],
    ['failed FAILED', 'INSUFFICIENT_FUNDS'],
  )
  fixture.venue.mood = 'later'
  const limited = (await fixture.withdraw()).body.id
  await fixture.work(3)
  assert.equal(stateOf(await fixture.show(limited)), 'pending WITHDRAWING')
  const [payout] = fixture.venue.payouts
  await assert.rejects(
    fixture.ask(deleteAccount, {}, { id: fixture.account }),
    refused('EXCHANGE_ACCOUNT_BUSY', /a transfer of the account is in progress/),
  )
  await fixture.work(3700)
  assert.deepEqual(
    [stateOf(await fixture.show(limited)), (await fixture.show(limited)).overdue],
    ['pending WITHDRAWING', true],
  )
  fixture.venue.giveBack(payout as NonNullable<typeof payout>)
  await fixture.work(61)
  assert.deepEqual(
    [stateOf(await fixture.show(limited)), await fixture.wallet()],
    ['failed FAILED', 0n],
  )
  assert.ok(await fixture.agrees(), 'given back')
  await fixture.ask(deleteAccount, {}, { id: fixture.account })
})

test('if a withdrawal is refused while an identical request waits, both requests are refused', async () => {
  const fixture = await open()
  const pausePoint = pauseMethod(fixture.services.exchanges, 'account')
  const body = { sequence_id: 'w1' }
  const waits = fixture.withdraw(body)
  await pausePoint.reached
  const status = (to: string) => fixture.database.query('update wallets set status = $1', [to])
  await status('inactive')
  await assert.rejects(fixture.withdraw(body), refused('WALLET_INACTIVE', /inactive/))
  await status('active')
  pausePoint.open()
  await assert.rejects(waits, refused('WALLET_INACTIVE', /inactive/))
  const { body: taken } = await fixture.withdraw(body)
  assert.deepEqual((await fixture.withdraw(body)).body, taken)
  assert.equal((await fixture.database.query('select 1 from exchange_transfers')).length, 1)
})

test('a forbidden withdrawal or destination is refused with its field, and creates no transfer', async () => {
  const fixture = await open()
  const { body: first } = await fixture.withdraw({ sequence_id: 'w1' })
  const again = await fixture.withdraw({ sequence_id: 'w1' })
  assert.deepEqual([again.body.id, again.headers['idempotent-replayed']], [first.id, 'true'])
  assert.ok((await fixture.withdraw({ sequence_id: 'w1', amount: '1' })).headers['warning'])
  for (const [more, code, message] of [
    [{ amount: '0' }, 'INVALID_AMOUNT', /^amount: must be greater/],
    [{ amount: '0.00000001' }, 'INVALID_AMOUNT', /^amount: must be at least/],
    [
      { address: fixture.venue.address.address },
      'INVALID_ADDRESS',
      /^address: is not an address of the BTC wallet; a withdrawal from an exchange can only be sent to one of its addresses/,
    ],
    [{ address: 'x' }, 'INVALID_ADDRESS', /^address: /],
    [{ address_tag: '7' }, 'INVALID_REQUEST', /^address_tag: /],
    [{ asset: 'XXX' }, 'UNSUPPORTED_ASSET', /asset/],
    [{ exchange_account: randomUUID() }, 'NOT_FOUND', /^exchange_account: /],
    [{ exchange_account: 'x' }, 'NOT_FOUND', /^exchange_account: /],
  ] as const)
    await assert.rejects(fixture.withdraw(more), refused(code, message), JSON.stringify(more))
  fixture.venue.obstacle = 'its entity requires a questionnaire'
  await assert.rejects(
    fixture.withdraw(),
    refused('EXCHANGE_UNSUPPORTED', /^exchange_account: its entity requires a questionnaire$/),
  )
  fixture.venue.obstacle = null
  fixture.venue.isUnregistered = true
  await assert.rejects(
    fixture.withdraw(),
    refused('NOT_FOUND', /^exchange_account: .*register it there first/),
  )
  await fixture.database.query('update exchange_accounts set allow_withdrawal = false')
  await assert.rejects(
    fixture.withdraw(),
    refused('INVALID_REQUEST', /^exchange_account: was linked without allow_withdrawal/),
  )
  const { caller } = fixture
  fixture.caller = { ...caller, subAccountId: randomUUID() }
  await assert.rejects(fixture.withdraw(), refused('NOT_FOUND', /^exchange_account: /))
  await assert.rejects(
    fixture.show(first.id),
    refused('NOT_FOUND', /exchange transfer .* does not exist/),
  )
  fixture.caller = caller
  assert.equal((await fixture.database.query('select 1 from exchange_transfers')).length, 1)
})

test('a transfer to an exchange is pending until credited there, and fails if its payment fails', async () => {
  const fixture = await open()
  const { id, transaction } = await fixture.carry()
  await fixture.work(5)
  assert.equal(stateOf(await fixture.show(id)), 'pending MOVING')
  const hash = newId().replaceAll('-', '').repeat(2)
  await fixture.becomes(transaction, { hash, confirmations: 1, state: 'CONFIRMING' })
  await fixture.work(20)
  assert.equal((await fixture.show(id)).hash, hash)
  fixture.venue.credit('ff'.repeat(32), 10n ** 17n)
  await fixture.work(60)
  assert.equal(
    stateOf(await fixture.show(id)),
    'pending MOVING',
    'another’s deposit is not this one',
  )
  fixture.venue.credit(hash, 10n ** 18n)
  fixture.crashAt = 'exchange-transfer.credited'
  await fixture.work(70)
  await fixture.work(130)
  assert.deepEqual(
    [stateOf(await fixture.show(id)), (await fixture.show(id)).credited],
    ['completed DONE', '1'],
  )
  assert.equal(await fixture.agrees(), false, 'what a stranger paid in stays a difference')
  fixture.venue.held -= 10n ** 17n
  assert.ok(await fixture.agrees())
  const other = await fixture.carry()
  await fixture.becomes(other.transaction, { status: 'failed', state: 'FAILED' })
  await fixture.work(60)
  assert.equal(stateOf(await fixture.show(other.id)), 'failed FAILED')
  assert.ok(await fixture.agrees())
})

test('a transfer must use the exchange’s current address; a changed one needs confirm_address', async () => {
  const fixture = await open()
  const [one, two] = [
    fixture.venue.address.address,
    'bcrt1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qzf4jry',
  ]
  await assert.rejects(
    fixture.carry({ destination_address: two }),
    refused(
      'INVALID_ADDRESS',
      /^destination_address: the deposit address of this account at kraken for BTC is bcrt1qw508/,
    ),
  )
  await assert.rejects(
    fixture.carry({ destination_id: undefined }),
    refused('INVALID_REQUEST', /^destination_id: /),
  )
  await assert.rejects(
    fixture.carry({ destination_id: randomUUID() }),
    refused('NOT_FOUND', /^destination_id: /),
  )
  await assert.rejects(
    fixture.carry({ destination_type: 'EXTERNAL' }),
    refused('INVALID_REQUEST', /^destination_id: is allowed only with/),
  )
  const readAddress = async () =>
    (
      await fixture.ask<Record<string, unknown>>(
        readExchangeAddress,
        {},
        { id: fixture.account },
        { asset: 'BTC' },
      )
    ).body
  assert.deepEqual(await readAddress(), {
    asset: 'BTC',
    network: 'BTC',
    address: one,
    address_tag: null,
    changed: false,
    previous: null,
  })
  await fixture.carry()
  fixture.venue.address = { ...fixture.venue.address, address: two }
  assert.deepEqual(await readAddress(), {
    asset: 'BTC',
    network: 'BTC',
    address: two,
    address_tag: null,
    changed: true,
    previous: { address: one, address_tag: null },
  })
  await assert.rejects(
    fixture.carry(),
    refused(
      'EXCHANGE_ADDRESS_CHANGED',
      /^confirm_address: the deposit address at kraken for BTC was bcrt1qw508\w+ and is now bcrt1qrp33\w+;/,
    ),
  )
  await assert.rejects(
    fixture.carry({ confirm_address: one }),
    refused('EXCHANGE_ADDRESS_CHANGED', /confirm_address/),
  )
  await fixture.carry({ confirm_address: two })
  await fixture.carry()
  fixture.venue.address = { ...fixture.venue.address, address: 'not an address' }
  await assert.rejects(fixture.carry(), refused('EXCHANGE_UNAVAILABLE', /is not an address of BTC/))
  fixture.venue.isDown = true
  await assert.rejects(fixture.carry(), refused('EXCHANGE_UNAVAILABLE', /cannot be queried/))
  assert.equal((await fixture.database.query('select 1 from exchange_transfers')).length, 3)
})

test('the platform’s background loop completes exchange transfers', async () => {
  const fixture = await open()
  const {
    body: { id },
  } = await fixture.withdraw()
  const ended = new AbortController()
  const loop = exchangeTransferLoop(fixture.services)
  await loop.run(ended.signal)
  ended.abort()
  await loop.run(ended.signal)
  assert.equal(stateOf(await fixture.show(id)), 'pending WITHDRAWING')
})

test('after any failures, all balances plus fees equal the initial balance', async () => {
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
        const fixture = await open()
        fixture.venue.traits = { ...fixture.venue.traits, withdrawalId }
        const total = fixture.venue.held
        const paid = new Set<string>()
        const pay = async (at: number) => {
          const payout = fixture.venue.payouts[at]
          if (payout?.status !== 'pending') return
          await fixture.arrive(at)
          paid.add(payout.venueId)
        }
        for (const { what, mood: next, at, die } of steps) {
          if (what === 'withdraw') {
            fixture.venue.mood = next as FakeVenue['mood']
            await fixture.withdraw()
          }
          if (what === 'pay') await pay(at)
          if (what === 'back' && fixture.venue.payouts[at]?.status === 'pending')
            fixture.venue.giveBack(fixture.venue.payouts[at])
          if (what === 'die') fixture.crashAt = `exchange-withdrawal.${die}`
          if (what === 'down') fixture.venue.isDown = !fixture.venue.isDown
          await fixture.work(what === 'work' ? 130 : 2)
        }
        fixture.venue.isDown = false
        fixture.crashAt = null
        fixture.venue.mood = 'ok'
        await fixture.work(400)
        for (const at of fixture.venue.payouts.keys()) await pay(at)
        await fixture.work(200)
        const rows = await fixture.database.query<{ state: string }>(
          'select state from exchange_transfers',
        )
        assert.ok(
          rows.every(({ state }) => state === 'DONE' || state === 'FAILED'),
          JSON.stringify(rows),
        )
        const fees = fixture.venue.fee * BigInt(paid.size)
        assert.equal(fixture.venue.held + (await fixture.wallet()) * 10n ** 10n + fees, total)
        assert.equal(
          rows.filter(({ state }) => state === 'DONE').length,
          paid.size,
          'each payout is one transfer',
        )
        assert.ok(await fixture.agrees())
      },
    ),
    { numRuns: 12 },
  )
})

testEmittedEvents(database.get, ['exchange_transfer.created', 'exchange_transfer.updated'])
