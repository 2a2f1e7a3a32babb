import assert from 'node:assert/strict'
import {
  balance,
  call,
  fundedWallet,
  rpc,
  terminal,
  transferBody,
  type TestPlatform,
  type Transfer,
} from './harness.ts'
import { waitFor } from '../../../testing/wait-for.ts'

const ETH_TO = '0x00000000000000000000000000000000000000d1'
const USDT = '0x5FbDB2315678afecb367f032d93F642f64180aa3'
const WALLETS = 20

/**
 * Sends `each` token transfers concurrently from each of 20 wallets that share one gas tank. While
 * they run, the platform is killed and one fuel transaction is dropped.
 */
export async function sendConcurrently(platform: TestPlatform, each: number): Promise<void> {
  const users = await Promise.all(
    Array.from({ length: WALLETS }, (_, at) => platform.user('crowd', { subAccount: `sub-${at}` })),
  )
  await Promise.all(users.map((user) => fundedWallet(platform, user, 'USDT_ETH', String(each))))
  const bodies = users.flatMap((user, at) =>
    Array.from({ length: each }, (_, count) => ({
      user,
      body: transferBody('USDT_ETH', '1', ETH_TO, { sequence_id: `${at}-${count}` }),
    })),
  )
  const created = await Promise.all(
    bodies.map(({ user, body }) => call<Transfer>(user, 'POST', '/dac/v1/transaction', body)),
  )
  assert.deepEqual([...new Set(created.map(({ status }) => status))], [200])
  const [first] = users as [(typeof users)[number]]
  await waitFor(
    'some are through',
    async () =>
      (
        await call<{ total: string }>(
          first,
          'GET',
          '/dac/v1/transactions?status=confirmed&type=Withdraw',
        )
      ).body.total !== '0',
  )
  await platform.kill()
  await platform.start()
  for (const user of users) user.base = platform.base
  // Removes one fuel transaction from the node's mempool while the transfers behind it wait for
  // their own fuel transactions.
  const tanks = (
    await call<{ network: string; address: string }[]>(first, 'GET', '/dac/v1/gas-tanks')
  ).body
  const { address } = tanks.find(({ network }) => network === 'ETH') as { address: string }
  await waitFor('a fuel waits', async () => {
    const waiting = (
      await call<{ data: Transfer[] }>(
        first,
        'GET',
        '/dac/v1/transactions?type=Fuel&status=pending&limit=50',
      )
    ).body.data.find(({ hash }) => hash !== null)
    if (!waiting)
      return (await platform.database.one(
        `select 1 from transactions where kind = 'FUEL' and status = 'pending'`,
      ))
        ? null
        : 'all are through'
    return platform
      .operator('devnet', { command: 'drop', network: 'ETH', hash: waiting.hash })
      .then(
        () => 'dropped',
        () => null,
      )
  })
  for (const [at, { user }] of bodies.entries()) {
    const done = await terminal(user, (created[at] as { body: Transfer }).body.id)
    assert.equal(done.status, 'confirmed', String(done.failure_reason))
  }
  const tokens = await rpc<string>(platform, 'ETH', 'eth_call', [
    { to: USDT, data: `0x70a08231${ETH_TO.slice(2).padStart(64, '0')}` },
    'latest',
  ])
  assert.equal(BigInt(tokens), BigInt(WALLETS * each) * 1_000_000n)
  const nonce = async (account: string) => [
    Number(await rpc<string>(platform, 'ETH', 'eth_getTransactionCount', [account, 'latest'])),
    Number(await rpc<string>(platform, 'ETH', 'eth_getTransactionCount', [account, 'pending'])),
  ]
  const fuels = (
    await Promise.all(
      users.map(async (user) =>
        Number(
          (
            await call<{ total: string }>(
              user,
              'GET',
              '/dac/v1/transactions?type=Fuel&status=confirmed',
            )
          ).body.total,
        ),
      ),
    )
  ).reduce((sum, count) => sum + count, 0)
  assert.deepEqual(
    await nonce(address),
    [fuels, fuels],
    'the tank used each nonce once and none waits',
  )
  for (const user of users) {
    const omnibus = (
      await call<{ address: string }[]>(user, 'GET', '/dac/v1/addresses?asset=USDT_ETH')
    ).body[0]?.address as string
    assert.deepEqual(await nonce(omnibus), [each, each])
    assert.equal((await balance(user, 'USDT_ETH')).balance, '0')
  }
  const report = (await platform.operator('audit')) as {
    ok: boolean
    differences: unknown
    dust: unknown
  }
  assert.deepEqual([report.ok, report.dust], [true, []], JSON.stringify(report.differences))
}
