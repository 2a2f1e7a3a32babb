import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RpcRefused, type ChainTransfer } from '@custody/chains'
import * as fc from '../../../test/property.ts'
import { ApiError } from '../src/errors.ts'
import { lookAtMempool, mempoolLoop, PoolMemory } from '../src/invoices/mempool.ts'
import { DEPTH, newId, useDatabase, type ScriptedTransaction } from './deposits-support.ts'
import { InvoiceFixture, type Invoice } from './invoices-fixture.ts'

/**
 * What is seen of a payment before a block holds it: a real database, scanner and evaluation;
 * blocks and pool are scripted.
 */
class Stage extends InvoiceFixture {
  /** What waits, as the node shows it. */
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

  /** A transaction whose outputs pay these amounts. */
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

  /** It waits. */
  send(transaction: ScriptedTransaction): ScriptedTransaction {
    this.pool.set(transaction.txid, transaction)
    return transaction
  }

  /** Blocks take what they hold out of the pool. */
  mine(...transactions: ScriptedTransaction[]): void {
    for (const { txid } of transactions) this.pool.delete(txid)
    this.chain.mine(...transactions)
  }
}

let current: Stage | undefined
const database = useDatabase({ migrated: true, now: () => current?.now ?? Date.now() })
const open = async () => (current = await new Stage(database.get(), 'utxo').begin())
/** 0.001 BTC, of which 60,000 USD are asked for one. */
const SIXTY = { fiat: 'USD', fiat_amount: 60, assets: ['BTC'] }
const ALL = 100_000n
const shown = ({ payments }: Invoice) => payments.map(({ amount, status }) => `${amount} ${status}`)

test('a waiting payment: Processing immediately, not counted again in its block, Paid only once credited', async () => {
  const stage = await open()
  const { inv_id: id, address } = await stage.create(SIXTY)
  const payment = stage.send(stage.make([address, ALL]))
  await stage.watch()
  assert.equal(await stage.state(id), 'Processing')
  const {
    payments: [seen],
  } = await stage.read(id)
  assert.deepEqual(seen, {
    ...seen,
    transaction_id: null,
    hash: payment.txid,
    amount: '0.001',
    status: 'seen',
    confirmations: '0',
    required: String(stage.network.confirmations),
    counts: true,
    note: null,
  })
  assert.deepEqual(
    [(await stage.read(id))['refundable'], (await stage.read(id)).due_amount],
    [[], '0'],
  )
  await assert.rejects(
    stage.cancel(id),
    (error: unknown) => error instanceof ApiError && error.code === 'INVOICE_FINAL',
  )
  // However long it waits.
  stage.pass(600)
  await stage.watch()
  await stage.settle()
  assert.equal(await stage.state(id), 'Processing')
  stage.mine(payment)
  // Between its block and the scan of that, it is in neither.
  await stage.watch()
  await stage.watch()
  assert.deepEqual(shown(await stage.read(id)), ['0.001 seen'])
  await stage.settle()
  assert.deepEqual(
    [await stage.state(id), shown(await stage.read(id))],
    ['Processing', ['0.001 detected']],
  )
  await stage.watch()
  stage.chain.bury()
  await stage.settle()
  assert.deepEqual(
    [await stage.state(id), shown(await stage.read(id))],
    ['Paid', ['0.001 confirmed']],
  )
  const { length } = await stage.events(id)
  await stage.watch()
  await stage.settle()
  assert.equal((await stage.events(id)).length, length, 'nothing is told twice')
  assert.deepEqual(
    (await stage.events(id)).filter((type) => type !== 'updated'),
    ['created', 'processing', 'paid'],
  )
})

test('parts, several outputs, and one transaction for two invoices: each counts its own payment', async () => {
  const stage = await open()
  const [one, other] = [await stage.create(SIXTY), await stage.create(SIXTY)]
  const split = stage.send(
    stage.make(
      [one.address, 30_000n],
      ['1nobody', 5n],
      [one.address, 20_000n],
      [other.address, ALL],
    ),
  )
  await stage.watch()
  assert.deepEqual(
    [await stage.state(one.inv_id), await stage.state(other.inv_id)],
    ['Pending partial', 'Processing'],
  )
  assert.deepEqual(shown(await stage.read(one.inv_id)), ['0.0005 seen'])
  const rest = stage.send(stage.make([one.address, 50_000n]))
  await stage.watch()
  assert.equal(await stage.state(one.inv_id), 'Processing')
  stage.mine(split)
  await stage.settle()
  assert.deepEqual(shown(await stage.read(one.inv_id)), [
    '0.0003 detected',
    '0.0002 detected',
    '0.0005 seen',
  ])
  assert.equal(await stage.state(one.inv_id), 'Processing')
  stage.mine(rest)
  stage.chain.bury()
  await stage.settle()
  assert.deepEqual(
    [await stage.state(one.inv_id), await stage.state(other.inv_id)],
    ['Paid', 'Paid'],
  )
})

