import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database, Queryable } from '../../core/database/pool.ts'
import { Digests } from './digests.ts'
import { scanLoop } from './scanner.ts'
import { useDatabase, DepositFixture, type Tenant } from '../../../testing/deposits-support.ts'

/**
 * Tests that a scanner caches the own addresses. Whichever process registers an address, and
 * however late that is committed, a later payment to it is found by every process that reads the
 * block.
 */
// The numbers of transactions are those of the whole server.
const database = useDatabase({ server: 'own' })
let fixture: DepositFixture
let alice: Tenant
let made = 0

beforeEach(async () => {
  await database.started
  fixture = new DepositFixture(database.get(), 'evm')
  await fixture.open()
  alice = await fixture.tenant('alice')
})

/** Registers an address of the user alice in the same way as any process. */
async function register(tx: Queryable): Promise<string> {
  const address = `0x${randomBytes(20).toString('hex')}`
  await tx.query(
    `insert into chain_addresses (network, address, workspace_id, sub_account_id, path_index, kind)
      values ('ETH', $1, $2, $3, $4, 'deposit')`,
    [address, alice.workspace, alice.subAccount, 100 + ++made],
  )
  return address
}
const payment = (address: string) => ({
  txid: `0x${++made}`,
  outcome: [{ position: 0, asset: 'ETH', address, amount: 5n }],
})
const destinations = async () =>
  new Set((await fixture.deposits()).map((row) => row.destination_id))
/** Returns another scanner of the same network, as a restarted process has. */
const restarted = () => {
  const loop = scanLoop(
    fixture.services,
    fixture.services.networks.get('ETH'),
    async () => new Set(['ETH']),
  )
  return async () => {
    while (await loop.run(new AbortController().signal));
  }
}

test('a digest set contains every added value, uses few bytes, and rarely has false positives', () => {
  const digests = new Digests()
  const some = Array.from({ length: 50_000 }, () => `0x${randomBytes(20).toString('hex')}`)
  for (const each of some) digests.add(each)
  for (const each of some) digests.add(each)
  assert.ok(some.every((each) => digests.mayHave(each)))
  assert.ok(digests.bytes <= 11 * some.length, `${digests.bytes}`)
  const others = Array.from({ length: 50_000 }, () => `0x${randomBytes(20).toString('hex')}`)
  assert.ok(others.filter((each) => digests.mayHave(each)).length < 20)
})

test('finds the deposit to an address that another process registers between or during blocks', async () => {
  fixture.chain.mine()
  await fixture.scan()
  const between = await register(database.get())
  fixture.chain.mine(payment(between))
  await fixture.scan()
  assert.deepEqual(await destinations(), new Set([between]))

  // The tip is read, then the address is assigned, and the block at that height is a different one
  // when it is read.
  fixture.chain.mine()
  const { block } = fixture.chain
  let within = ''
  fixture.chain.block = async (height) => {
    if (within === '') {
      // Queries that run concurrently with the block have been answered by then.
      await sleep(100)
      within = await register(database.get())
      fixture.chain.drop(1)
      fixture.chain.mine(payment(within))
    }
    return block.call(fixture.chain, height)
  }
  await fixture.scan()
  assert.deepEqual(await destinations(), new Set([between, within]))

  // The same must hold while the scanner catches up over many blocks.
  for (let count = 0; count < 40; count++) fixture.chain.mine()
  let late = ''
  fixture.chain.block = async (height) => {
    if (late === '' && height === fixture.chain.blocks.length - 5) {
      late = await register(database.get())
      fixture.chain.drop(3)
      for (let count = 0; count < 3; count++) fixture.chain.mine(payment(late))
    }
    return block.call(fixture.chain, height)
  }
  await fixture.scan()
  fixture.chain.block = block
  await fixture.scan()
  assert.notEqual(late, '')
  assert.deepEqual(await destinations(), new Set([between, within, late]))
})

test('finds a deposit although its address’s database transaction began many blocks earlier', async () => {
  const [begun, pause] = [Promise.withResolvers<string>(), Promise.withResolvers<void>()]
  const registering = database.get().transaction(async (tx) => {
    begun.resolve(await register(tx))
    await pause.promise
  })
  const slow = await begun.promise
  const quick: string[] = []
  for (let count = 0; count < 4; count++) {
    quick.push(await register(database.get()))
    fixture.chain.mine(payment(quick.at(-1) as string))
    await fixture.scan()
  }
  assert.deepEqual(await destinations(), new Set(quick))
  pause.resolve()
  await registering
  fixture.chain.mine(payment(slow))
  await fixture.scan()
  assert.deepEqual(await destinations(), new Set([...quick, slow]))
})

test('a process that was restarted or idle finds deposits to every registered address', async () => {
  fixture.chain.mine()
  await fixture.scan()
  const [first, second] = [await register(database.get()), await register(database.get())]
  const other = restarted()
  fixture.chain.mine(payment(first))
  await other()
  assert.deepEqual(
    await destinations(),
    new Set([first]),
    'a scanner that ended in order left nothing to wait for',
  )
  fixture.chain.mine(payment(second), payment(alice.deposit))
  await fixture.scan()
  assert.deepEqual(await destinations(), new Set([first, second, alice.deposit]))
  const third = await register(database.get())
  fixture.chain.mine(payment(third))
  await Promise.all([other(), fixture.scan(), restarted()()])
  fixture.now += 30_000
  await fixture.scan()
  assert.deepEqual(await destinations(), new Set([first, second, alice.deposit, third]))
  assert.equal((await fixture.deposits()).length, 4, 'each once, in any order')
})

