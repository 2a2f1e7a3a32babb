import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { FamilyFixture, type WalletAddress } from '../../../testing/chains/family-fixture.ts'
import { testEmittedEvents } from '../../../testing/event-assertions.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'

/**
 * Tests of every step of a transfer in every family. Each check runs for all families, unless the
 * table states why not.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-steps-'))
let devnet: Devnet

/**
 * Properties of a family that the steps depend on. `fuelled`: a gas tank pays. `isFinalAtOnce`: a
 * transaction in a block is final. `concurrent`: number of transfers that run concurrently; default
 * 8. `coins`: further amounts that the wallet receives, on chains with coins. `end`: how a
 * transaction that the chain never included expires, and whether the transfer is then built again
 * or refunded. `congested`: rates of the chain, of the waiting transaction, and of its replacement.
 */
interface Family extends WalletAddress {
  fuelled?: boolean
  isFinalAtOnce?: boolean
  concurrent?: number
  coins?: string[]
  end?: { commands: Record<string, unknown>[]; becomes: 'another' | 'failed' }
  congested?: { chain: string; low: string; high: string }
}
const FAMILIES: Record<string, Family> = {
  utxo: {
    code: 'BTC',
    to: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
    held: '2',
    amount: '0.12345678',
    coins: ['0.06', '0.07', '0.08'],
    congested: { chain: '60', low: '5', high: '70' },
  },
  evm: {
    code: 'ETH',
    to: '0x00000000000000000000000000000000000000AA',
    held: '50',
    amount: '1.000000000000000001',
    fuelled: true,
    concurrent: 20,
    congested: { chain: '40', low: '20', high: '90' },
  },
  tron: {
    code: 'TRX',
    to: 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY',
    held: '300',
    amount: '12.345678',
    fuelled: true,
    end: { commands: [{ command: 'clock', advance: '+15m' }], becomes: 'failed' },
  },
  xrp: {
    code: 'XRP',
    to: 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh',
    held: '500',
    amount: '2.345678',
    isFinalAtOnce: true,
    end: { commands: [{ command: 'mine', blocks: 70 }], becomes: 'another' },
  },
  stellar: {
    code: 'XLM',
    to: 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ',
    held: '500',
    amount: '2.3456789',
    isFinalAtOnce: true,
    end: { commands: [{ command: 'mine', blocks: 1, seconds: 400 }], becomes: 'another' },
  },
  cardano: {
    code: 'ADA',
    to: 'addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz',
    held: '300',
    amount: '5.345678',
    coins: ['3', '4', '5'],
    end: { commands: [{ command: 'mine', blocks: 1, seconds: 10_000 }], becomes: 'another' },
  },
  solana: {
    code: 'SOL',
    to: '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin',
    held: '20',
    amount: '0.345678912',
    isFinalAtOnce: true,
    end: { commands: [{ command: 'mine', blocks: 300 }], becomes: 'failed' },
  },
}

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

async function staged(
  family: Family,
  play: (fixture: FamilyFixture) => Promise<void>,
): Promise<void> {
  const fixture = new FamilyFixture(database.get(), devnet, family, clock)
  try {
    await fixture.open()
    await play(fixture)
    await fixture.check()
  } finally {
    await fixture.close()
  }
}

/**
 * Asserts that a confirmed transfer deducted the amount, and its fee unless a gas tank pays, from
 * the wallet, and is on the chain once.
 */
async function confirmed(
  fixture: FamilyFixture,
  id: string,
  { fuelled = false }: Family,
  before: bigint,
): Promise<void> {
  const row = await fixture.read(id)
  assert.deepEqual([row.status, row.state, row.failure_reason], ['confirmed', 'CONFIRMED', null])
  assert.equal(await fixture.onChain(id), 1)
  assert.equal(
    before - (await fixture.available()),
    fixture.amount + (fuelled ? 0n : BigInt(row.fee as string)),
  )
}

/** Number of blocks between two transfers, so that a reorganisation removes only the second. */
const APART = 8
const ENDS = /\.(confirmed|failed|reverted)$/

