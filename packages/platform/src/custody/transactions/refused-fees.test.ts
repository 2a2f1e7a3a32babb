import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { parseTransaction, type TransactionSerialized } from 'viem'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { FamilyFixture } from '../../../testing/chains/family-fixture.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'

/**
 * Tests of nodes that refuse a transaction for its fee: the tip is below the node's minimum, the
 * market has risen since the transaction was planned, or the mempool's minimum has.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-refused-'))
const ETH = {
  code: 'ETH',
  to: '0x00000000000000000000000000000000000000b2',
  held: '5',
  amount: '1',
}
const BTC = {
  code: 'BTC',
  to: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
  held: '2',
  amount: '0.1',
}
const GWEI = 10n ** 9n
let devnet: Devnet

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

interface Rpc {
  id: unknown
  method: string
  params: unknown[]
}

/** A proxy in front of the local chain that refuses transactions and changes answers. */
interface Node {
  /** Returns the message of a refusal; null: the local chain answers. */
  refuses(raw: string): string | null
  /** Changes the result of a request. */
  answers?(method: string, result: unknown): unknown
}

async function staged(
  place: typeof ETH,
  node: Node,
  play: (fixture: FamilyFixture, refused: string[]) => Promise<void>,
): Promise<void> {
  const path = place.code.toLowerCase()
  const refused: string[] = []
  const ask: typeof fetch = async (_url, init) => {
    const { id, method, params } = JSON.parse(String(init?.body)) as Rpc
    if (method === 'eth_sendRawTransaction' || method === 'sendrawtransaction') {
      const message = node.refuses(params[0] as string)
      if (message !== null) {
        refused.push(message)
        const code = place.code === 'BTC' ? -26 : -32_000
        return Response.json({ jsonrpc: '2.0', id, error: { code, message } })
      }
    }
    const response = await fetch(`${devnet.url}/${path}`, init)
    const body = (await response.json()) as { result?: unknown }
    if (body.result !== undefined && node.answers) body.result = node.answers(method, body.result)
    return Response.json(body, { status: response.status })
  }
  const fixture = new FamilyFixture(database.get(), devnet, place, clock, ask, {
    endpoints: [{ url: `http://node/${path}` }],
    quorum: 1,
  })
  try {
    await fixture.open()
    await play(fixture, refused)
    await fixture.check()
  } finally {
    await fixture.close()
  }
}

const feesOf = (raw: string) => {
  const { maxFeePerGas = 0n, maxPriorityFeePerGas = 0n } = parseTransaction(
    raw as TransactionSerialized,
  )
  return { maxFeePerGas, maxPriorityFeePerGas }
}

/** A node that wants a tip, and whose market pays 1 gwei. */
const wantsTip = (least: bigint): Node => ({
  refuses(raw) {
    const { maxPriorityFeePerGas: tip } = feesOf(raw)
    return tip < least
      ? `transaction underpriced: gas tip cap ${tip}, minimum needed ${least}`
      : null
  },
  answers: (method, result) =>
    method === 'eth_feeHistory'
      ? {
          ...(result as object),
          reward: Array.from({ length: 10 }, () => Array(3).fill(`0x${GWEI.toString(16)}`)),
        }
      : result,
})

const waitingOf = async (fixture: FamilyFixture, id: string) =>
  (await fixture.read(id)).waiting as { code: string; cause?: string; reason: string } | null

test('pays the tip that a refusal names, for the fuel first, and later transfers pay it at once', () =>
  staged(ETH, wantsTip(3n * GWEI), async (fixture, refused) => {
    const id = await fixture.create('tip', { fee_rate: '20' })
    await fixture.run()
    assert.equal((await fixture.read(id)).status, 'confirmed')
    assert.equal(await fixture.onChain(id), 1)
    const before = refused.length
    assert.ok(before >= 2 && before < 12, `${before} refusals of the fuel and the transfer`)
    const later = await fixture.create('later')
    await fixture.run()
    assert.equal((await fixture.read(later)).status, 'confirmed')
    assert.equal(await fixture.onChain(later), 1)
    assert.equal(refused.length, before)
  }))

