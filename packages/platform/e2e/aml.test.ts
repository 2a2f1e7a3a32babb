import assert from 'node:assert/strict'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, mock, test } from 'node:test'
import { loadRegistry, utxo, type Network } from '@custody/chains'
import {
  assertConfirmed,
  balance,
  call,
  fundedWallet,
  TestPlatform,
  transferBody,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import { waitFor } from '../../../testing/wait-for.ts'

const platform = new TestPlatform()
/** Captures the errors that the local chains and the emulated screening services log. */
const said = mock.method(console, 'error', () => undefined)
/**
 * Creates a user of a new sub-account, which has its own screening settings. The workspace's key is
 * generated only once.
 */
const newUser = (subAccount: string, options: { role?: 'read-only' } = {}) =>
  platform.user('aml', { subAccount, ...options })
let counter = 0
const freshAddress = () => `0x${(++counter).toString(16).padStart(40, 'e')}`
const TOKENS: Record<string, string> = {
  CHAINALYSIS: 'sandbox',
  ELLIPTIC: 'sandbox:c2FuZGJveA==',
  TRM: 'sandbox',
}

const risk = (address: string, level: string) =>
  platform.operator('devnet', { command: 'risk', address, level })
const fault = (provider: string, mode: string) =>
  platform.operator('devnet', { command: 'fault', network: provider, mode })
const save = (user: User, more: Record<string, unknown> = {}) =>
  call<Record<string, unknown>>(user, 'POST', '/dac/v1/aml', {
    provider: 'CHAINALYSIS',
    aml_token: TOKENS[String(more['provider'] ?? 'CHAINALYSIS').toUpperCase()],
    aml_risk_levels: 'SEVERE, HIGH',
    aml_deposit: true,
    aml_withdrawal: true,
    ...more,
  })
const unfreeze = (user: User, asset: string, address: string, more: Record<string, unknown> = {}) =>
  call<{ code?: string; address_tag?: string | null }>(user, 'POST', '/dac/v1/unfreeze-address', {
    asset,
    address,
    ...more,
  })
const frozen = async (user: User) =>
  (
    await call<
      {
        asset: string
        address: string
        address_tag: string | null
        source: string
        risk_level: string
        held: string
      }[]
    >(user, 'GET', '/dac/v1/frozen-addresses')
  ).body
const send = (
  user: User,
  asset: string,
  amount: string,
  to: string,
  more: Record<string, unknown> = {},
) => call<Transfer>(user, 'POST', '/dac/v1/transaction', transferBody(asset, amount, to, more))
const read = async (user: User, id: string) =>
  (await call<Transfer>(user, 'GET', `/dac/v1/transaction/${id}`)).body
const reached = (user: User, id: string, subStatus: string) =>
  waitFor(`${id} ${subStatus}`, async () => {
    const now = await read(user, id)
    if (now.status !== 'pending')
      throw new Error(`${now.status} ${now.sub_status} instead of ${subStatus}`)
    return now.sub_status === subStatus ? now : null
  })
const deposits = async (user: User, asset: string) =>
  (
    await call<{ data: Transfer[] }>(
      user,
      'GET',
      `/dac/v1/transactions?type=Deposit&asset=${asset}`,
    )
  ).body.data
const auditIsClean = async () => {
  const report = (await platform.operator('audit')) as { ok: boolean; differences: unknown[] }
  assert.ok(report.ok, JSON.stringify(report.differences))
}

before(() => platform.start())
after(() => platform.remove())

test('a flagged withdrawal is held, and is paid once when its address is unfrozen', async () => {
  const user = await newUser('out')
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
  assert.deepEqual(
    [entry?.address.toLowerCase(), entry?.source, entry?.risk_level, entry?.held],
    [to, 'CHAINALYSIS', 'SEVERE', '1'],
  )
  await auditIsClean()
  const answers = await Promise.all(Array.from({ length: 6 }, () => unfreeze(user, 'ETH', to)))
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400, 400, 400, 400, 400])
  await assertConfirmed(user, held.id)
  assert.deepEqual(await frozen(user), [])
  assert.equal((await unfreeze(user, 'ETH', to)).body.code, 'NOT_FROZEN')
  assert.equal((await unfreeze(user, 'NOPE', to)).status, 400)
  // Only that one freeze has ended: the next transfer is screened again.
  const again = (await send(user, 'ETH', '1', to)).body
  await reached(user, again.id, 'AML_HELD')
  assert.equal((await frozen(user)).length, 1)
})

