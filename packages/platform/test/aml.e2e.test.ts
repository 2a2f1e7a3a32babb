import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { balance, call, fundedWallet, terminal, TestPlatform, transferBody, waitFor, type Transfer, type User } from './harness.ts'

const platform = new TestPlatform()
let counter = 0
const freshAddress = () => `0x${(++counter).toString(16).padStart(40, 'e')}`
const TOKENS: Record<string, string> = { CHAINALYSIS: 'sandbox', ELLIPTIC: 'sandbox:c2FuZGJveA==', TRM: 'sandbox' }

const risk = (address: string, level: string) => platform.operator('devnet', { command: 'risk', address, level })
const save = (user: User, more: Record<string, unknown> = {}) => call<Record<string, unknown>>(user, 'POST', '/dac/v1/aml', { provider: 'CHAINALYSIS', aml_token: TOKENS[String(more['provider'] ?? 'CHAINALYSIS').toUpperCase()], aml_risk_levels: 'SEVERE, HIGH', aml_deposit: true, aml_withdrawal: true, ...more })
const unfreeze = (user: User, asset: string, address: string, more: Record<string, unknown> = {}) => call<{ code?: string; address_tag?: string | null }>(user, 'POST', '/dac/v1/unfreeze-address', { asset, address, ...more })
const frozen = async (user: User) => (await call<{ asset: string; address: string; address_tag: string | null; source: string; risk_level: string; held: string }[]>(user, 'GET', '/dac/v1/frozen-addresses')).body
const send = (user: User, asset: string, amount: string, to: string, more: Record<string, unknown> = {}) => call<Transfer>(user, 'POST', '/dac/v1/transaction', transferBody(asset, amount, to, more))
const read = async (user: User, id: string) => (await call<Transfer>(user, 'GET', `/dac/v1/transaction/${id}`)).body
const reached = (user: User, id: string, subStatus: string) => waitFor(`${id} ${subStatus}`, async () => {
  const now = await read(user, id)
  if (now.status !== 'pending') throw new Error(`${now.status} ${now.sub_status} instead of ${subStatus}`)
  return now.sub_status === subStatus ? now : null
})
const deposits = async (user: User, asset: string) => (await call<{ data: Transfer[] }>(user, 'GET', `/dac/v1/transactions?type=Deposit&asset=${asset}`)).body.data
const auditIsClean = async () => {
  const report = await platform.operator('audit') as { ok: boolean; differences: unknown[] }
  assert.ok(report.ok, JSON.stringify(report.differences))
}

before(() => platform.start())
after(() => platform.remove())

test('a flagged withdrawal is held, and goes on once when its address is unfrozen, however often that is asked', async () => {
  const user = await platform.user('aml-out')
  await fundedWallet(platform, user, 'ETH', '10')
  assert.equal((await call(user, 'GET', '/dac/v1/aml')).status, 404)
  assert.equal((await save(user)).status, 200)
  const to = freshAddress()
  await risk(to, 'SEVERE')
  const held = (await send(user, 'ETH', '1', to)).body
  await reached(user, held.id, 'AML_HELD')
  assert.equal((await read(user, held.id)).hash, null)
  assert.equal((await balance(user, 'ETH')).balance, '9')
  const [entry] = await frozen(user)
  assert.deepEqual([entry?.address.toLowerCase(), entry?.source, entry?.risk_level, entry?.held], [to, 'CHAINALYSIS', 'SEVERE', '1'])
  await auditIsClean()
  const answers = await Promise.all(Array.from({ length: 6 }, () => unfreeze(user, 'ETH', to)))
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400, 400, 400, 400, 400])
  assert.equal((await terminal(user, held.id)).status, 'confirmed')
  assert.deepEqual(await frozen(user), [])
  assert.equal((await unfreeze(user, 'ETH', to)).body.code, 'NOT_FROZEN')
  assert.equal((await unfreeze(user, 'NOPE', to)).status, 400)
  // Only that freeze event is over: the next transfer is screened anew.
  const again = (await send(user, 'ETH', '1', to)).body
  await reached(user, again.id, 'AML_HELD')
  assert.equal((await frozen(user)).length, 1)
})

test('a clean destination passes, and so does a level that is not listed', async () => {
  const user = await platform.user('aml-levels')
  await fundedWallet(platform, user, 'ETH', '10')
  for (const provider of ['CHAINALYSIS', 'ELLIPTIC', 'TRM']) {
    assert.equal((await save(user, { provider, aml_risk_levels: 'high,Severe' })).status, 200)
    const [clean, medium, high] = [freshAddress(), freshAddress(), freshAddress()]
    await risk(medium, 'MEDIUM')
    await risk(high, 'HIGH')
    const [a, b, c] = await Promise.all([clean, medium, high].map(async (to) => (await send(user, 'ETH', '0.1', to)).body.id))
    assert.equal((await terminal(user, a as string)).status, 'confirmed')
    assert.equal((await terminal(user, b as string)).status, 'confirmed')
    await reached(user, c as string, 'AML_HELD')
    assert.equal((await save(user, { provider, aml_risk_levels: 'MEDIUM' })).status, 200)
    await reached(user, (await send(user, 'ETH', '0.1', medium)).body.id, 'AML_HELD')
  }
})

test('a flagged deposit is on the chain and not to be spent, until it is unfrozen: ETH and a token', async () => {
  const user = await platform.user('aml-in')
  assert.equal((await save(user, { provider: 'elliptic' })).status, 200)
  for (const asset of ['ETH', 'USDT_ETH']) {
    const address = await fundedWallet(platform, user, asset, '5')
    const sender = String((await deposits(user, asset))[0]?.['source_id'])
    await risk(sender, 'SEVERE')
    await platform.fund(asset, address, '3')
    const held = await waitFor('held', async () => (await deposits(user, asset)).find((each) => each.sub_status === 'AML_HELD'))
    assert.equal(held.status, 'pending')
    assert.equal((await balance(user, asset)).balance, '5')
    assert.equal((await balance(user, asset)).omnibus_balance, '8')
    await auditIsClean()
    await risk(sender, 'none')
    // The list itself holds, without the provider.
    await platform.fund(asset, address, '1')
    await waitFor('both held', async () => (await deposits(user, asset)).filter((each) => each.sub_status === 'AML_HELD').length === 2)
    assert.equal((await unfreeze(user, 'BSC', sender)).status, 200)
    await waitFor('credited', async () => (await balance(user, asset)).balance === '9')
    assert.equal((await balance(user, asset)).omnibus_balance, '9')
    await auditIsClean()
  }
})