test('a transfer whose fuel does not cover the tip says so, and a speed-up sends it', () =>
  staged(ETH, wantsTip(3n * GWEI), async (fixture) => {
    const id = await fixture.create('little fuel')
    for (let turn = 0; (await waitingOf(fixture, id))?.code !== 'FEE_TOO_LOW'; turn++) {
      assert.ok(turn < 100, JSON.stringify(await fixture.pending()))
      await fixture.turn()
    }
    await fixture.speedUp(id, { fee_rate: '20' })
    await fixture.run()
    assert.equal((await fixture.read(id)).status, 'confirmed')
    assert.equal(await fixture.onChain(id), 1)
  }))

test('does not follow a tip beyond four times the usual one; says so at the transfer and its fuel', () => {
  let least = 500n * GWEI
  const node: Node = {
    ...wantsTip(least),
    refuses: (raw) => wantsTip(least).refuses(raw),
  }
  return staged(ETH, node, async (fixture, refused) => {
    const id = await fixture.create('far tip')
    for (let turn = 0; turn < 60; turn++) {
      await fixture.step()
      clock.advance(15_000)
    }
    const { status, waiting } = await fixture.read(id)
    assert.equal(status, 'pending')
    const { code, cause, reason } = waiting as { code: string; cause: string; reason: string }
    assert.deepEqual([code, cause], ['GAS_TANK', 'FEE_TOO_LOW'])
    assert.match(reason, /That transaction waits: The network does not accept the fee/)
    assert.ok(refused.length > 0)
    // The operator removes the limit of the node.
    least = 0n
    await fixture.run()
    assert.equal((await fixture.read(id)).status, 'confirmed')
    assert.equal(await fixture.onChain(id), 1)
  })
})

/** A node whose base fee rises to `base` for as long as it is set. */
function risen() {
  const state = { base: 0n }
  const node: Node = {
    refuses(raw) {
      const { maxFeePerGas: price } = feesOf(raw)
      return price < state.base
        ? `max fee per gas less than block base fee: address 0x0, maxFeePerGas: ${price}, baseFee: ${state.base}`
        : null
    },
    answers(method, result) {
      if (method !== 'eth_feeHistory' || state.base === 0n) return result
      const { baseFeePerGas } = result as { baseFeePerGas: string[] }
      return {
        ...(result as object),
        baseFeePerGas: baseFeePerGas.map(() => `0x${state.base.toString(16)}`),
      }
    },
  }
  return { state, node }
}

test('a fuel transaction that the risen base fee excludes is sent again at the new price', () => {
  const { state, node } = risen()
  return staged(ETH, node, async (fixture, refused) => {
    const id = await fixture.create('spike in fuel')
    await fixture.runTo(id, 'FUELING')
    state.base = 40n * GWEI
    for (let turn = 0; (await fixture.read(id)).state === 'FUELING'; turn++) {
      assert.ok(turn < 200, JSON.stringify(await fixture.pending()))
      if (!(await fixture.turn())) clock.advance(5000)
    }
    // The transfer's own fuel does not cover the price, which its caller can raise.
    for (let turn = 0; (await waitingOf(fixture, id))?.code !== 'FEE_TOO_LOW'; turn++) {
      assert.ok(turn < 100, JSON.stringify(await fixture.pending()))
      if (!(await fixture.step())) clock.advance(1000)
    }
    const { hash } = await fixture.read(id)
    await fixture.speedUp(id, { fee_rate: '90' })
    await fixture.run()
    const done = await fixture.read(id)
    assert.equal(done.status, 'confirmed')
    assert.notEqual(done.hash, hash)
    assert.equal(await fixture.onChain(id), 1)
    assert.ok(refused.length < 30, `${refused.length} refusals`)
  })
})