/** Confirms a transfer, so that the gas tank is filled in blocks that stay. */
async function settled(fixture: FamilyFixture, sequence: string): Promise<void> {
  await fixture.create(sequence)
  await fixture.run()
  await fixture.control({ command: 'mine', blocks: APART })
  await fixture.scan()
}

/** Replaces the blocks that contain a confirmed transfer, and everything that it needed, by a longer fork. */
async function fork(fixture: FamilyFixture, id: string, isDropped: boolean): Promise<void> {
  const scan = await fixture.database.one<{ depth: number }>(
    `select (max(s.height) - min(c.block_height) + 1)::integer depth
     from chain_transactions c join transactions t on t.id = c.transaction_id
       join network_scans s on s.network = c.network where t.id = $1 or t.parent_id = $1`,
    [id],
  )
  const depth = scan?.depth ?? 0
  await fixture.control({ command: 'reorg', depth, drop: isDropped })
  await fixture.control({ command: 'mine', blocks: depth + 1 })
  await fixture.scan()
}

/** Returns the commits of a transfer, in order. */
const commitsOf = ({ fuelled, isFinalAtOnce }: Family): string[] => [
  'created',
  'queued',
  ...(fuelled ? ['fuel-reserved'] : []),
  'built',
  'shown',
  'signed',
  'broadcasting',
  'broadcast',
  ...(isFinalAtOnce ? [] : ['included']),
  'settled',
]

