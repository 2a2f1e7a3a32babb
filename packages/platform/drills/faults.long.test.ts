import assert from 'node:assert/strict'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import {
  assertConfirmed,
  balance,
  call,
  fundedWallet,
  rpc,
  sleep,
  terminal,
  TestPlatform,
  transferBody,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import { Browser } from '../testing/console-fixture.ts'
import { waitFor } from '../../../testing/wait-for.ts'

const platform = new TestPlatform({ mode: 'prepared' })
let user: User

const BTC_TO = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
let counter = 0
/**
 * Returns a new destination for each test, so that the test can query the chain for the amount
 * received.
 */
const freshAddress = () => `0x${(++counter).toString(16).padStart(40, 'c')}`
const received = async (address: string) =>
  BigInt(await rpc<string>(platform, 'ETH', 'eth_getBalance', [address, 'latest']))
const fault = (network: string, mode: string) =>
  platform.operator('devnet', { command: 'fault', network, mode })
const post = (body: string) => call<Transfer>(user, 'POST', '/dac/v1/transaction', body)
const ETHER = 10n ** 18n

before(async () => {
  await platform.start()
  user = await platform.user('faults')
  await fundedWallet(platform, user, 'BTC', '5')
  await fundedWallet(platform, user, 'ETH', '50')
})
after(() => platform.remove())

test("a start without an owner writes the first owner's link to a file, and never logs it", async () => {
  const [, file] = await waitFor('the line', async () =>
    /^console: the first owner can join with the link in (\S+) until \S+$/m.exec(platform.printed),
  )
  assert.equal(file, join(platform.home, 'first-owner-link'))
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const link = /^http:\/\/localhost:(\d+)\/console\/join#([\w-]{43})\n$/.exec(
    readFileSync(file, 'utf8'),
  ) as RegExpExecArray
  assert.equal(link[1], new URL(platform.base).port)
  const answer = await new Browser(platform).ask<{ is_first: boolean }>(
    'POST',
    '/join/invitation',
    {
      invitation: link[2],
    },
  )
  assert.equal(answer.body.is_first, true, answer.text)
  assert.ok(
    !platform.printed.includes(link[2] as string) && !platform.output.includes(link[2] as string),
  )
})

for (const mode of ['drop-answer', 'reject', 'down', 'lag']) {
  test(`during the RPC fault ${mode}, transfers wait, and no transfer is paid twice`, async () => {
    const to = freshAddress()
    const before = (await balance(user, 'BTC')).balance
    await Promise.all(['ETH', 'BTC'].map((network) => fault(network, mode)))
    const [eth, btc] = await Promise.all([
      post(transferBody('ETH', '1', to)),
      post(transferBody('BTC', '0.01', BTC_TO)),
    ])
    assert.equal(eth.status, 200, eth.text)
    assert.equal(btc.status, 200, btc.text)
    await Promise.all([eth, btc].map(({ body }) => platform.tried(body.id, mode === 'lag' ? 1 : 2)))
    await Promise.all(['ETH', 'BTC'].map((network) => fault(network, 'heal')))
    await assertConfirmed(user, eth.body.id)
    const done = await terminal(user, btc.body.id)
    assert.equal(done.status, 'confirmed')
    assert.equal(await received(to), ETHER)
    const satoshi = (text: string) => BigInt(Math.round(Number(text) * 1e8))
    assert.equal(
      satoshi((await balance(user, 'BTC')).balance),
      satoshi(before) - 1_000_000n - satoshi(done.fee),
    )
  })
}

test('signing continues with two nodes after one node was killed or hangs', async () => {
  const to = freshAddress()
  process.kill(platform.childPid('signer/src/main.ts.*HOME/signers/node-1'), 'SIGKILL')
  const first = await terminal(user, (await post(transferBody('ETH', '1', to))).body.id)
  assert.equal(first.status, 'confirmed')
  const hanging = platform.childPid('signer/src/main.ts.*HOME/signers/node-2')
  process.kill(hanging, 'SIGSTOP')
  try {
    const second = await terminal(user, (await post(transferBody('ETH', '1', to))).body.id)
    assert.equal(second.status, 'confirmed')
  } finally {
    process.kill(hanging, 'SIGCONT')
  }
  assert.equal(await received(to), 2n * ETHER)
})

test('with two signer nodes down, transfers stay pending, and continue when one is back', async () => {
  const to = freshAddress()
  const stopped = [2, 3].map((node) =>
    platform.childPid(`signer/src/main.ts.*HOME/signers/node-${node}`),
  )
  for (const pid of stopped) process.kill(pid, 'SIGSTOP')
  const created = await post(transferBody('ETH', '1', to))
  assert.equal(created.status, 200, created.text)
  await platform.tried(created.body.id, 1)
  assert.equal(
    (await call<Transfer>(user, 'GET', `/dac/v1/transaction/${created.body.id}`)).body.status,
    'pending',
  )
  process.kill(stopped[0] as number, 'SIGCONT')
  try {
    await assertConfirmed(user, created.body.id)
  } finally {
    process.kill(stopped[1] as number, 'SIGCONT')
  }
  assert.equal(await received(to), ETHER)
})