for (const [column, limit] of [
  ['max_gas_price', 60n * GWEI],
  ['fee_cap', 60n * GWEI * 21_000n],
] as const)
  test(`neither a refusal nor a caller's speed-up makes a gas tank pay beyond its ${column}`, () => {
    const { state, node } = risen()
    return staged(ETH, node, async (fixture) => {
      const id = await fixture.create('limited tank')
      await fixture.runTo(id, 'FUELING')
      await fixture.database.query(`update gas_tanks set ${column} = $1 where network = 'ETH'`, [
        limit.toString(),
      ])
      state.base = 40n * GWEI
      for (let turn = 0; turn < 60; turn++) {
        await fixture.step()
        clock.advance(10_000)
      }
      const prices = (
        await fixture.database.query<{ signed: string }>(
          'select signed from chain_transactions where signed is not null',
        )
      ).map(({ signed }) => feesOf(`0x${signed}`).maxFeePerGas)
      assert.ok(prices.length > 0 && prices.every((each) => each <= 60n * GWEI), prices.join())
      assert.equal((await waitingOf(fixture, id))?.code, 'GAS_TANK')
      // The price falls until the fuel has arrived; then the caller wants to pay more than the tank does.
      state.base = 0n
      await fixture.runTo(id, 'SIGNED')
      state.base = 40n * GWEI
      await fixture.speedUp(id, { fee_rate: '90' })
      for (let turn = 0; turn < 20; turn++) {
        await fixture.step()
        clock.advance(3000)
      }
      const [replacement] = await fixture.database.query<{ state: string; reason: string }>(
        `select state, reason from replacements where transaction_id = $1 and kind = 'SPEED_UP'`,
        [id],
      )
      assert.equal(replacement?.state, 'REFUSED')
      assert.match(
        replacement?.reason ?? '',
        /the gas tank pays at most 60 GWei|exceeds the gas tank's cap/,
      )
      state.base = 0n
      await fixture.run()
      assert.equal((await fixture.read(id)).status, 'confirmed')
      assert.equal(await fixture.onChain(id), 1)
    })
  })

test('a transfer that the base fee excludes is sent with the same bytes once the price has fallen', () => {
  const { state, node } = risen()
  return staged(ETH, node, async (fixture) => {
    const id = await fixture.create('spike', { fee_rate: '8' })
    await fixture.runTo(id, 'SIGNED')
    state.base = 40n * GWEI
    for (let turn = 0; turn < 40; turn++) {
      await fixture.step()
      clock.advance(3000)
    }
    const { status, hash } = await fixture.read(id)
    assert.equal(status, 'pending')
    assert.equal((await waitingOf(fixture, id))?.code, 'FEE_TOO_LOW')
    const later = await fixture.create('behind it', { fee_rate: '90' })
    state.base = 0n
    await fixture.run()
    for (const each of [id, later]) {
      assert.equal((await fixture.read(each)).status, 'confirmed')
      assert.equal(await fixture.onChain(each), 1)
    }
    assert.equal((await fixture.read(id)).hash, hash, 'the caller allowed no higher fee')
  })
})

test('BTC: a payment below the minimum fee of the mempool is replaced by one that is accepted', () => {
  let least = 0
  const node: Node = {
    refuses: (raw) => {
      // The fee is not in the transaction, so the node refuses the first transactions that it sees.
      if (least === 0) return null
      least--
      return `mempool min fee not met, 141 < ${raw.length}`
    },
  }
  return staged(BTC, node, async (fixture, refused) => {
    least = 1
    const id = await fixture.create('mempool full')
    await fixture.run()
    assert.equal((await fixture.read(id)).status, 'confirmed')
    assert.equal(await fixture.onChain(id), 1)
    const replacements = await fixture.database.query<{ kind: string; state: string }>(
      'select kind, state from replacements where transaction_id = $1',
      [id],
    )
    assert.deepEqual([refused.length, replacements], [1, [{ kind: 'AUTO', state: 'DONE' }]])
  })
})