test('pays to addresses without risk, and to addresses whose risk level is not configured', async () => {
  const user = await newUser('levels')
  await fundedWallet(platform, user, 'ETH', '10')
  for (const provider of ['CHAINALYSIS', 'ELLIPTIC', 'TRM']) {
    assert.equal((await save(user, { provider, aml_risk_levels: 'high,Severe' })).status, 200)
    const [clean, medium, high] = [freshAddress(), freshAddress(), freshAddress()]
    await risk(medium, 'MEDIUM')
    await risk(high, 'HIGH')
    const [a, b, c] = await Promise.all(
      [clean, medium, high].map(async (to) => (await send(user, 'ETH', '0.1', to)).body.id),
    )
    await assertConfirmed(user, a as string)
    await assertConfirmed(user, b as string)
    await reached(user, c as string, 'AML_HELD')
    assert.equal((await save(user, { provider, aml_risk_levels: 'MEDIUM' })).status, 200)
    await reached(user, (await send(user, 'ETH', '0.1', medium)).body.id, 'AML_HELD')
  }
})

test('a flagged ETH or token deposit is listed, but not spendable until it is unfrozen', async () => {
  const user = await newUser('in')
  assert.equal((await save(user, { provider: 'elliptic' })).status, 200)
  for (const asset of ['ETH', 'USDT_ETH']) {
    const address = await fundedWallet(platform, user, asset, '5')
    const sender = String((await deposits(user, asset))[0]?.['source_id'])
    await risk(sender, 'SEVERE')
    await platform.fund(asset, address, '3')
    const held = await waitFor('held', async () =>
      (await deposits(user, asset)).find((each) => each.sub_status === 'AML_HELD'),
    )
    assert.equal(held.status, 'pending')
    assert.equal((await balance(user, asset)).balance, '5')
    assert.equal((await balance(user, asset)).omnibus_balance, '8')
    await auditIsClean()
    await risk(sender, 'none')
    // The sanctions list alone causes the hold, without the provider.
    await platform.fund(asset, address, '1')
    await waitFor(
      'both held',
      async () =>
        (await deposits(user, asset)).filter((each) => each.sub_status === 'AML_HELD').length === 2,
    )
    assert.equal((await unfreeze(user, 'BSC', sender)).status, 200)
    await waitFor('credited', async () => (await balance(user, asset)).balance === '9')
    assert.equal((await balance(user, asset)).omnibus_balance, '9')
    await auditIsClean()
  }
})

test('BTC: screens every input of a deposit, not only the first', async () => {
  const [sender, user] = [await platform.user('aml-btc-sender'), await newUser('btc')]
  const first = await fundedWallet(platform, sender, 'BTC', '1')
  const second = (
    await call<{ address: string }>(sender, 'POST', '/dac/v1/address', { asset: 'BTC' })
  ).body.address
  await platform.fund('BTC', second, '1')
  await waitFor('two coins', async () => (await balance(sender, 'BTC')).balance === '2')
  assert.equal((await save(user, { provider: 'TRM' })).status, 200)
  assert.equal((await call(user, 'POST', '/dac/v1/create-wallet', { asset: 'BTC' })).status, 200)
  const { address } = (
    await call<{ address: string }>(user, 'POST', '/dac/v1/address', { asset: 'BTC' })
  ).body
  for (const flagged of [first, second]) {
    await risk(first, 'none')
    await risk(flagged, 'HIGH')
    const sent = await send(sender, 'BTC', flagged === first ? '1.5' : '0.2', address)
    assert.equal(sent.status, 200, sent.text)
    // The second transfer spends the change of the first one. The change address belongs to the
    // sender and is clean.
    if (flagged === second) {
      await waitFor('credited', async () => (await balance(user, 'BTC')).balance === '0.2')
      break
    }
    await waitFor('held', async () =>
      (await deposits(user, 'BTC')).find((each) => each.sub_status === 'AML_HELD'),
    )
    assert.deepEqual(
      [(await balance(user, 'BTC')).balance, (await balance(user, 'BTC')).omnibus_balance],
      ['0', '1.5'],
    )
    await auditIsClean()
    assert.equal((await frozen(user))[0]?.address, first)
    const refused = await send(user, 'BTC', '0.5', first)
    assert.equal(refused.status, 400, 'a held coin cannot be spent')
  }
  assert.equal((await unfreeze(user, 'BTC', first)).status, 200)
  await waitFor('all credited', async () => (await balance(user, 'BTC')).balance === '1.7')
  await auditIsClean()
})