test('a replaced or dropped payment no longer counts, before and after expiry; its replacement does', async () => {
  const stage = await open()
  const { inv_id: id, address } = await stage.create(SIXTY)
  const first = stage.send(stage.make([address, ALL]))
  await stage.watch()
  stage.pool.delete(first.txid)
  await stage.watch()
  assert.equal(
    await stage.state(id),
    'Processing',
    'one node that has not heard of it takes nothing back',
  )
  stage.send(first)
  await stage.watch()
  stage.pool.delete(first.txid)
  await stage.watch()
  await stage.watch()
  assert.deepEqual(
    [await stage.state(id), shown(await stage.read(id))],
    ['Pending', ['0.001 dropped']],
  )
  assert.equal((await stage.read(id)).due_amount, '0.001')
  stage.pass(1)
  const second = stage.send(stage.make([address, ALL + 1n]))
  await stage.watch()
  assert.deepEqual(
    [await stage.state(id), shown(await stage.read(id))],
    ['Processing over', ['0.001 dropped', '0.00100001 seen']],
  )
  stage.pass(31)
  stage.pool.delete(second.txid)
  await stage.watch()
  await stage.watch()
  assert.equal(await stage.state(id), 'Expired')
  stage.send(first)
  await stage.watch()
  assert.equal(await stage.state(id), 'Processing', 'it was made in time, and is there again')
  assert.deepEqual(await stage.events(id), [
    'created',
    'processing',
    'updated',
    'processing',
    'expired',
    'processing',
  ])
})

test('a payment seen in time is in time whenever its block comes; a missing scan makes none late', async () => {
  const stage = await open()
  const [seen, unseen] = [await stage.create(SIXTY), await stage.create(SIXTY)]
  const patient = await stage.create({ ...SIXTY, expires_in: 3600 })
  await stage.settle()
  stage.pass(29)
  await stage.settle()
  const payment = stage.send(stage.make([seen.address, ALL]))
  await stage.watch()
  stage.pass(2)
  await stage.settle()
  await stage.watch()
  stage.pass(8)
  const late = stage.send(stage.make([unseen.address, ALL]))
  await stage.watch()
  assert.deepEqual(
    [await stage.state(seen.inv_id), await stage.state(unseen.inv_id)],
    ['Processing', 'Expired late'],
  )
  stage.mine(payment, late)
  stage.chain.bury()
  await stage.settle()
  assert.deepEqual(
    [await stage.state(seen.inv_id), await stage.state(unseen.inv_id)],
    ['Paid', 'Expired late'],
  )
  assert.deepEqual(
    (await stage.read(seen.inv_id)).payments.map(({ note }) => note),
    [null],
  )
  await stage.watch()
  stage.send(stage.make([patient.address, ALL]))
  stage.pass(60)
  await stage.watch()
  assert.equal(await stage.state(patient.inv_id), 'Processing', 'an outage of ours')
})

test('a reorganisation returns a payment to the pool: Processing, not Pending; and Paid in its next block', async () => {
  const stage = await open()
  const { inv_id: id, address } = await stage.create(SIXTY)
  const payment = stage.make([address, ALL])
  stage.mine(payment)
  await stage.settle()
  await stage.watch()
  stage.chain.drop(1)
  stage.chain.mine()
  stage.send(payment)
  await stage.settle()
  await stage.watch()
  assert.deepEqual(
    [await stage.state(id), shown(await stage.read(id))],
    ['Processing', ['0.001 seen']],
  )
  stage.mine(payment)
  stage.chain.bury()
  await stage.settle()
  assert.equal(await stage.state(id), 'Paid')
  await stage.watch()
  stage.chain.drop(DEPTH + 1)
  for (let count = 0; count < DEPTH + 2; count++) stage.chain.mine()
  await stage.settle()
  await stage.watch()
  await stage.watch()
  assert.deepEqual(
    [await stage.state(id), shown(await stage.read(id))],
    ['Pending', ['0.001 reverted']],
    'in no pool',
  )
})

test('a full pool is read in parts, and a limited number of earlier transactions', async () => {
  const stage = await open()
  const { inv_id: id, address } = await stage.create(SIXTY)
  for (let count = 0; count < 5000; count++) stage.send(stage.make(['1nobody', 1n]))
  let looks = 1
  while ((await stage.watch()).more) looks++
  assert.deepEqual([stage.fetched, looks], [2000, 5])
  stage.send(stage.make([address, ALL]))
  assert.deepEqual(await stage.watch(), { size: 5001, more: false })
  assert.deepEqual([stage.fetched, await stage.state(id)], [2001, 'Processing'])
  await stage.watch()
  assert.equal(stage.fetched, 2001, 'nothing is read twice')
})

