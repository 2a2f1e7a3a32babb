import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RpcRefused, type ChainTransfer } from '@custody/chains'
import * as fc from '../../../../../testing/property.ts'
import { ApiError } from '../../core/errors.ts'
import { lookAtMempool, mempoolLoop, PoolMemory } from './mempool.ts'
import {
  DEPTH,
  newId,
  useDatabase,
  type ScriptedTransaction,
} from '../../../testing/deposits-support.ts'
import { InvoiceFixture, type Invoice } from '../../../testing/invoices-fixture.ts'

/**
 * Detection of unconfirmed payments. The database, scanner and evaluation are real; blocks and
 * mempool are scripted.
 */
class MempoolFixture extends InvoiceFixture {
  /** Waiting transactions, as the node reports them. */
  readonly pool = new Map<string, ScriptedTransaction>()
  memory = new PoolMemory()
  readonly questions: string[] = []
  fetched = 0

  readonly mempool = {
    waiting: async () => {
      this.questions.push('waiting')
      return [...this.pool.keys()]
    },
    transfers: async (txids: readonly string[]): Promise<ChainTransfer[]> => {
      this.fetched += txids.length
      return txids.flatMap((txid) =>
        (this.pool.get(txid)?.outcome ?? []).map((each) => ({
          sender: null,
          senders: null,
          coinbase: false,
          ...each,
          txid,
        })),
      )
    },
  }

  readonly client = {
    status: async (txid: string) =>
      this.pool.has(txid) ? { state: 'mempool' as const } : this.chain.status(txid),
  }

  async watch(): Promise<{ size: number; more: boolean }> {
    const end = await lookAtMempool(
      this.services,
      { network: this.network, client: this.client } as never,
      this.mempool,
      this.memory,
    )
    await this.look()
    return end
  }

  /** Creates a transaction whose outputs pay these amounts. */
  make(...outputs: [string | null, bigint][]): ScriptedTransaction {
    return {
      txid: newId(),
      outcome: outputs.map(([address, amount], position) => ({
        position,
        asset: 'BTC',
        address: address as string,
        amount,
      })),
    }
  }

  /** Adds a transaction to the mempool. */
  send(transaction: ScriptedTransaction): ScriptedTransaction {
    this.pool.set(transaction.txid, transaction)
    return transaction
  }

  /** Produces a block with these transactions and removes them from the mempool. */
  mine(...transactions: ScriptedTransaction[]): void {
    for (const { txid } of transactions) this.pool.delete(txid)
    this.chain.mine(...transactions)
  }
}

let current: MempoolFixture | undefined
const database = useDatabase({ migrated: true, now: () => current?.now ?? Date.now() })
const open = async () => (current = await new MempoolFixture(database.get(), 'utxo').begin())
/** 60 USD are 0.001 BTC at a price of 60,000 USD. */
const SIXTY = { fiat: 'USD', fiat_amount: 60, assets: ['BTC'] }
const ALL = 100_000n
const shown = ({ payments }: Invoice) => payments.map(({ amount, status }) => `${amount} ${status}`)

test('an unconfirmed payment makes an invoice Processing, and crediting makes it Paid', async () => {
  const fixture = await open()
  const { inv_id: id, address } = await fixture.create(SIXTY)
  const payment = fixture.send(fixture.make([address, ALL]))
  await fixture.watch()
  assert.equal(await fixture.state(id), 'Processing')
  const {
    payments: [seen],
  } = await fixture.read(id)
  assert.deepEqual(seen, {
    ...seen,
    transaction_id: null,
    hash: payment.txid,
    amount: '0.001',
    status: 'seen',
    confirmations: '0',
    required: String(fixture.network.confirmations),
    counts: true,
    note: null,
  })
  assert.deepEqual(
    [(await fixture.read(id))['refundable'], (await fixture.read(id)).due_amount],
    [[], '0'],
  )
  await assert.rejects(
    fixture.cancel(id),
    (error: unknown) => error instanceof ApiError && error.code === 'INVOICE_FINAL',
  )
  // The time that the payment waits does not matter.
  fixture.pass(600)
  await fixture.watch()
  await fixture.settle()
  assert.equal(await fixture.state(id), 'Processing')
  fixture.mine(payment)
  // Between the production and the scan of its block, the payment is neither in the mempool nor in
  // a scanned block.
  await fixture.watch()
  await fixture.watch()
  assert.deepEqual(shown(await fixture.read(id)), ['0.001 seen'])
  await fixture.settle()
  assert.deepEqual(
    [await fixture.state(id), shown(await fixture.read(id))],
    ['Processing', ['0.001 detected']],
  )
  await fixture.watch()
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(
    [await fixture.state(id), shown(await fixture.read(id))],
    ['Paid', ['0.001 confirmed']],
  )
  const { length } = await fixture.events(id)
  await fixture.watch()
  await fixture.settle()
  assert.equal((await fixture.events(id)).length, length, 'no event is emitted twice')
  assert.deepEqual(
    (await fixture.events(id)).filter((type) => type !== 'updated'),
    ['created', 'processing', 'paid'],
  )
})