test('XRP: flagged deposits are held and released, and a tagged address is unfrozen by its tag', async () => {
  const user = await newUser('xrp')
  const address = await fundedWallet(platform, user, 'XRP', '100')
  assert.equal((await save(user)).status, 200)
  const tagged = (
    await call<{ address: string; address_tag: string }>(user, 'POST', '/dac/v1/address', {
      asset: 'XRP',
    })
  ).body
  assert.equal(tagged.address, address)
  const faucet = String((await deposits(user, 'XRP'))[0]?.['source_id'])
  await risk(faucet, 'SEVERE')
  await platform.operator('devnet', {
    command: 'fund',
    asset: 'XRP',
    address,
    amount: '7',
    tag: tagged.address_tag,
  })
  await waitFor('held', async () =>
    (await deposits(user, 'XRP')).find(
      (each) => each.sub_status === 'AML_HELD' && each['address_tag'] === tagged.address_tag,
    ),
  )
  await auditIsClean()
  const out = (await send(user, 'XRP', '5', faucet, { address_tag: '77' })).body
  await reached(user, out.id, 'AML_HELD')
  assert.equal((await frozen(user))[0]?.held, '2', 'one freeze holds both')
  await risk(faucet, 'none')
  assert.equal((await unfreeze(user, 'XRP', faucet)).status, 200)
  await assertConfirmed(user, out.id)
  await waitFor('credited', async () =>
    (await deposits(user, 'XRP')).every((each) => each.sub_status === 'CREDITED'),
  )
  await risk(faucet, 'SEVERE')
  const again = (await send(user, 'XRP', '5', faucet, { address_tag: '78' })).body
  await reached(user, again.id, 'AML_HELD')
  assert.equal((await unfreeze(user, 'XRP', faucet)).status, 400, 'its tag is needed')
  assert.equal((await unfreeze(user, 'XRP', faucet, { address_tag: '78' })).body.address_tag, '78')
  await assertConfirmed(user, again.id)
  await risk(faucet, 'none')
  await auditIsClean()
})

/**
 * Faults of each provider. Together they are all faults; aml-providers.test.ts tests each of them
 * for each provider.
 */
const FAULTS: Record<string, readonly string[]> = {
  CHAINALYSIS: ['down', 'drop-answer', 'reject', 'revoked'],
  ELLIPTIC: ['down', 'malformed', 'rate-limited'],
  TRM: ['down', 'empty', 'unknown', 'lag'],
}
test('holds transfers while the provider gives no clear result, and continues them afterwards', async () => {
  await Promise.all(
    Object.entries(FAULTS).map(async ([provider, modes]) => {
      const user = await newUser(`fault-${provider}`)
      const address = await fundedWallet(platform, user, 'ETH', '10')
      assert.equal((await save(user, { provider })).status, 200)
      for (const mode of modes) {
        await fault(provider, mode)
        if (mode !== 'lag') {
          const saved = await save(user, { provider })
          assert.equal(
            saved.status,
            mode === 'revoked' ? 400 : 503,
            `${provider} ${mode}: ${saved.text}`,
          )
        }
        const { id } = (await send(user, 'ETH', '0.1', freshAddress())).body
        await reached(user, id, 'SCREENING')
        await platform.tried(id, mode === 'lag' ? 1 : 2)
        assert.deepEqual(
          [(await read(user, id)).sub_status, (await read(user, id)).hash],
          ['SCREENING', null],
          `${provider} ${mode}`,
        )
        if (mode === 'down') {
          const before = (await balance(user, 'ETH')).balance
          await platform.fund('ETH', address, '1')
          const held = await waitFor('held deposit', async () =>
            (await deposits(user, 'ETH')).find((each) => each.sub_status === 'SCREENING'),
          )
          await platform.tried(held.id)
          assert.equal((await balance(user, 'ETH')).balance, before)
        }
        await fault(provider, 'heal')
        await assertConfirmed(user, id)
      }
      await waitFor('credited', async () =>
        (await deposits(user, 'ETH')).every((each) => each.status === 'confirmed'),
      )
    }),
  )
  await auditIsClean()
})