for (const [name, family] of Object.entries(FAMILIES)) {
  describe(name, () => {
    test('a transfer is confirmed and booked, and a repeated sequence_id returns the same transfer', () =>
      staged(family, async (fixture) => {
        const before = await fixture.available()
        const id = await fixture.create('once')
        assert.equal(await fixture.create('once'), id)
        await fixture.run()
        assert.equal(await fixture.create('once'), id)
        await confirmed(fixture, id, family, before)
      }))

    for (const commit of commitsOf(family))
      test(`a transfer is paid once if the process ends after commit ${commit}`, () =>
        staged(family, async (fixture) => {
          const before = await fixture.available()
          fixture.crashAt = `transaction.${commit}`
          const id = await fixture.create('crash')
          await fixture.run()
          assert.equal(fixture.crashAt, null, 'it was reached')
          await confirmed(fixture, id, family, before)
        }))

    test('a transfer is paid once if the response to its broadcast is lost', () =>
      staged(family, async (fixture) => {
        const before = await fixture.available()
        await fixture.control({ command: 'fault', mode: 'drop-answer' })
        const id = await fixture.create('lost')
        await fixture.run()
        await confirmed(fixture, id, family, before)
      }))

    for (const more of family.coins ? [[], family.coins] : [[]])
      test(`concurrent transfers${more.length > 0 ? ' from several coins' : ''} are paid once each if responses are lost and the process ends`, () =>
        staged(family, async (fixture) => {
          for (const amount of more) await fixture.fund(amount)
          const before = await fixture.available()
          await fixture.control({ command: 'fault', mode: 'drop-answer' })
          fixture.crashAt = 'transaction.broadcasting'
          const ids: string[] = []
          for (let count = 0; count < (family.concurrent ?? 8); count++)
            ids.push(await fixture.create(`concurrent ${count}`))
          await fixture.run()
          assert.equal(fixture.crashAt, null, 'it was reached')
          const rows = await Promise.all(ids.map((id) => fixture.read(id)))
          assert.deepEqual(
            rows.map(({ status, failure_reason: reason }) => [status, reason]),
            ids.map(() => ['confirmed', null]),
          )
          assert.equal(new Set(rows.map(({ hash }) => hash)).size, ids.length)
          for (const id of ids) assert.equal(await fixture.onChain(id), 1)
          const fees = rows.reduce((sum, { fee }) => sum + BigInt(fee as string), 0n)
          assert.equal(
            before - (await fixture.available()),
            BigInt(ids.length) * fixture.amount + (family.fuelled ? 0n : fees),
          )
        }))

    test('a transfer that the nodes refuse fails, and its amount and fee are released', () =>
      staged(family, async (fixture) => {
        const before = await fixture.available()
        fixture.fault = 'refuse'
        const id = await fixture.create('refused')
        await fixture.run()
        const row = await fixture.read(id)
        assert.deepEqual([row.status, row.state], ['failed', 'FAILED'])
        assert.match(row.failure_reason ?? '', /reject/)
        assert.deepEqual([await fixture.onChain(id), await fixture.available()], [0, before])
      }))

    test('a transfer waits while the nodes are unreachable, and continues when they are back', () =>
      staged(family, async (fixture) => {
        const before = await fixture.available()
        fixture.fault = 'away'
        const id = await fixture.create('away')
        await fixture.runTo(id, 'SIGNING')
        for (let turns = 0; turns < 5; turns++) await fixture.turn()
        assert.equal((await fixture.read(id)).hash, null)
        fixture.fault = undefined
        await fixture.run()
        await confirmed(fixture, id, family, before)
      }))

    test('a transfer waits while the chain is unreachable, and is paid once when it is back', () =>
      staged(family, async (fixture) => {
        const before = await fixture.available()
        const id = await fixture.create('unreachable')
        await fixture.control({ command: 'fault', mode: 'down' })
        for (let turns = 0; turns < 5; turns++) await fixture.turn()
        const { status, hash } = await fixture.read(id)
        assert.deepEqual([status, hash], ['pending', null])
        await fixture.control({ command: 'fault', mode: 'heal' })
        await fixture.run()
        await confirmed(fixture, id, family, before)
      }))

    test('a replacement with a fee rate of zero is refused, and changes nothing', () =>
      staged(family, async (fixture) => {
        const before = await fixture.available()
        await assert.rejects(fixture.create('cheap', { fee_rate: '0' }), /fee_rate/)
        assert.equal(await fixture.available(), before)
      }))

    test('a transfer cancelled before it is signed pays nothing', () =>
      staged(family, async (fixture) => {
        const before = await fixture.available()
        const id = await fixture.create('cancelled')
        await fixture.cancel(id)
        await fixture.run()
        assert.deepEqual(
          [(await fixture.read(id)).status, (await fixture.read(id)).state],
          ['failed', 'CANCELLED'],
        )
        assert.deepEqual([await fixture.onChain(id), await fixture.available()], [0, before])
      }))

    test('a transfer of a wallet below zero waits until the wallet is filled', () =>
      staged(family, async (fixture) => {
        const before = await fixture.available()
        const id = await fixture.create('below zero')
        // As after the reversal of a deposit that the wallet has spent.
        const below = (await fixture.available()) + 1n
        await fixture.adjust(-below)
        for (let count = 0; count < 5; count++) await fixture.step()
        const { state, waiting } = await fixture.read(id)
        assert.deepEqual([state, waiting?.code], ['QUEUED', 'BELOW_ZERO'])
        await fixture.adjust(below)
        await fixture.run()
        await confirmed(fixture, id, family, before)
      }))

    if (!family.isFinalAtOnce) {
      test('a transfer whose block a reorganisation removes is mined again, and is booked once', () =>
        staged(family, async (fixture) => {
          const before = await fixture.available()
          const id = await fixture.create('reorganised')
          await fixture.sentHash(id)
          await fixture.control({ command: 'mine', blocks: 1 })
          assert.equal(await fixture.onChain(id), 1)
          await fixture.control({ command: 'reorg', depth: 1 })
          assert.equal(await fixture.onChain(id), 0)
          await fixture.run()
          await confirmed(fixture, id, family, before)
        }))

      for (const isDropped of [false, true])
        test(`a confirmed transfer whose block a deep reorganisation ${isDropped ? 'drops' : 'removes'} is confirmed again, twice`, () =>
          staged(family, async (fixture) => {
            await settled(fixture, 'earlier')
            const before = await fixture.available()
            const id = await fixture.create('deep')
            await fixture.run()
            await confirmed(fixture, id, family, before)
            const { hash } = await fixture.read(id)
            for (const generation of [1, 2]) {
              await fork(fixture, id, isDropped)
              const { status, state, confirmed_at: at, plan } = await fixture.read(id)
              assert.deepEqual(
                [status, state, at, plan.generation],
                ['pending', 'CONFIRMING', null, String(generation)],
              )
              await fixture.run()
              await confirmed(fixture, id, family, before)
              assert.equal((await fixture.read(id)).hash, hash, 'the same bytes')
            }
            assert.deepEqual(
              (await fixture.events(id)).filter(({ type }) => ENDS.test(type)),
              [
                { type: 'transaction.confirmed', sub_status: 'CONFIRMED', generation: 0 },
                { type: 'transaction.reverted', sub_status: 'REORGANISED', generation: 1 },
                { type: 'transaction.confirmed', sub_status: 'CONFIRMED', generation: 1 },
                { type: 'transaction.reverted', sub_status: 'REORGANISED', generation: 2 },
                { type: 'transaction.confirmed', sub_status: 'CONFIRMED', generation: 2 },
              ],
            )
          }))

      test('while the endpoint contradicts final blocks, everything waits; then each transfer is paid once', () =>
        staged(family, async (fixture) => {
          await settled(fixture, 'earlier')
          const before = await fixture.available()
          const ids = [await fixture.create('before')]
          await fixture.run()
          fixture.accepts = false
          await assert.rejects(fork(fixture, ids[0]!, true), /was final; nothing is credited,/)
          ids.push(await fixture.create('during'))
          for (let count = 0; count < 5; count++) await fixture.step()
          const rows = await Promise.all(ids.map((id) => fixture.read(id)))
          assert.deepEqual(
            rows.map(({ state, waiting }) => [state, waiting?.code]),
            [
              ['CONFIRMED', undefined],
              ['QUEUED', 'FINAL_BLOCK'],
            ],
          )
          fixture.accepts = true
          await fixture.scan()
          await fixture.run()
          let paid = 0n
          for (const id of ids) {
            const { status, fee } = await fixture.read(id)
            assert.deepEqual([status, await fixture.onChain(id)], ['confirmed', 1])
            paid += fixture.amount + (family.fuelled ? 0n : BigInt(fee as string))
          }
          assert.equal(before - (await fixture.available()), paid)
        }))

      // The local Ethereum chain does not mine a removed deposit again.
      for (const isDropped of name === 'evm' ? [true] : [true, false])
        test(`a deposit whose block a reorganisation removes is ${isDropped ? 'not credited' : 'credited once when it is mined again'}`, () =>
          staged(family, async (fixture) => {
            const before = await fixture.available()
            const { hash } = await fixture.control({
              command: 'fund',
              asset: family.code,
              address: fixture.source,
              amount: family.amount,
            })
            await fixture.scan()
            const states = async () =>
              fixture.database.query(
                `select distinct t.state from transactions t where t.kind = 'DEPOSIT' and t.hash = $1`,
                [hash],
              )
            assert.deepEqual(await states(), [{ state: 'CONFIRMING' }])
            await fixture.control({ command: 'reorg', depth: 1, drop: isDropped })
            await fixture.control({ command: 'mine', blocks: 1 })
            await fixture.scan()
            await fixture.run()
            for (let blocks = 0; blocks < 20; blocks++)
              await fixture.control({ command: 'mine', blocks: 1 })
            await fixture.scan()
            await fixture.run()
            if (isDropped) assert.deepEqual(await states(), [{ state: 'REORGED' }])
            assert.equal((await fixture.available()) - before, isDropped ? 0n : fixture.amount)
          }))
    }

    const { end, congested } = family
    if (end && !family.isFinalAtOnce)
      test('a confirmed transfer that a reorganisation drops, and that has expired, fails and gives its amount back', () =>
        staged(family, async (fixture) => {
          await settled(fixture, 'earlier')
          const before = await fixture.available()
          const id = await fixture.create('gone')
          await fixture.run()
          await confirmed(fixture, id, family, before)
          await fixture.control({ command: 'fault', mode: 'reject' })
          await fork(fixture, id, true)
          for (const command of end.commands) await fixture.control(command)
          await fixture.control({ command: 'fault', mode: 'heal' })
          await fixture.scan()
          await fixture.run()
          const row = await fixture.read(id)
          assert.deepEqual([row.status, row.state], ['failed', 'FAILED'])
          assert.match(row.failure_reason ?? '', /^REORGANISED: /)
          assert.deepEqual([await fixture.onChain(id), await fixture.available()], [0, before])
          const again = await fixture.create('again')
          await fixture.run()
          await confirmed(fixture, again, family, before)
        }))

    if (end)
      test(`a transfer never accepted by the chain ${end.becomes === 'failed' ? 'fails at its expiry, and its money is released' : 'is rebuilt at its expiry, and is paid once'}`, () =>
        staged(family, async (fixture) => {
          const before = await fixture.available()
          const id = await fixture.create('late')
          await fixture.runTo(id, 'SIGNED')
          await fixture.control({ command: 'fault', mode: 'reject' })
          const first = await fixture.sentHash(id)
          for (const command of end.commands) await fixture.control(command)
          await fixture.control({ command: 'fault', mode: 'heal' })
          await fixture.scan()
          await fixture.run()
          if (end.becomes === 'another') {
            assert.notEqual((await fixture.read(id)).hash, first)
            return confirmed(fixture, id, family, before)
          }
          const row = await fixture.read(id)
          assert.deepEqual([row.status, row.state], ['failed', 'FAILED'])
          assert.match(row.failure_reason ?? '', /expired/)
          assert.deepEqual([await fixture.onChain(id), await fixture.available()], [0, before])
        }))

    if (end)
      test('a transfer that the nodes sign only after its expiry is paid once', () =>
        staged(family, async (fixture) => {
          const before = await fixture.available()
          fixture.fault = 'away'
          const id = await fixture.create('signed late')
          await fixture.runTo(id, 'SIGNING')
          for (const command of end.commands) await fixture.control(command)
          fixture.fault = undefined
          await fixture.scan()
          await fixture.run()
          await confirmed(fixture, id, family, before)
        }))

    if (congested)
      for (const way of ['sped up', 'cancelled'] as const)
        test(`if a signed transfer below the market rate is ${way}, one of the two transactions is mined`, () =>
          staged(family, async (fixture) => {
            await settled(fixture, 'earlier')
            const before = await fixture.available()
            await fixture.control({ command: 'congestion', fee_rate: congested.chain })
            try {
              const id = await fixture.create('low', { fee_rate: congested.low })
              const first = await fixture.sentHash(id)
              if (way === 'cancelled') await fixture.cancel(id)
              else await fixture.speedUp(id, { fee_rate: congested.high })
              const ended = async () => {
                await fixture.run()
                const row = await fixture.read(id)
                if (way === 'sped up') {
                  assert.notEqual(row.hash, first)
                  return confirmed(fixture, id, family, before)
                }
                assert.deepEqual([row.status, row.state], ['failed', 'CANCELLED'])
                assert.equal(
                  before - (await fixture.available()),
                  family.fuelled ? 0n : BigInt(row.fee as string),
                )
              }
              await ended()
              // After a reorganisation both may be mined again, and only one of them is.
              await fork(fixture, id, true)
              assert.equal((await fixture.read(id)).status, 'pending')
              await ended()
            } finally {
              await fixture.control({ command: 'congestion', fee_rate: '0' })
            }
          }))
  })
}

test('BTC: a transfer waits for the deposit that it spends if a reorganisation drops both', async () => {
  const fixture = new FamilyFixture(database.get(), devnet, FAMILIES['utxo'] as Family, clock)
  try {
    await fixture.open()
    const id = await fixture.create('spends')
    await fixture.run()
    const height = await fixture.database.one<{ depth: number }>(
      `select (max(s.height) - min(d.block_height) + 1)::integer depth from deposits d, network_scans s`,
    )
    await fixture.control({ command: 'reorg', depth: height?.depth, drop: true })
    await fixture.control({ command: 'mine', blocks: 2 })
    await fixture.scan()
    for (let round = 0; round < 4; round++) await fixture.turn()
    const { status, state, waiting } = await fixture.read(id)
    assert.deepEqual([status, state, waiting?.code], ['pending', 'BROADCASTING', 'REORGANISED'])
    assert.ok((await fixture.available()) < 0n, 'the deposit is not in the balance')
  } finally {
    await fixture.close()
  }
})

testEmittedEvents(database.get, ['transaction.reverted', 'deposit.reverted'])
