import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DepositFixture, useDatabase, type Tenant } from '../../../testing/deposits-support.ts'
import { acceptReorg } from '../../server/operator/endpoints.ts'

/**
 * Tests of a single endpoint that contradicts final blocks: nothing is taken back, credited or paid until
 * it returns them again or the operator accepts the other chain.
 */
const database = useDatabase()
const COIN = 1_000_000n

async function opened(): Promise<{ fixture: DepositFixture; alice: Tenant }> {
  const fixture = new DepositFixture(database.get(), 'evm')
  await fixture.open()
  fixture.accepts = false
  const alice = await fixture.tenant('alice')
  pay(fixture, alice, 'known')
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(await fixture.books(alice), { USDT_ETH: String(COIN) })
  return { fixture, alice }
}

const pay = ({ chain }: DepositFixture, { deposit }: Tenant, txid: string) =>
  chain.mine({
    txid,
    outcome: [{ position: 0, asset: 'USDT_ETH', address: deposit, amount: COIN }],
  })

/** Moves the endpoint to another chain, on which all blocks from the first one on differ. */
function fork({ chain }: DepositFixture): () => void {
  const known = [...chain.blocks]
  chain.drop(known.length)
  for (let count = 0; count < known.length; count++) chain.mine()
  return () => {
    chain.blocks = known
  }
}

const CONTRADICTED =
  /ETH: an endpoint returns \w+ as block 1, and \w+ was final; nothing is credited, settled or paid until .*: npx custody chain accept-reorg ETH 1 \w+$/

const contradiction = async () =>
  (
    await database
      .get()
      .one<{ contradiction: { height: number; known: string; other: string } | null }>(
        'select contradiction from network_scans',
      )
  )?.contradiction ?? null

const accept = (fixture: DepositFixture, height: unknown, hash: unknown) =>
  acceptReorg(fixture.services, { network: 'ETH', height, hash })

test('a contradicted final block changes nothing, and ends when the endpoint returns it again', async () => {
  const { fixture, alice } = await opened()
  const goBack = fork(fixture)
  for (let pass = 0; pass < 3; pass++) await assert.rejects(fixture.scan(), CONTRADICTED)
  const errors = fixture.logged.filter(({ level }) => level === 'error')
  assert.deepEqual(
    errors.map(({ message }) => message),
    ['an endpoint contradicts a final block; the network credits and pays nothing'],
  )
  assert.deepEqual(await fixture.books(alice), { USDT_ETH: String(COIN) })
  goBack()
  await fixture.settle()
  assert.equal(await contradiction(), null)
  assert.deepEqual(await fixture.books(alice), { USDT_ETH: String(COIN) })
})

test('a node that is behind and has only the common blocks does not end a contradiction', async () => {
  const { fixture } = await opened()
  const goBack = fork(fixture)
  await assert.rejects(fixture.scan(), CONTRADICTED)
  goBack()
  const known = fixture.chain.blocks
  fixture.chain.blocks = known.slice(0, 1)
  await fixture.scan()
  assert.notEqual(await contradiction(), null)
  fixture.chain.blocks = known
  await fixture.scan()
  assert.equal(await contradiction(), null)
})

test('a deposit that is deep enough is credited only after the contradiction', async () => {
  const { fixture, alice } = await opened()
  pay(fixture, alice, 'later')
  fixture.chain.bury()
  // It waits for its screening.
  await fixture.scan()
  const goBack = fork(fixture)
  await assert.rejects(fixture.scan(), CONTRADICTED)
  await fixture.step()
  assert.deepEqual(await fixture.books(alice), { USDT_ETH: String(COIN) })
  const waiting = (await fixture.deposits()).find(({ state }) => state === 'SCREENING')?.waiting
  assert.equal((waiting as { code: string } | undefined)?.code, 'FINAL_BLOCK')
  goBack()
  await fixture.settle()
  assert.deepEqual(await fixture.books(alice), { USDT_ETH: String(2n * COIN) })
})

test('the other chain is followed after the operator has accepted exactly its block', async () => {
  const { fixture, alice } = await opened()
  await assert.rejects(accept(fixture, '1', 'ab'), /NETWORK: no endpoint contradicts a final block/)
  fork(fixture)
  await assert.rejects(fixture.scan(), CONTRADICTED)
  const { height, known, other } = (await contradiction())!
  for (const [wrong, hash, message] of [
    ['one', other, /^OperatorError: HEIGHT: must be the height of a block/],
    [undefined, other, /^OperatorError: HEIGHT: must be/],
    [
      height + 1,
      other,
      /^OperatorError: HEIGHT and HASH: the endpoint of ETH returns \w+ as block 1;/,
    ],
    [height, known, /^OperatorError: HEIGHT and HASH: /],
  ] as const)
    await assert.rejects(accept(fixture, wrong, hash), message)
  await assert.rejects(fixture.scan(), CONTRADICTED)
  assert.deepEqual(await accept(fixture, String(height), other), {
    network: 'ETH',
    height,
    known,
    accepted: other,
  })
  pay(fixture, alice, 'other')
  fixture.chain.bury()
  await fixture.settle()
  assert.equal(await contradiction(), null)
  assert.deepEqual(await fixture.books(alice), { USDT_ETH: String(COIN) })
  assert.deepEqual(
    (await fixture.deposits()).map(({ state }) => state),
    ['REORGED', 'CREDITED'],
  )
  assert.deepEqual(await database.get().query('select action, object, actor_type from audit_log'), [
    { action: 'chain.reorg_accepted', object: 'ETH', actor_type: 'operator' },
  ])
})

test('an accepted block is accepted once: the next contradiction halts the network again', async () => {
  const { fixture } = await opened()
  fork(fixture)
  await assert.rejects(fixture.scan(), CONTRADICTED)
  await accept(fixture, '1', (await contradiction())!.other)
  await fixture.settle()
  fork(fixture)
  await assert.rejects(fixture.scan(), CONTRADICTED)
})

test('a reorganisation that goes back further than the kept blocks is accepted by the same command', async () => {
  const { fixture, alice } = await opened()
  await database.get().query('delete from blocks where height < 2')
  fork(fixture)
  await assert.rejects(fixture.scan(), /returns \w+ as block 2, and/)
  await accept(fixture, '2', (await contradiction())!.other)
  await fixture.settle()
  // The deposit of block 1 stays: that block is not kept, so nothing is known of it.
  assert.deepEqual(await fixture.books(alice), { USDT_ETH: String(COIN) })
  assert.ok(
    fixture.logged.some(({ message }) =>
      message.endsWith('read earlier blocks again with "custody rescan"'),
    ),
  )
})