test('each invoice counts its own outputs, also of partial payments and shared transactions', async () => {
  const fixture = await open()
  const [one, other] = [await fixture.create(SIXTY), await fixture.create(SIXTY)]
  const split = fixture.send(
    fixture.make(
      [one.address, 30_000n],
      ['1nobody', 5n],
      [one.address, 20_000n],
      [other.address, ALL],
    ),
  )
  await fixture.watch()
  assert.deepEqual(
    [await fixture.state(one.inv_id), await fixture.state(other.inv_id)],
    ['Pending partial', 'Processing'],
  )
  assert.deepEqual(shown(await fixture.read(one.inv_id)), ['0.0005 seen'])
  const rest = fixture.send(fixture.make([one.address, 50_000n]))
  await fixture.watch()
  assert.equal(await fixture.state(one.inv_id), 'Processing')
  fixture.mine(split)
  await fixture.settle()
  assert.deepEqual(shown(await fixture.read(one.inv_id)), [
    '0.0003 detected',
    '0.0002 detected',
    '0.0005 seen',
  ])
  assert.equal(await fixture.state(one.inv_id), 'Processing')
  fixture.mine(rest)
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(
    [await fixture.state(one.inv_id), await fixture.state(other.inv_id)],
    ['Paid', 'Paid'],
  )
})

test('a replaced or dropped payment no longer counts, and its replacement does', async () => {
  const fixture = await open()
  const { inv_id: id, address } = await fixture.create(SIXTY)
  const first = fixture.send(fixture.make([address, ALL]))
  await fixture.watch()
  fixture.pool.delete(first.txid)
  await fixture.watch()
  assert.equal(
    await fixture.state(id),
    'Processing',
    'one node that has not heard of it takes nothing back',
  )
  fixture.send(first)
  await fixture.watch()
  fixture.pool.delete(first.txid)
  await fixture.watch()
  await fixture.watch()
  assert.deepEqual(
    [await fixture.state(id), shown(await fixture.read(id))],
    ['Pending', ['0.001 dropped']],
  )
  assert.equal((await fixture.read(id)).due_amount, '0.001')
  fixture.pass(1)
  const second = fixture.send(fixture.make([address, ALL + 1n]))
  await fixture.watch()
  assert.deepEqual(
    [await fixture.state(id), shown(await fixture.read(id))],
    ['Processing over', ['0.001 dropped', '0.00100001 seen']],
  )
  fixture.pass(31)
  fixture.pool.delete(second.txid)
  await fixture.watch()
  await fixture.watch()
  assert.equal(await fixture.state(id), 'Expired')
  fixture.send(first)
  await fixture.watch()
  assert.equal(await fixture.state(id), 'Processing', 'it was made in time, and is there again')
  assert.deepEqual(await fixture.events(id), [
    'created',
    'processing',
    'updated',
    'processing',
    'expired',
    'processing',
  ])
})

