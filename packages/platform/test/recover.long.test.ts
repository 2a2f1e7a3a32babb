import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { copyFileSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { addressAt, loadRegistry, type Network } from '@custody/chains'
import { sweeperOf } from '@custody/chains/sweep'
import { freePorts } from '../../signer/test/homes.ts'
import { Public } from '../../signer/src/recover/funds.ts'
import { fundedWallet, TestPlatform, waitFor, call, type User } from './harness.ts'

/** Platform, database and one node are gone for good: two operators move every family's funds with two backups. */
const platform = new TestPlatform()
const aside = mkdtempSync(join(tmpdir(), 'custody-recover-'))
const RECOVER = fileURLToPath(new URL('../../signer/src/recover.ts', import.meta.url))
const registry = loadRegistry('local')
const place = (name: string): string => join(aside, name)

/** `to` holds nothing before; `most` is what the operators let one transaction cost. */
const NETWORKS: Record<string, { to: string; most: string; fund: Record<string, string> }> = {
  BTC: { to: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080', most: '0.001', fund: { BTC: '0.5' } },
  ETH: { to: '0x00000000000000000000000000000000000000AA', most: '0.05', fund: { ETH: '2', USDT_ETH: '120' } },
  TRX: { to: 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY', most: '100', fund: { TRX: '300', USDT_TRX: '70' } },
  XRP: { to: 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh', most: '0.1', fund: { XRP: '50' } },
  XLM: { to: 'GAIH3ULLFQ4DGSECF2AR555KZ4KNDGEKN4AFI4SU2M7B43MGK3QJZNSR', most: '0.1', fund: { XLM: '40' } },
  ADA: { to: 'addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz', most: '2', fund: { ADA: '90' } },
  SOL: { to: '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin', most: '0.02', fund: { SOL: '3', USDC_SOL: '25' } },
}
const CODES = Object.keys(NETWORKS)
let user: User
let devnet = ''
const running: ChildProcess[] = []

before(async () => {
  await platform.start()
  devnet = `http://127.0.0.1:${(JSON.parse(readFileSync(join(platform.home, 'ports.json'), 'utf8')) as { devnet: number }).devnet}`
  user = await platform.user('acme')
})
after(async () => {
  for (const child of running) child.kill('SIGTERM')
  if (existsSync(place('signers'))) renameSync(place('signers'), join(platform.home, 'signers'))
  await platform.remove()
  rmSync(aside, { recursive: true, force: true })
})

interface Said { status: number | null; stdout: string; stderr: string }
function recover(...words: string[]): Promise<Said> {
  const child = spawn(process.execPath, [RECOVER, ...words], { stdio: ['ignore', 'pipe', 'pipe'], cwd: aside })
  const said = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) child[name].setEncoding('utf8').on('data', (text: string) => (said[name] += text))
  return new Promise((resolve) => child.once('close', (status) => resolve({ status, ...said })))
}
async function done(...words: string[]): Promise<string> {
  const { status, stdout, stderr } = await recover(...words)
  assert.equal(status, 0, `${words.join(' ')}: ${stderr}`)
  return stdout
}
async function openNode(node: number, port: number, partner: string): Promise<void> {
  const child = spawn(process.execPath, [
    RECOVER, 'node', '--home', place(`node-${node}`), '--backup', place(`backup-${node}.json`), '--recovery-secret', place(`recovery-${node}`),
    '--listen', `127.0.0.1:${port}`, '--peer', partner,
  ], { stdio: ['ignore', 'pipe', 'pipe'] })
  running.push(child)
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (said += text))
  await waitFor(`node ${node}`, async () => {
    if (child.exitCode !== null) throw new Error(said)
    return /^recovery node \d ready, \d+ keys$/m.test(said)
  })
}

/** What the chain shows at addresses, by asset. */
async function held(network: Network, placeAt: (subAccount: number, index: number) => { path: number[]; address: string }, subAccounts: number[], gap: number): Promise<Record<string, bigint>> {
  const found = await sweeperOf(network).look({
    registry, network, endpoint: { url: `${devnet}/${network.code.toLowerCase()}` }, fetch, subAccounts, gap, fromHeight: 0,
    to: (NETWORKS[network.code] as { to: string }).to, placeAt, tell: () => undefined,
  }) as { coins?: { value: string }[]; accounts?: { balance?: string; balances?: Record<string, string> }[] }
  const sums: Record<string, bigint> = {}
  const add = (asset: string, amount: string): void => { sums[asset] = (sums[asset] ?? 0n) + BigInt(amount) }
  for (const { value } of found.coins ?? []) add(network.native_asset, value)
  for (const { balance, balances = {} } of found.accounts ?? []) {
    if (balance !== undefined) add(network.native_asset, balance)
    for (const [asset, amount] of Object.entries(balances)) add(asset, amount)
  }
  return sums
}
function ours(network: Network): Promise<Record<string, bigint>> {
  const known = new Public(place('backup-1.json'))
  const key = known.key('acme', network)
  return held(network, (subAccount, index) => {
    const path = [subAccount, network.chain_index, index]
    return { path, address: addressAt(network, key, path) }
  }, known.subAccounts('acme'), 4)
}
function theirs(network: Network): Promise<Record<string, bigint>> {
  const known = new Public(place('backup-1.json'))
  const elsewhere = (index: number): string => addressAt(network, known.key('acme', network), [4711, network.chain_index, index])
  const { to } = NETWORKS[network.code] as { to: string }
  return held(network, (_, index) => ({ path: [0, network.chain_index, index], address: index === 0 ? to : elsewhere(index) }), [0], 1)
}

const order = (node: number, code: string, to: string) => recover(
  'order', '--home', place(`node-${node}`), '--workspace', 'acme', '--network', code, '--to', to, '--max-fee', (NETWORKS[code] as { most: string }).most
)

test('two operators with two backups move every family’s funds, without platform, database and the third node', { timeout: 600_000 }, async (t) => {
  for (const code of CODES) {
    for (const [asset, amount] of Object.entries((NETWORKS[code] as { fund: Record<string, string> }).fund)) await fundedWallet(platform, user, asset, amount)
  }
  // Another address of some, and a token where nothing pays for it.
  for (const asset of ['BTC', 'ADA', 'ETH', 'USDT_TRX']) {
    const { address } = (await call<{ address: string }>(user, 'POST', '/dac/v1/address', { asset })).body
    await platform.fund(asset, address, asset === 'ADA' ? '12' : asset === 'BTC' ? '0.2' : '5')
  }
  for (const node of [1, 3]) {
    assert.equal((await platform.cli('signer', 'backup', '--node', String(node), '--out', place(`backup-${node}.json`))).status, 0)
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
  const [first, third] = await freePorts(2) as [number, number]
  await openNode(1, first, `3=127.0.0.1:${third}`)
  await openNode(3, third, `1=127.0.0.1:${first}`)
  note(`two nodes opened: ${Date.now() - began} ms`)
  const shown = JSON.parse(await done('show', '--backup', place('backup-3.json'))) as { workspaces: unknown[] }
  assert.deepEqual(shown.workspaces, [{ workspace: 'acme', sub_accounts: [0, 1] }])

  // By files, step by step, with what must be refused.
  const bitcoin = registry.network('BTC') as Network
  const before = await ours(bitcoin)
  const { to, most } = NETWORKS['BTC'] as { to: string; most: string }
  const url = `${devnet}/btc`
  await done('gather', '--backup', place('backup-3.json'), '--workspace', 'acme', '--network', 'BTC', '--endpoint', url, '--to', to, '--gap', '4', '--out', place('gathered'))
  await done('plan', '--backup', place('backup-1.json'), '--in', place('gathered'), '--out', place('planned'))
  const sign = (out: string, mostFee = most) => recover('sign', '--home', place('node-1'), '--partner', '3', '--in', place('planned'), '--max-fee', mostFee, '--out', place(out))
  assert.match((await sign('none')).stderr, /operator gave no such order \(ORDER_UNKNOWN/)
  assert.equal((await order(1, 'BTC', to)).status, 0)
  assert.match((await sign('none')).stderr, /operator gave no such order \(ORDER_UNKNOWN, node 3\)/)
  assert.equal((await order(3, 'BTC', 'bcrt1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qzf4jry')).status, 0)
  assert.match((await sign('none')).stderr, /operator ordered another destination or fee for this network \(ORDER_UNKNOWN, node 3\)/)
  assert.match((await order(3, 'BTC', 'bc1-nonsense')).stderr, /to_address: /)
  assert.equal((await order(3, 'BTC', to)).status, 0)
  assert.match((await sign('none', '0.002')).stderr, /another destination or fee/)
  assert.equal(existsSync(place('none')), false)
  const signed = await sign('signed')
  assert.equal(signed.status, 0, signed.stderr)
  await done('send', '--backup', place('backup-1.json'), '--in', place('signed'), '--endpoint', url)
  assert.deepEqual(await ours(bitcoin), {})
  const arrived = (await theirs(bitcoin))['BTC'] as bigint
  assert.ok(arrived < (before['BTC'] as bigint) && arrived > (before['BTC'] as bigint) - 100_000n, `${arrived} of ${before['BTC']}`)

  for (const code of CODES.filter((each) => each !== 'BTC')) {
    const network = registry.network(code) as Network
    const { to: address, most: fee } = NETWORKS[code] as { to: string; most: string }
    const [had, there] = [await ours(network), await theirs(network)]
    for (const node of [1, 3]) {
      const ordered = await order(node, code, address)
      assert.equal(ordered.status, 0, `${code}: ${ordered.stderr}`)
    }
    const from = Date.now()
    const told = JSON.parse(await done(
      'sweep', '--home', place('node-1'), '--partner', '3', '--backup', place('backup-1.json'), '--workspace', 'acme', '--network', code,
      '--endpoint', `${devnet}/${code.toLowerCase()}`, '--to', address, '--gap', '4', '--max-fee', fee,
    )) as { sent: string[]; left: { asset: string; amount: string; why: string }[] }
    note(`${code}: ${told.sent.length} transactions in ${Date.now() - from} ms; left ${JSON.stringify(told.left)}`)
    const [kept, now] = [await ours(network), await theirs(network)]
    for (const asset of Object.keys((NETWORKS[code] as { fund: object }).fund)) {
      const stated = told.left.filter((each) => each.asset === asset).reduce((sum, { amount }) => sum + BigInt(amount), 0n)
      const [held_, gone, came] = [had[asset] ?? 0n, kept[asset] ?? 0n, (now[asset] ?? 0n) - (there[asset] ?? 0n)]
      assert.ok(held_ > 0n && came > 0n, `${asset}: ${came} of ${held_}`)
      if (asset !== network.native_asset) assert.deepEqual([came, gone], [held_, 0n], asset)
      else assert.ok(gone <= stated + held_ / 100n, `${asset}: ${gone} is left, ${stated} was stated`)
      assert.ok(came + gone <= held_ && came + gone > (held_ * 80n) / 100n, `${asset}: ${came} came and ${gone} stayed of ${held_}`)
    }
  }
  note(`everything: ${Date.now() - began} ms`)
}
