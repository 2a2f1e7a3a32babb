import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { balance, call, fundedWallet, rpc, terminal, TestPlatform, transferBody, waitFor, type Transfer, type User } from './harness.ts'

const platform = new TestPlatform()
const ETH_TO = '0x00000000000000000000000000000000000000d1'
const USDT = '0x5FbDB2315678afecb367f032d93F642f64180aa3'
const WALLETS = 20
const EACH = 10

before(() => platform.start())
after(() => platform.remove())

interface Tank { network: string; address: string; balance: string; float: string; status: string; threshold: string; fee_cap: string | null; max_gas_price: string | null }
const tankOf = async (user: User, network: string) => (await call<Tank[]>(user, 'GET', '/dac/v1/gas-tanks')).body.find((each) => each.network === network) as Tank
const post = (user: User, body: string) => call<Transfer>(user, 'POST', '/dac/v1/transaction', body)
const audit = async () => {
  const report = await platform.operator('audit') as { ok: boolean; differences: unknown }
  assert.equal(report.ok, true, JSON.stringify(report.differences))
}

test('200 transfers at once from 20 wallets on one tank, killed in the middle, one fuel dropped: every nonce once, no gap, nothing stuck', { timeout: 600_000 }, async () => {
  const users: User[] = []
  // One after the other: two new sub-accounts at once may be given the same index by different nodes, and one is refused.
  for (let at = 0; at < WALLETS; at++) users.push(await platform.user('crowd', { subAccount: `sub-${at}` }))
  await Promise.all(users.map((user) => fundedWallet(platform, user, 'USDT_ETH', String(EACH))))
  const bodies = users.flatMap((user, at) => Array.from({ length: EACH }, (_, count) => ({ user, body: transferBody('USDT_ETH', '1', ETH_TO, { sequence_id: `${at}-${count}` }) })))
  const created = await Promise.all(bodies.map(({ user, body }) => post(user, body)))
  assert.deepEqual([...new Set(created.map(({ status }) => status))], [200])
  const [first] = users as [User]
  await waitFor('some are through', async () => (await call<{ total: string }>(first, 'GET', '/dac/v1/transactions?status=confirmed&type=Withdraw')).body.total !== '0')
  await platform.kill()
  await platform.start()
  for (const user of users) user.base = platform.base
  // One fuel leaves the node's memory while the transfers behind it wait for theirs.
  const { address } = await tankOf(first, 'ETH')
  await waitFor('a fuel waits', async () => {
    const waiting = (await call<{ data: Transfer[] }>(first, 'GET', '/dac/v1/transactions?type=Fuel&status=pending&limit=50')).body.data.find(({ hash }) => hash !== null)
    if (!waiting) return (await rpc<string>(platform, 'ETH', 'eth_getTransactionCount', [address, 'latest'])) === `0x${(WALLETS * EACH).toString(16)}` ? 'all are through' : null
    return platform.operator('devnet', { command: 'drop', network: 'ETH', hash: waiting.hash }).then(() => 'dropped', () => null)
  })
  for (const [at, { user }] of bodies.entries()) {
    const done = await terminal(user, (created[at] as { body: Transfer }).body.id, 300_000)
    assert.equal(done.status, 'confirmed', String(done.failure_reason))
  }
  const tokens = await rpc<string>(platform, 'ETH', 'eth_call', [{ to: USDT, data: `0x70a08231${ETH_TO.slice(2).padStart(64, '0')}` }, 'latest'])
  assert.equal(BigInt(tokens), BigInt(WALLETS * EACH) * 1_000_000n)
  const nonce = async (account: string) => [Number(await rpc<string>(platform, 'ETH', 'eth_getTransactionCount', [account, 'latest'])), Number(await rpc<string>(platform, 'ETH', 'eth_getTransactionCount', [account, 'pending']))]
  const fuels = (await Promise.all(users.map(async (user) => Number((await call<{ total: string }>(user, 'GET', '/dac/v1/transactions?type=Fuel&status=confirmed')).body.total)))).reduce((sum, each) => sum + each, 0)
  assert.deepEqual(await nonce(address), [fuels, fuels], 'the tank used each nonce once and none waits')
  for (const user of users) {
    const omnibus = (await call<{ address: string }[]>(user, 'GET', '/dac/v1/addresses?asset=USDT_ETH')).body[0]?.address as string
    assert.deepEqual(await nonce(omnibus), [EACH, EACH])
    assert.equal((await balance(user, 'USDT_ETH')).balance, '0')
  }
  await audit()
})