test('a payment seen before expiry is in time, whenever its block is mined', async () => {
  const fixture = await open()
  const [seen, unseen] = [await fixture.create(SIXTY), await fixture.create(SIXTY)]
  const patient = await fixture.create({ ...SIXTY, expires_in: 3600 })
  await fixture.settle()
  fixture.pass(29)
  await fixture.settle()
  const payment = fixture.send(fixture.make([seen.address, ALL]))
  await fixture.watch()
  fixture.pass(2)
  await fixture.settle()
  await fixture.watch()
  fixture.pass(8)
  const late = fixture.send(fixture.make([unseen.address, ALL]))
  await fixture.watch()
  assert.deepEqual(
    [await fixture.state(seen.inv_id), await fixture.state(unseen.inv_id)],
    ['Processing', 'Expired late'],
  )
  fixture.mine(payment, late)
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(
    [await fixture.state(seen.inv_id), await fixture.state(unseen.inv_id)],
    ['Paid', 'Expired late'],
  )
  assert.deepEqual(
    (await fixture.read(seen.inv_id)).payments.map(({ note }) => note),
    [null],
  )
  await fixture.watch()
  fixture.send(fixture.make([patient.address, ALL]))
  fixture.pass(60)
  await fixture.watch()
  assert.equal(await fixture.state(patient.inv_id), 'Processing', 'an outage of ours')
})

test('after a reorganisation an invoice is Processing until its payment is mined again', async () => {
  const fixture = await open()
  const { inv_id: id, address } = await fixture.create(SIXTY)
  const payment = fixture.make([address, ALL])
  fixture.mine(payment)
  await fixture.settle()
  await fixture.watch()
  fixture.chain.drop(1)
  fixture.chain.mine()
  fixture.send(payment)
  await fixture.settle()
  await fixture.watch()
  assert.deepEqual(
    [await fixture.state(id), shown(await fixture.read(id))],
    ['Processing', ['0.001 seen']],
  )
  fixture.mine(payment)
  fixture.chain.bury()
  await fixture.settle()
  assert.equal(await fixture.state(id), 'Paid')
  await fixture.watch()
  fixture.chain.drop(DEPTH + 1)
  for (let count = 0; count < DEPTH + 2; count++) fixture.chain.mine()
  await fixture.settle()
  await fixture.watch()
  await fixture.watch()
  assert.deepEqual(
    [await fixture.state(id), shown(await fixture.read(id))],
    ['Pending', ['0.001 reverted']],
    'in no pool',
  )
})

test('a large mempool is read in parts, with a limit of transactions per pass', async () => {
  const fixture = await open()
  const { inv_id: id, address } = await fixture.create(SIXTY)
  for (let count = 0; count < 5000; count++) fixture.send(fixture.make(['1nobody', 1n]))
  let looks = 1
  while ((await fixture.watch()).more) looks++
  assert.deepEqual([fixture.fetched, looks], [2000, 5])
  fixture.send(fixture.make([address, ALL]))
  assert.deepEqual(await fixture.watch(), { size: 5001, more: false })
  assert.deepEqual([fixture.fetched, await fixture.state(id)], [2001, 'Processing'])
  await fixture.watch()
  assert.equal(fixture.fetched, 2001, 'nothing is read twice')
})

test('a payment counts once if the process ends right after it was seen in the mempool', async () => {
  const fixture = await open()
  const { inv_id: id, address } = await fixture.create(SIXTY)
  fixture.send(fixture.make([address, 50_000n]))
  fixture.crashAt = 'mempool.seen'
  await assert.rejects(fixture.watch(), /the process ended here/)
  fixture.memory = new PoolMemory()
  await fixture.watch()
  assert.deepEqual(
    [await fixture.state(id), shown(await fixture.read(id))],
    ['Pending partial', ['0.0005 seen']],
  )
  const memory = new PoolMemory()
  await Promise.all([
    fixture.watch(),
    lookAtMempool(
      fixture.services,
      { network: fixture.network, client: fixture.client } as never,
      fixture.mempool,
      memory,
    ),
  ])
  assert.deepEqual(shown(await fixture.read(id)), ['0.0005 seen'], 'two processes')
})