test('finds a payment that a reorganisation moves into blocks read before its address existed', async () => {
  for (let count = 0; count < 3; count++) fixture.chain.mine()
  await fixture.scan()
  const address = await register(database.get())
  fixture.chain.drop(2)
  fixture.chain.mine(payment(address))
  fixture.chain.mine()
  fixture.chain.mine()
  await fixture.scan()
  assert.deepEqual(await destinations(), new Set([address]))
  assert.equal(
    fixture.logged.some(({ message }) => message === 'the chain was reorganised'),
    true,
  )
})

test('a scanner at the tip goes back if the operator orders a rescan', async () => {
  const address = `0x${'ab'.repeat(20)}`
  fixture.chain.mine(payment(address))
  fixture.chain.mine()
  await fixture.scan()
  assert.deepEqual(await destinations(), new Set())
  await database.get().query(
    `insert into chain_addresses (network, address, workspace_id, sub_account_id, path_index,
        kind) values ('ETH', $1, $2, $3, 99, 'deposit')`,
    [address, alice.workspace, alice.subAccount],
  )
  await database
    .get()
    .query(
      'update network_scans set height = 0, lease_token = gen_random_uuid(), lease_until = null',
    )
  fixture.now += 5000
  await fixture.scan()
  assert.deepEqual(await destinations(), new Set([address]))
})

test('after a database restore, the scanner reads blocks and addresses again', async () => {
  for (let count = 0; count < 2; count++) fixture.chain.mine()
  await fixture.scan()
  const [before] = await database
    .get()
    .query<{ height: string; lease_token: string }>('select height, lease_token from network_scans')
  const lost = await register(database.get())
  fixture.chain.mine(payment(lost))
  fixture.chain.mine()
  await fixture.scan()
  assert.deepEqual(await destinations(), new Set([lost]))
  // A standby was promoted that lacks the last blocks, and reuses the numbers of lost transactions.
  await database
    .get()
    .query('update network_scans set height = $1, lease_token = $2', [
      before?.height,
      before?.lease_token,
    ])
  await database.get().query('delete from blocks where height > $1', [before?.height])
  const again = await register(database.get())
  await database
    .admin()
    .query(`update chain_addresses set registered = '7' where address = $1`, [again])
  fixture.chain.mine(payment(again))
  await fixture.scan()
  assert.deepEqual(await destinations(), new Set([lost, again]))
  assert.equal((await fixture.deposits()).length, 2)
})

test('on a restored database, a block does not cause a full read of the addresses', async () => {
  await database.admin().query(`update chain_addresses set registered = '1000000000000'`)
  fixture.chain.mine(payment(alice.deposit))
  await fixture.scan()
  const other = await register(database.get())
  const counted = counting(database.get())
  Object.assign(fixture.services, { database: counted.database })
  fixture.chain.mine(payment(other))
  await fixture.scan()
  assert.deepEqual(await destinations(), new Set([alice.deposit, other]))
  assert.deepEqual(
    counted.answers('fresh'),
    [other],
    'what was there when all was read is not told again',
  )
})

/**
 * Returns a database that records its statements, and can drop the response of an executed
 * statement.
 */
function counting(inner: Database): {
  database: Database
  texts: string[]
  answers(name: string): unknown[]
  loseNext(start: string): void
} {
  const texts: string[] = []
  const rows: Record<string, unknown>[] = []
  let lost: string | null = null
  const note =
    <Answer>(ask: (text: string, values?: readonly unknown[]) => Promise<Answer>) =>
    async (text: string, values?: readonly unknown[]) => {
      texts.push(text)
      const answer = await ask(text, values)
      rows.push(...([answer].flat() as Record<string, unknown>[]))
      if (lost !== null && text.includes(lost)) {
        lost = null
        throw new Error('the connection was lost')
      }
      return answer
    }
  return {
    texts,
    answers: (name) => rows.flatMap((row) => (row?.[name] ? [row[name]] : [])),
    loseNext: (text) => {
      lost = text
    },
    database: { ...inner, query: note(inner.query) as never, one: note(inner.one) as never },
  }
}

test('a block that pays none of our addresses needs two SQL statements, without its addresses', async () => {
  const counted = counting(database.get())
  Object.assign(fixture.services, { database: counted.database })
  fixture.chain.mine()
  await fixture.scan()
  counted.texts.length = 0
  fixture.chain.mine(
    ...Array.from({ length: 20 }, () => payment(`0x${randomBytes(20).toString('hex')}`)),
  )
  await fixture.scan()
  assert.equal(counted.texts.length, 2, counted.texts.join('\n'))
  assert.ok(
    counted.texts.every((text) => !text.includes('any(')),
    counted.texts.join('\n'),
  )
})

test("after a write with a lost response, the scan continues from the database's state", async () => {
  const counted = counting(database.get())
  Object.assign(fixture.services, { database: counted.database })
  fixture.chain.mine()
  await fixture.scan()
  for (let count = 0; count < 60; count++) fixture.chain.mine(payment(`0x${randomUUID()}`))
  counted.loseNext('lease_token = $11')
  await assert.rejects(fixture.scan(), /the connection was lost/)
  const address = await register(database.get())
  fixture.chain.mine(payment(address))
  await fixture.scan()
  assert.deepEqual(await destinations(), new Set([address]))
})