test('does not query a disabled provider, but still holds transfers to frozen addresses', async () => {
  const user = await newUser('switches')
  const address = await fundedWallet(platform, user, 'ETH', '10')
  const sender = String((await deposits(user, 'ETH'))[0]?.['source_id'])
  const to = freshAddress()
  await risk(to, 'SEVERE')
  await risk(sender, 'SEVERE')
  assert.equal((await save(user, { aml_deposit: false, aml_withdrawal: false })).status, 200)
  await assertConfirmed(user, (await send(user, 'ETH', '1', to)).body.id)
  await platform.fund('ETH', address, '1')
  await waitFor(
    'credited',
    async () =>
      (await deposits(user, 'ETH')).length === 2 &&
      (await deposits(user, 'ETH')).every((each) => each.status === 'confirmed'),
  )
  assert.equal((await save(user, { aml_deposit: true, aml_withdrawal: false })).status, 200)
  await platform.fund('ETH', address, '1')
  await waitFor('held', async () =>
    (await deposits(user, 'ETH')).find((each) => each.sub_status === 'AML_HELD'),
  )
  const out = (await send(user, 'ETH', '1', sender)).body
  await reached(user, out.id, 'AML_HELD')
  assert.equal((await frozen(user)).length, 1)
  assert.equal((await unfreeze(user, 'USDC_BASE', sender)).status, 200)
  await assertConfirmed(user, out.id)
  await risk(sender, 'none')
  await auditIsClean()
})

test('OFAC: without a provider, freezes a listed address on every chain that shares its format', async () => {
  const user = await newUser('ofac')
  await fundedWallet(platform, user, 'ETH', '10')
  await fundedWallet(platform, user, 'BTC', '1')
  const listed = '0x098b716b8aaf21512996dc57eb0615e2383e2f96'
  const [local, mainnet] = [
    loadRegistry('local').network('BTC') as Network,
    loadRegistry('mainnet').network('BTC') as Network,
  ]
  const btc = utxo.addressOf(
    local,
    utxo.scriptOf(mainnet, '12QtD5BFwRsdNsAZY76UVE1xyCGNTojH9h'),
  ) as string
  for (const [asset, to] of [
    ['ETH', listed],
    ['BTC', btc],
  ] as const) {
    const { id } = (await send(user, asset, '0.1', to)).body
    await reached(user, id, 'AML_HELD')
    const answer = await unfreeze(user, asset, to)
    assert.deepEqual([answer.status, answer.body.code], [403, 'SANCTIONED'])
  }
  assert.deepEqual(
    (await frozen(user)).map(({ source }) => source),
    ['OFAC', 'OFAC'],
  )
  // A refreshed list takes effect immediately: an address that it no longer contains can be
  // unfrozen.
  const file = join(platform.home, 'list.txt')
  writeFileSync(file, '# one line\nETH 0x7F367cC41522cE07553e823bf3be79A889DEbe1B\n')
  assert.equal(
    (await platform.cli('aml', 'refresh-ofac', file, '--published', '2026-01-01')).status,
    1,
    'most of the list would be gone',
  )
  assert.equal(
    (await platform.cli('aml', 'refresh-ofac', file, '--published', '2026-01-01', '--force'))
      .status,
    0,
  )
  assert.equal((await unfreeze(user, 'ETH', listed)).status, 200)
  await auditIsClean()
})