test('the mempool is queried only while an invoice is pending, and only at nodes that list it', async () => {
  const fixture = await open()
  const loop = mempoolLoop(
    fixture.services,
    { network: fixture.network, client: fixture.client } as never,
    fixture.mempool,
    async () => {
      const rows = await fixture.database.query<{ network: string }>(
        `select network from invoice_offers o join invoices i on i.id = o.invoice_id
          where i.status = 'Pending'`,
      )
      return new Set(rows.map(({ network }) => network))
    },
  )
  const { signal } = new AbortController()
  await loop.run(signal)
  assert.deepEqual(fixture.questions, [])
  const { inv_id: id } = await fixture.create(SIXTY)
  await loop.run(signal)
  assert.deepEqual(fixture.questions, ['waiting'])
  const slept: number[] = []
  Object.assign(fixture.services.environment, {
    sleep: async (ms: number) => {
      slept.push(ms)
    },
  })
  Object.assign(fixture.mempool, {
    waiting: async () => {
      throw new RpcRefused(-32601, 'Method not found')
    },
  })
  await loop.run(signal)
  await loop.run(signal)
  assert.deepEqual(slept, [60_000, 60_000])
  assert.equal(
    fixture.logged.filter(({ message }) =>
      message.includes('does not return unconfirmed transactions'),
    ).length,
    1,
    'said once',
  )
  Object.assign(fixture.mempool, {
    waiting: async () => {
      throw new Error('away')
    },
  })
  await assert.rejects(loop.run(signal), /away/)
  assert.equal(await fixture.state(id), 'Pending')
})

test('for any mempool and chain changes, an output counts once, and Paid invoices are credited', async () => {
  const fixture = await open()
  const step = fc.record({
    tx: fc.integer({ min: 0, max: 2 }),
    what: fc.constantFrom('send', 'vanish', 'mine', 'unmine', 'scan', 'watch', 'restart'),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async (steps) => {
      const { inv_id: id, address } = await fixture.create(SIXTY)
      const payments = [0, 1, 2].map(() => fixture.make([address, 30_000n], [address, 20_000n]))
      const standing = (invoice: Invoice) =>
        invoice.payments.filter(({ status }) => status !== 'reverted' && status !== 'dropped')
      for (const { tx, what } of steps) {
        const payment = payments[tx] as ScriptedTransaction
        const isMined = fixture.chain.has(payment.txid)
        if (what === 'send' && !isMined) fixture.send(payment)
        if (what === 'vanish') fixture.pool.delete(payment.txid)
        if (what === 'mine' && !isMined) fixture.mine(payment)
        if (what === 'unmine' && isMined) {
          const [top] = fixture.chain.blocks.slice(-1)
          fixture.chain.drop(1)
          for (const each of payments) if (top?.txids.includes(each.txid)) fixture.send(each)
          fixture.chain.mine()
        }
        if (what === 'scan') await fixture.settle()
        if (what === 'watch') await fixture.watch()
        if (what === 'restart') fixture.memory = new PoolMemory()
        const invoice = await fixture.read(id)
        for (const each of payments) {
          const counted = standing(invoice)
            .filter(({ hash }) => hash === each.txid)
            .reduce((sum, { amount }) => sum + Number(amount), 0)
          assert.ok(counted <= 0.0005 + 1e-12, `${each.txid} counts ${counted}`)
        }
        if (invoice.inv_status === 'Paid') {
          const credited = invoice.payments
            .filter(({ status }) => status === 'confirmed')
            .reduce((sum, { amount }) => sum + Number(amount), 0)
          assert.ok(credited >= 0.001 * 0.995, `Paid with ${credited}`)
        }
      }
      for (const each of payments) if (!fixture.chain.has(each.txid)) fixture.mine(each)
      await fixture.settle()
      fixture.chain.bury()
      await fixture.settle()
      await fixture.watch()
      await fixture.settle()
      const end = await fixture.read(id)
      assert.deepEqual(
        [end.inv_status, end.exception, shown(end).sort()],
        ['Paid', 'over', payments.flatMap(() => ['0.0002 confirmed', '0.0003 confirmed']).sort()],
      )
      const left = await fixture.database.query(
        'select 1 from invoice_mempool where waiting and invoice_id = $1',
        [id],
      )
      assert.equal(left.length, 0)
    }),
    { numRuns: 15 },
  )
})