test('pays accepted transfers once if the platform, nodes and chains are killed concurrently', async () => {
  const to = freshAddress()
  const created = await Promise.all(
    Array.from({ length: 10 }, (_, at) =>
      post(transferBody('ETH', '0.5', to, { sequence_id: `kill-${at}` })),
    ),
  )
  assert.deepEqual([...new Set(created.map(({ status }) => status))], [200])
  await waitFor('one is on its way', async () => (await received(to)) > 0n)
  await platform.kill()
  await platform.start()
  user.base = platform.base
  for (const { body } of created) await assertConfirmed(user, body.id)
  assert.equal(await received(to), 5n * ETHER)
})

test('confirms accepted transfers once when PostgreSQL restarts under load', async () => {
  const to = freshAddress()
  const accepted: string[] = []
  let unclear = 0
  const load = Promise.all(
    Array.from({ length: 12 }, async (_, at) => {
      await sleep(at * 120)
      for (let attempt = 0; attempt < 40; attempt++) {
        // Sends the same sequence_id until there is a response, as a careful client does.
        const answer = await post(
          transferBody('ETH', '0.5', to, { sequence_id: `pg-${at}` }),
        ).catch(() => null)
        if (answer?.status === 200) return accepted.push(answer.body.id)
        unclear++
        assert.ok(answer === null || answer.status >= 500, answer?.text)
        await sleep(300)
      }
      throw new Error('never accepted')
    }),
  )
  await sleep(500)
  process.kill(platform.childPid('bin/postgres -D HOME'), 'SIGKILL')
  await load
  assert.equal(accepted.length, 12)
  const done = await Promise.all(
    accepted.map((id) =>
      waitFor(id, async () => {
        const answer = await call<Transfer>(user, 'GET', `/dac/v1/transaction/${id}`).catch(
          () => null,
        )
        return answer?.status === 200 && answer.body.status !== 'pending' ? answer.body : null
      }),
    ),
  )
  assert.deepEqual([...new Set(done.map((each) => each.status))], ['confirmed'])
  assert.equal(await received(to), 6n * ETHER)
  assert.ok(unclear >= 0)
})

test('reverses a deposit that a reorganisation removes, and credits it when it is mined again', async () => {
  const reorgs = await platform.user('reorgs')
  await call(reorgs, 'POST', '/dac/v1/create-wallet', { asset: 'BTC' })
  const { address } = (
    await call<{ address: string }>(reorgs, 'POST', '/dac/v1/address', { asset: 'BTC' })
  ).body
  await platform.halted('BTC', async () => {
    await platform.fund('BTC', address, '3')
    await waitFor(
      'detected',
      async () =>
        (await call<{ total: string }>(reorgs, 'GET', '/dac/v1/transactions')).body.total === '1',
    )
    await platform.operator('devnet', { command: 'reorg', network: 'BTC', depth: 2 })
  })
  // The deposit's transaction returns to the mempool and is mined again.
  await waitFor('credited', async () => (await balance(reorgs, 'BTC')).balance === '3')
  await platform.operator('devnet', { command: 'reorg', network: 'BTC', depth: 20, drop: true })
  await platform.acceptReorg('BTC')
  await waitFor('taken back', async () => (await balance(reorgs, 'BTC')).balance === '0')
  const list = await call<{ data: Transfer[] }>(reorgs, 'GET', '/dac/v1/transactions')
  assert.equal(list.body.data[0]?.status, 'failed')
  assert.equal(list.body.data[0]?.sub_status, 'REORGED')
})

test('confirms a transfer once although a reorganisation removed its block', async () => {
  const to = freshAddress()
  const { id } = await platform.halted('ETH', async () => {
    const { body } = await post(transferBody('ETH', '1', to))
    const confirmations = async () =>
      Number(
        (await call<Transfer>(user, 'GET', `/dac/v1/transaction/${body.id}`)).body['confirmations'],
      )
    await platform.mineUntil('ETH', 'included', async () => (await confirmations()) >= 1)
    await platform.operator('devnet', { command: 'reorg', network: 'ETH', depth: 2 })
    return body
  })
  await assertConfirmed(user, id)
  assert.equal(await received(to), ETHER)
})

// A platform that has not stopped 9.5 s after SIGTERM exits with code 1 (src/run.ts), so exit code
// 0 proves that it stopped in time.
test('SIGTERM completes running requests and exits 0 in time, and the next start continues', async () => {
  const to = freshAddress()
  const { body } = await post(transferBody('ETH', '1', to))
  assert.equal(await platform.stop(), 0)
  await platform.start()
  user.base = platform.base
  await assertConfirmed(user, body.id)
  assert.equal(await received(to), ETHER)
})

test('after all faults, the ledger agrees with the chains', async () => {
  const audit = await platform.cli('audit', '--json')
  assert.equal(audit.status, 0, audit.stdout + audit.stderr)
  assert.match(audit.stdout, /"dust":\s*\[\]/)
})