test('a tank that is low or empty is told once; transfers fail with what is missing and their money back; a top-up heals', async () => {
  const user = await platform.user('thin')
  await fundedWallet(platform, user, 'USDT_ARB', '100')
  const tank = await waitFor('the tank is filled', async () => {
    const found = await tankOf(user, 'ARB')
    return found.address && found.balance === '10' ? found : null
  })
  assert.equal((await platform.cli('gas-tank', 'drain', '--workspace', 'thin', '--network', 'ARB', '--to', ETH_TO, '--json')).status, 0)
  await waitFor('the tank is empty', async () => (await tankOf(user, 'ARB')).status === 'empty')
  const before = await balance(user, 'USDT_ARB')
  const failed = await terminal(user, (await post(user, transferBody('USDT_ARB', '5', ETH_TO))).body.id)
  assert.equal(failed.status, 'failed')
  assert.match(String(failed.failure_reason), new RegExp(`gas tank of ARB \\(${tank.address}\\) holds .* ARB; this transfer needs .*, so .* are missing`))
  assert.deepEqual(await balance(user, 'USDT_ARB'), before)
  await platform.fund('ARB', tank.address, '0.005')
  await waitFor('the tank is low', async () => (await tankOf(user, 'ARB')).status === 'low')
  assert.equal((await terminal(user, (await post(user, transferBody('USDT_ARB', '5', ETH_TO))).body.id)).status, 'confirmed')
  // Every movement is in the entries: they sum to what the tank holds and what it left at the address.
  const now = await waitFor('the books of the tank rest', async () => {
    const shown = await tankOf(user, 'ARB')
    return shown.status === 'low' ? shown : null
  })
  const { data, total } = (await call<{ data: Record<string, string>[]; total: string }>(user, 'GET', '/dac/v1/gas-tanks/ARB/entries?limit=500')).body
  assert.equal(Number(total), data.length)
  const sum = (name: string) => data.reduce((all, each) => all + BigInt(Math.round(Number(each[name]) * 1e18)), 0n)
  const near = (a: bigint, b: string) => assert.ok(Math.abs(Number(a) - Number(b) * 1e18) < 1e6, `${a} ${b}`)
  near(sum('balance_change'), now.balance)
  near(sum('float_change'), now.float)
  assert.equal(sum('reserved_change'), 0n)
  for (const type of ['deposit', 'fuel_reservation', 'fuel', 'use']) assert.ok(data.some((each) => each['type'] === type), type)
  assert.equal((await call(user, 'GET', '/dac/v1/gas-tanks/BTC/entries')).status, 404)
  await audit()
})

test('the operator limits what a tank pays: cap, gas price, threshold; mistakes are named', async () => {
  const user = await platform.user('limited')
  await fundedWallet(platform, user, 'USDT_POL', '100')
  const set = (...options: string[]) => platform.cli('gas-tank', 'set', '--workspace', 'limited', '--network', 'POL', ...options)
  for (const [options, message] of [[['--fee-cap', 'x'], /--fee-cap/], [[], /at least one/], [['--max-gas-price', '0'], /--max-gas-price/], [['--threshold', 'none'], /--threshold/]] as const) {
    const answer = await set(...options)
    assert.equal(answer.status, 1)
    assert.match(answer.stderr, message)
  }
  assert.equal((await set('--fee-cap', '0.000001', '--threshold', '20')).status, 0)
  assert.deepEqual([(await tankOf(user, 'POL')).fee_cap, (await tankOf(user, 'POL')).threshold], ['0.000001', '20'])
  const capped = await terminal(user, (await post(user, transferBody('USDT_POL', '5', ETH_TO))).body.id)
  assert.match(String(capped.failure_reason), /exceeds the gas tank's cap of 0.000001 POL/)
  assert.equal((await balance(user, 'USDT_POL')).balance, '100')
  // A price far below the chain's: it waits, and goes on once the limit is gone.
  assert.equal((await set('--fee-cap', 'none', '--max-gas-price', '0.000000001')).status, 0)
  const { id } = (await post(user, transferBody('USDT_POL', '5', ETH_TO))).body
  await platform.tried(id, 1)
  const waiting = (await call<Transfer & { sub_status: string }>(user, 'GET', `/dac/v1/transaction/${id}`)).body
  assert.deepEqual([waiting.status, waiting.sub_status], ['pending', 'QUEUED'])
  assert.equal((await set('--max-gas-price', 'none')).status, 0)
  assert.equal((await terminal(user, id)).status, 'confirmed')
})