test('names missing or invalid settings, and never displays or stores a secret in clear text', async () => {
  const user = await newUser('settings')
  const reader = await newUser('settings', { role: 'read-only' })
  const whole = {
    provider: 'trm',
    aml_token: 'sandbox',
    aml_risk_levels: ' high , LOW,high',
    aml_deposit: true,
    aml_withdrawal: false,
  }
  for (const field of Object.keys(whole)) {
    const answer = await call<{ field: string }>(user, 'POST', '/dac/v1/aml', {
      ...whole,
      [field]: undefined,
    })
    assert.deepEqual([answer.status, answer.body.field], [400, field], answer.text)
  }
  for (const [field, value] of [
    ['provider', 'ACME'],
    ['aml_token', 'wrong'],
    ['aml_token', 'schlüssel'],
    ['aml_risk_levels', 'HIGH, GRAVE'],
    ['aml_risk_levels', ' '],
    ['aml_risk_levels', 'HIGH,'],
    ['aml_deposit', 'yes'],
    ['aml_withdrawal', 1],
    ['extra', 1],
  ] as const) {
    const answer = await call<{ field: string }>(user, 'POST', '/dac/v1/aml', {
      ...whole,
      [field]: value,
    })
    assert.deepEqual([answer.status, answer.body.field], [400, field], answer.text)
  }
  for (const token of ['sandbox', 'sandbox:bm90IHRoaXM=', 'other:c2FuZGJveA=='])
    assert.equal((await save(user, { provider: 'ELLIPTIC', aml_token: token })).status, 400)
  assert.equal((await call(user, 'GET', '/dac/v1/aml')).status, 404)
  const saved = await call<Record<string, unknown>>(user, 'POST', '/dac/v1/aml', whole)
  const { warning, ...shown } = saved.body
  assert.deepEqual(
    { ...shown, updated_at: '' },
    {
      provider: 'TRM',
      aml_token: '****',
      aml_risk_levels: 'HIGH, LOW',
      aml_deposit: true,
      aml_withdrawal: false,
      aml_unknown_sender_usd: '0',
      updated_at: '',
    },
  )
  assert.match(String(warning), /^addresses of the level SEVERE or MEDIUM are not held/)
  assert.deepEqual((await call(reader, 'GET', '/dac/v1/aml')).body, saved.body)
  assert.equal((await save(reader)).status, 403)
  assert.equal((await unfreeze(reader, 'ETH', freshAddress())).status, 403)
  assert.deepEqual(await frozen(reader), [])
  assert.equal(
    (await call(null, 'POST', '/dac/v1/aml', whole, { base: platform.base })).status,
    401,
  )
  const other = await newUser('other')
  assert.equal((await call(other, 'GET', '/dac/v1/aml')).status, 404)
  assert.equal(statSync(join(platform.home, 'secrets.key')).mode & 0o777, 0o600)
  assert.ok(!platform.output.includes('sandbox'), 'no token in the log')
  assert.ok(
    !JSON.stringify(said.mock.calls.map((call) => call.arguments)).includes('Basic '),
    'no credentials either',
  )
})

test('a reorganisation removes a held deposit from the ledger, and its sender stays frozen', async () => {
  const user = await newUser('reorg')
  const address = await fundedWallet(platform, user, 'BTC', '1')
  assert.equal((await save(user)).status, 200)
  const sender = String((await deposits(user, 'BTC'))[0]?.['source_id'])
  await risk(sender, 'SEVERE')
  const mine = () => platform.operator('devnet', { command: 'mine', network: 'BTC', blocks: 3 })
  const held = await platform.halted('BTC', async () => {
    await platform.fund('BTC', address, '2')
    await mine()
    const transfer = await waitFor('held', async () =>
      (await deposits(user, 'BTC')).find((each) => each.sub_status === 'AML_HELD'),
    )
    await platform.operator('devnet', { command: 'reorg', network: 'BTC', depth: 4 })
    await platform.acceptReorg('BTC')
    // The deposit's transaction returns to the mempool, is mined again, and is held again.
    await waitFor(
      'taken back',
      async () => (await read(user, transfer.id)).sub_status !== 'AML_HELD',
    )
    return transfer
  })
  await mine()
  await waitFor('held again', async () => (await read(user, held.id)).sub_status === 'AML_HELD')
  assert.equal((await balance(user, 'BTC')).omnibus_balance, '3')
  await auditIsClean()
  assert.equal((await unfreeze(user, 'BTC', sender)).status, 200)
  await waitFor('credited', async () => (await balance(user, 'BTC')).balance === '3')
  await risk(sender, 'none')
  await auditIsClean()
})
