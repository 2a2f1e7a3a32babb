import assert from 'node:assert/strict'
import { copyFileSync, existsSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { addressAt, type Network } from '@custody/chains'
import { freePorts } from '../../signer/testing/data-dirs.ts'
import { Public } from '../../signer/src/recover/funds.ts'
import { fundedWallet, TestPlatform, call, type User } from '../testing/harness.ts'
import { RecoveryDrill, registry } from '../testing/hosts/recovery-drill.ts'

/**
 * Tests of the recovery after platform, database and one node are permanently lost: two operators
 * move every family's funds with two backups.
 */
const platform = new TestPlatform()
const operators = new RecoveryDrill()
const place = (name: string): string => operators.place(name)
const recover = (...words: string[]) => operators.recover(...words)
const done = (...words: string[]) => operators.done(...words)

/**
 * `to` is an address without a balance; `most` is the maximum cost that the operators allow for one
 * transaction.
 */
const NETWORKS: Record<string, { to: string; most: string; fund: Record<string, string> }> = {
  BTC: { to: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080', most: '0.001', fund: { BTC: '0.5' } },
  ETH: {
    to: '0x00000000000000000000000000000000000000AA',
    most: '0.05',
    fund: { ETH: '2', USDT_ETH: '120' },
  },
  TRX: {
    to: 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY',
    most: '100',
    fund: { TRX: '300', USDT_TRX: '70' },
  },
  XRP: { to: 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh', most: '0.1', fund: { XRP: '50' } },
  XLM: {
    to: 'GAIH3ULLFQ4DGSECF2AR555KZ4KNDGEKN4AFI4SU2M7B43MGK3QJZNSR',
    most: '0.1',
    fund: { XLM: '40' },
  },
  ADA: {
    to: 'addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz',
    most: '2',
    fund: { ADA: '90' },
  },
  SOL: {
    to: '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin',
    most: '0.02',
    fund: { SOL: '3', USDC_SOL: '25' },
  },
}
const CODES = Object.keys(NETWORKS)
let user: User
let devnet = ''

before(async () => {
  await platform.start()
  devnet = `http://127.0.0.1:${(JSON.parse(readFileSync(join(platform.home, 'ports.json'), 'utf8')) as { devnet: number }).devnet}`
  user = await platform.user('acme')
})
after(async () => {
  await operators.stop()
  if (existsSync(place('signers'))) renameSync(place('signers'), join(platform.home, 'signers'))
  await platform.remove()
  await operators.remove()
})

function ours(network: Network): Promise<Record<string, bigint>> {
  return operators.ofWorkspace(
    devnet,
    'acme',
    network,
    (NETWORKS[network.code] as { to: string }).to,
  )
}
function theirs(network: Network): Promise<Record<string, bigint>> {
  const publicKeys = new Public(place('backup-1.json'))
  const elsewhere = (index: number): string =>
    addressAt(network, publicKeys.key('acme', network), [4711, network.chain_index, index])
  const { to } = NETWORKS[network.code] as { to: string }
  return operators.held(
    devnet,
    network,
    to,
    (_, index) => ({
      path: [0, network.chain_index, index],
      address: index === 0 ? to : elsewhere(index),
    }),
    [0],
    1,
  )
}

const order = (node: number, code: string, to: string) =>
  recover(
    'order',
    '--home',
    place(`node-${node}`),
    '--workspace',
    'acme',
    '--network',
    code,
    '--to',
    to,
    '--max-fee',
    (NETWORKS[code] as { most: string }).most,
  )

test('two operators with two backups recover all funds without the platform and the third node', async (t) => {
  for (const code of CODES) {
    for (const [asset, amount] of Object.entries(
      (NETWORKS[code] as { fund: Record<string, string> }).fund,
    ))
      await fundedWallet(platform, user, asset, amount)
  }
  // Funds second addresses of some wallets, and a token at an address without coins for the fee.
  for (const asset of ['BTC', 'ADA', 'ETH', 'USDT_TRX']) {
    const { address } = (
      await call<{ address: string }>(user, 'POST', '/dac/v1/address', { asset })
    ).body
    await platform.fund(asset, address, asset === 'ADA' ? '12' : asset === 'BTC' ? '0.2' : '5')
  }
  for (const node of [1, 3]) {
    assert.equal(
      (
        await platform.cli(
          'signer',
          'backup',
          '--node',
          String(node),
          '--out',
          place(`backup-${node}.json`),
        )
      ).status,
      0,
    )
    copyFileSync(join(platform.home, 'signers', `recovery-${node}`), place(`recovery-${node}`))
  }
  await platform.atRest()
  assert.equal(await platform.stop(), 0)
  await platform.nodesDown([1, 2, 3], async () => {
    renameSync(join(platform.home, 'signers'), place('signers'))
    await drill(t.diagnostic.bind(t))
    renameSync(place('signers'), join(platform.home, 'signers'))
  })
})

async function drill(note: (line: string) => void): Promise<void> {
  const began = Date.now()
  const [first, third] = (await freePorts(2)) as [number, number]
  await operators.openNode(1, first, `3=127.0.0.1:${third}`)
  await operators.openNode(3, third, `1=127.0.0.1:${first}`)
  note(`two nodes opened: ${Date.now() - began} ms`)
  const shown = JSON.parse(await done('show', '--backup', place('backup-3.json'))) as {
    workspaces: unknown[]
  }
  assert.deepEqual(shown.workspaces, [{ workspace: 'acme', sub_accounts: [0, 1] }])

  // The transfer by files is made step by step, including the requests that must be refused.
  const bitcoin = registry.network('BTC') as Network
  const before = await ours(bitcoin)
  const { to, most } = NETWORKS['BTC'] as { to: string; most: string }
  const url = `${devnet}/btc`
  await done(
    'gather',
    '--backup',
    place('backup-3.json'),
    '--workspace',
    'acme',
    '--network',
    'BTC',
    '--endpoint',
    url,
    '--to',
    to,
    '--gap',
    '4',
    '--out',
    place('gathered'),
  )
  await done(
    'plan',
    '--backup',
    place('backup-1.json'),
    '--in',
    place('gathered'),
    '--out',
    place('planned'),
  )
  const sign = (out: string, mostFee = most) =>
    recover(
      'sign',
      '--home',
      place('node-1'),
      '--partner',
      '3',
      '--in',
      place('planned'),
      '--max-fee',
      mostFee,
      '--out',
      place(out),
    )
  assert.match(
    (await sign('none')).stderr,
    /node has no such order from its operator \(ORDER_UNKNOWN/,
  )
  assert.equal((await order(1, 'BTC', to)).status, 0)
  assert.match(
    (await sign('none')).stderr,
    /node has no such order from its operator \(ORDER_UNKNOWN, node 3\)/,
  )
  assert.equal(
    (await order(3, 'BTC', 'bcrt1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qzf4jry'))
      .status,
    0,
  )
  assert.match(
    (await sign('none')).stderr,
    /operator ordered another destination or fee for this network \(ORDER_UNKNOWN, node 3\)/,
  )
  assert.match((await order(3, 'BTC', 'bc1-nonsense')).stderr, /to_address: /)
  assert.equal((await order(3, 'BTC', to)).status, 0)
  assert.match((await sign('none', '0.002')).stderr, /another destination or fee/)
  assert.equal(existsSync(place('none')), false)
  const signed = await sign('signed')
  assert.equal(signed.status, 0, signed.stderr)
  await done('send', '--backup', place('backup-1.json'), '--in', place('signed'), '--endpoint', url)
  assert.deepEqual(await ours(bitcoin), {})
  const arrived = (await theirs(bitcoin))['BTC'] as bigint
  assert.ok(
    arrived < (before['BTC'] as bigint) && arrived > (before['BTC'] as bigint) - 100_000n,
    `${arrived} of ${before['BTC']}`,
  )

  for (const code of CODES.filter((each) => each !== 'BTC')) {
    const network = registry.network(code) as Network
    const { to: address, most: fee } = NETWORKS[code] as { to: string; most: string }
    const [had, there] = [await ours(network), await theirs(network)]
    for (const node of [1, 3]) {
      const ordered = await order(node, code, address)
      assert.equal(ordered.status, 0, `${code}: ${ordered.stderr}`)
    }
    const from = Date.now()
    const report = JSON.parse(
      await done(
        'sweep',
        '--home',
        place('node-1'),
        '--partner',
        '3',
        '--backup',
        place('backup-1.json'),
        '--workspace',
        'acme',
        '--network',
        code,
        '--endpoint',
        `${devnet}/${code.toLowerCase()}`,
        '--to',
        address,
        '--gap',
        '4',
        '--max-fee',
        fee,
      ),
    ) as { sent: string[]; left: { asset: string; amount: string; why: string }[] }
    note(
      `${code}: ${report.sent.length} transactions in ${Date.now() - from} ms; left ${JSON.stringify(report.left)}`,
    )
    const [balances, now] = [await ours(network), await theirs(network)]
    for (const asset of Object.keys((NETWORKS[code] as { fund: object }).fund)) {
      const stated = report.left
        .filter((each) => each.asset === asset)
        .reduce((sum, { amount }) => sum + BigInt(amount), 0n)
      const [held_, gone, came] = [
        had[asset] ?? 0n,
        balances[asset] ?? 0n,
        (now[asset] ?? 0n) - (there[asset] ?? 0n),
      ]
      assert.ok(held_ > 0n && came > 0n, `${asset}: ${came} of ${held_}`)
      if (asset !== network.native_asset) assert.deepEqual([came, gone], [held_, 0n], asset)
      else
        assert.ok(gone <= stated + held_ / 100n, `${asset}: ${gone} is left, ${stated} was stated`)
      assert.ok(
        came + gone <= held_ && came + gone > (held_ * 80n) / 100n,
        `${asset}: ${came} came and ${gone} stayed of ${held_}`,
      )
    }
  }
  note(`everything: ${Date.now() - began} ms`)
}
