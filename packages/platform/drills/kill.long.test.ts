import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import {
  balance,
  call,
  fundedWallet,
  rpc,
  terminal,
  TestPlatform,
  transferBody,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import { waitFor } from '../../../testing/wait-for.ts'

/** Checkpoints after each commit of a transfer, at which the process is killed. */
const CHECKPOINTS = [
  'transaction.created',
  'transaction.queued',
  'transaction.fuel-reserved',
  'transaction.built',
  'transaction.shown',
  'transaction.signed',
  'transaction.broadcasting',
  'transaction.broadcast',
  'transaction.included',
  'transaction.settled',
  'scan.block',
  'deposit.credited',
]

const platform = new TestPlatform()
after(() => platform.remove())

const ETHER = 10n ** 18n
const BTC_TO = 'bcrt1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qzf4jry'
const ETH_TO = '0x00000000000000000000000000000000000000ee'

test('a process killed at each commit of a transfer loses nothing and pays once', async () => {
  await platform.start()
  const user: User = await platform.user('kills')
  await fundedWallet(platform, user, 'BTC', '5')
  const address = await fundedWallet(platform, user, 'ETH', '50')
  await fundedWallet(platform, user, 'USDT_ETH', '500')
  const start = { btc: (await balance(user, 'BTC')).balance }
  const sent: Record<string, string[]> = { BTC: [], ETH: [], USDT_ETH: [] }
  for (const checkpoint of CHECKPOINTS) {
    await platform.dieAt(checkpoint, async () => {
      for (const [asset, amount, to] of [
        ['ETH', '1', ETH_TO],
        ['BTC', '0.1', BTC_TO],
        ['USDT_ETH', '2', ETH_TO],
      ] as const) {
        const body = transferBody(asset, amount, to, { sequence_id: `${checkpoint}-${asset}` })
        // The response may be lost with the process. The retry after the restart returns the same
        // transfer.
        await call<Transfer>(user, 'POST', '/dac/v1/transaction', body).catch(() => null)
        sent[asset]?.push(body)
      }
      if (checkpoint === 'deposit.credited')
        await platform.fund('ETH', address, '1').catch(() => null)
    })
    user.base = platform.base
    for (const bodies of Object.values(sent)) {
      const answer = await waitFor('answer', async () => {
        const got = await call<Transfer>(
          user,
          'POST',
          '/dac/v1/transaction',
          bodies.at(-1) as string,
        )
        return got.status === 200 ? got : null
      })
      assert.equal(answer.status, 200)
    }
  }
  const count = CHECKPOINTS.length
  for (const bodies of Object.values(sent)) {
    for (const body of bodies) {
      const { body: transfer } = await call<Transfer>(user, 'POST', '/dac/v1/transaction', body)
      const done = await terminal(user, transfer.id)
      assert.equal(done.status, 'confirmed', `${body}: ${String(done.failure_reason)}`)
    }
  }
  assert.equal(
    BigInt(await rpc<string>(platform, 'ETH', 'eth_getBalance', [ETH_TO, 'latest'])),
    BigInt(count) * ETHER,
  )
  const tokens = await rpc<string>(platform, 'ETH', 'eth_call', [
    {
      to: '0x5FbDB2315678afecb367f032d93F642f64180aa3',
      data: `0x70a08231${ETH_TO.slice(2).padStart(64, '0')}`,
    },
    'latest',
  ])
  assert.equal(BigInt(tokens), BigInt(count) * 2_000_000n)
  const fees = (
    await call<{ data: Transfer[] }>(user, 'GET', '/dac/v1/transactions?asset=BTC&type=Withdraw')
  ).body.data.reduce((sum, each) => sum + Math.round(Number(each.fee) * 1e8), 0)
  assert.equal(
    Math.round(Number((await balance(user, 'BTC')).balance) * 1e8),
    Math.round(Number(start.btc) * 1e8) - count * 10_000_000 - fees,
  )
  const audit = await platform.cli('audit', '--json')
  assert.equal(audit.status, 0, audit.stdout + audit.stderr)
  assert.match(audit.stdout, /"dust":\s*\[\]/)
})