test('a process ends right after it saw a payment: the next one reads the pool again and counts once', async () => {
  const stage = await open()
  const { inv_id: id, address } = await stage.create(SIXTY)
  stage.send(stage.make([address, 50_000n]))
  stage.crashAt = 'mempool.seen'
  await assert.rejects(stage.watch(), /the process ended here/)
  stage.memory = new PoolMemory()
  await stage.watch()
  assert.deepEqual(
    [await stage.state(id), shown(await stage.read(id))],
    ['Pending partial', ['0.0005 seen']],
  )
  const memory = new PoolMemory()
  await Promise.all([
    stage.watch(),
    lookAtMempool(
      stage.services,
      { network: stage.network, client: stage.client } as never,
      stage.mempool,
      memory,
    ),
  ])
  assert.deepEqual(shown(await stage.read(id)), ['0.0005 seen'], 'two processes')
})

test('the pool is queried only while a payment is possible, and a node that lists none is left alone', async () => {
  const stage = await open()
  const loop = mempoolLoop(
    stage.services,
    { network: stage.network, client: stage.client } as never,
    stage.mempool,
    async () => {
      const rows = await stage.database.query<{ network: string }>(
        `select network from invoice_offers o join invoices i on i.id = o.invoice_id where i.status = 'Pending'`,
      )
      return new Set(rows.map(({ network }) => network))
    },
  )
  const { signal } = new AbortController()
  await loop.run(signal)
  assert.deepEqual(stage.questions, [])
  const { inv_id: id } = await stage.create(SIXTY)
  await loop.run(signal)
  assert.deepEqual(stage.questions, ['waiting'])
  const slept: number[] = []
  Object.assign(stage.services.environment, {
    sleep: async (ms: number) => {
      slept.push(ms)
    },
  })
  Object.assign(stage.mempool, {
    waiting: async () => {
      throw new RpcRefused(-32601, 'Method not found')
    },
  })
  await loop.run(signal)
  await loop.run(signal)
  assert.deepEqual(slept, [60_000, 60_000])
  assert.equal(
    stage.logged.filter(({ message }) =>
      message.includes('does not return unconfirmed transactions'),
    ).length,
    1,
    'said once',
  )
  Object.assign(stage.mempool, {
    waiting: async () => {
      throw new Error('away')
    },
  })
  await assert.rejects(loop.run(signal), /away/)
  assert.equal(await stage.state(id), 'Pending')
})

test('whatever pool and chain do, an output counts once, and a Paid invoice was credited', async () => {
  const stage = await open()
  const step = fc.record({
    tx: fc.integer({ min: 0, max: 2 }),
    what: fc.constantFrom('send', 'vanish', 'mine', 'unmine', 'scan', 'watch', 'restart'),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async (steps) => {
      const { inv_id: id, address } = await stage.create(SIXTY)
      const payments = [0, 1, 2].map(() => stage.make([address, 30_000n], [address, 20_000n]))
      const standing = (invoice: Invoice) =>
        invoice.payments.filter(({ status }) => status !== 'reverted' && status !== 'dropped')
      for (const { tx, what } of steps) {
        const payment = payments[tx] as ScriptedTransaction
        const isMined = stage.chain.has(payment.txid)
        if (what === 'send' && !isMined) stage.send(payment)
        if (what === 'vanish') stage.pool.delete(payment.txid)
        if (what === 'mine' && !isMined) stage.mine(payment)
        if (what === 'unmine' && isMined) {
          const [top] = stage.chain.blocks.slice(-1)
          stage.chain.drop(1)
          for (const each of payments) if (top?.txids.includes(each.txid)) stage.send(each)
          stage.chain.mine()
        }
        if (what === 'scan') await stage.settle()
        if (what === 'watch') await stage.watch()
        if (what === 'restart') stage.memory = new PoolMemory()
        const invoice = await stage.read(id)
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
      for (const each of payments) if (!stage.chain.has(each.txid)) stage.mine(each)
      await stage.settle()
      stage.chain.bury()
      await stage.settle()
      await stage.watch()
      await stage.settle()
      const end = await stage.read(id)
      assert.deepEqual(
        [end.inv_status, end.exception, shown(end).sort()],
        ['Paid', 'over', payments.flatMap(() => ['0.0002 confirmed', '0.0003 confirmed']).sort()],
      )
      const left = await stage.database.query(
        'select 1 from invoice_mempool where waiting and invoice_id = $1',
        [id],
      )
      assert.equal(left.length, 0)
    }),
    { numRuns: 15 },
  )
})
