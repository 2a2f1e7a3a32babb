import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, test } from 'node:test'
import { Networks } from '../../core/engine/networks.ts'
import { useApi, type Problem } from '../../../testing/api-support.ts'
import { call, transferBody } from '../../../testing/harness.ts'

/**
 * Tests of retired and deprecated mainnet assets at the API: no new wallets or addresses are
 * created, but existing coins can be sent.
 */
const api = useApi({ network: 'mainnet', allowDeprecated: new Set(['USDC_CRO']) })
let user: Awaited<ReturnType<typeof api.user>>
interface Listed {
  asset_name: string
  is_active: boolean
  status: string
  status_since: string | null
  status_reason: string | null
  issuer: string | null
  bridged: boolean
}

/** Assets whose wallets were created before the asset was closed. */
const EARLIER = ['ONE', 'FTM', 'USDC_TRX']
before(async () => {
  await api.started
  user = await api.user('closed')
  for (const asset of EARLIER)
    await api.database.query(
      'insert into wallets (workspace_id, sub_account_id, asset, network) values ($1, $2, $3, $4)',
      [user.workspaceId, user.subAccountId, asset, api.services.registry.asset(asset)?.network],
    )
  assert.equal((await call(user, 'POST', '/dac/v1/create-wallet', { asset: 'BTC' })).status, 200)
})
const count = async (table: string) =>
  (await api.database.one<{ n: number }>(`select count(*)::int n from ${table}`, []))?.n

test('GET /assets omits retired assets, and states why deprecated ones are not active', async () => {
  for (const [caller, path] of [
    [null, '/assets'],
    [user, '/dac/v1/supported-assets'],
  ] as const) {
    const { body } = await call<Listed[]>(caller, 'GET', path, undefined, { base: api.base })
    const of = (name: string) => body.find(({ asset_name }) => asset_name === name)
    assert.equal(of('ONE'), undefined)
    assert.deepEqual(
      ['FTM', 'USDC_TRX', 'USDT_OP_ETH', 'USDC_CRO', 'USDT0_OP_ETH', 'BTC'].map((name) => [
        of(name)?.status,
        of(name)?.is_active,
      ]),
      [
        ['deprecated', false],
        ['deprecated', false],
        ['deprecated', false],
        ['deprecated', true],
        ['active', true],
        ['active', true],
      ],
      path,
    )
    assert.deepEqual(
      [of('FTM')?.status_since, of('BTC')?.status_since, of('BTC')?.status_reason],
      ['2024-12-18', null, null],
    )
    assert.match(of('USDC_TRX')?.status_reason ?? '', /Circle no longer issues USDC on Tron/)
    assert.deepEqual(
      ['USDC_ETH', 'USDC_BSC', 'ETH'].map((name) => [of(name)?.issuer, of(name)?.bridged]),
      [
        ['Circle', false],
        ['Binance (Binance-Peg)', true],
        [null, false],
      ],
    )
  }
})

test('refuses wallets, addresses, invoices and exchange withdrawals of closed assets', async () => {
  const tables = [
    'wallets',
    'wallet_addresses',
    'chain_addresses',
    'invoices',
    'exchange_transfers',
  ]
  const rows = async () => Promise.all(tables.map(count))
  const earlier = await rows()
  const withdrawal = { exchange_account: randomUUID(), amount: '1', sequence_id: 's' }
  for (const [asset, word] of [
    ['ONE', /ONE .* retired since 2026-09-10: Harmony stopped/],
    ['FTM', /FTM .* deprecated since 2024-12-18/],
    ['USDC_TRX', /USDC_TRX .* deprecated since 2024-02-21/],
  ] as const) {
    for (const [path, body, field] of [
      ['/dac/v1/create-wallet', { asset }, 'asset'],
      ['/dac/v1/wallet', { asset }, 'asset'],
      ['/dac/v1/address', { asset, label: 'x' }, 'asset'],
      ['/dac/v1/invoices', { asset, amount: '1', order_id: 'o' }, 'asset'],
      [
        '/dac/v1/invoices',
        { fiat: 'USD', fiat_amount: '10', assets: ['BTC', asset], order_id: 'o' },
        'assets',
      ],
      ['/dac/v1/exchange-withdrawals', { ...withdrawal, asset }, 'asset'],
    ] as const) {
      const answer = await call<Problem>(user, 'POST', path, body)
      assert.deepEqual(
        [answer.status, answer.body.code, answer.body.field],
        [400, 'ASSET_CLOSED', field],
        `${path}: ${answer.text}`,
      )
      assert.match(answer.body.message, word)
    }
  }
  assert.deepEqual(await rows(), earlier)
})

test('an invoice offers only those of the sub-account’s assets that are not closed', async () => {
  const { status, body, text } = await call<{ assets: { asset: string }[] }>(
    user,
    'POST',
    '/dac/v1/invoices',
    { fiat: 'USD', fiat_amount: '10', order_id: 'open' },
  )
  assert.equal(status, 200, text)
  assert.deepEqual(
    body.assets.map(({ asset }) => asset),
    ['BTC'],
  )
})

test('lists the wallet of a closed asset with the reason, and its coins can be sent', async () => {
  for (const asset of EARLIER) {
    const { status, body, text } = await call<
      { closed: { status: string; since: string; reason: string } | null }[]
    >(user, 'GET', `/dac/v1/wallets?asset=${asset}`)
    assert.equal(status, 200, text)
    assert.equal(body[0]?.closed?.status, asset === 'ONE' ? 'retired' : 'deprecated', text)
  }
  assert.equal(
    (await call<{ closed: unknown }[]>(user, 'GET', '/dac/v1/wallets?asset=BTC')).body[0]?.closed,
    null,
  )
  for (const [asset, to] of [
    ['ONE', `0x${'ab'.repeat(20)}`],
    ['FTM', `0x${'ab'.repeat(20)}`],
    ['USDC_TRX', 'TD3AWYqUF6hcGN5N9Ggg9yGpemnZ6vUYfH'],
  ] as const) {
    await api.fund(user, asset, 10n ** 20n)
    const { status, text } = await call<Problem>(
      user,
      'POST',
      '/dac/v1/transaction',
      transferBody(asset, '1', to, {}),
    )
    assert.equal(status, 200, text)
  }
})

test('refuses a closed asset with the reason even if its network has no endpoint', async () => {
  const { services } = api
  const configured = services.networks
  Object.assign(services, {
    networks: new Networks(configured.all().filter(({ network }) => network.code !== 'ONE')),
  })
  try {
    const made = await call<Problem>(user, 'POST', '/dac/v1/create-wallet', { asset: 'ONE' })
    assert.deepEqual([made.status, made.body.code], [400, 'ASSET_CLOSED'], made.text)
    const sent = await call<Problem>(
      user,
      'POST',
      '/dac/v1/transaction',
      transferBody('ONE', '1', `0x${'ab'.repeat(20)}`, {}),
    )
    assert.deepEqual([sent.status, sent.body.code], [400, 'UNSUPPORTED_ASSET'], sent.text)
    assert.match(sent.body.message, /ONE is not supported; it is retired since 2026-09-10/)
  } finally {
    Object.assign(services, { networks: configured })
  }
})

test('creates wallets and addresses of a deprecated asset if the operator allows the asset', async () => {
  assert.equal(
    (await call(user, 'POST', '/dac/v1/create-wallet', { asset: 'USDC_CRO' })).status,
    200,
  )
  const { status, text } = await call(user, 'POST', '/dac/v1/address', { asset: 'USDC_CRO' })
  assert.equal(status, 200, text)
})

test('validate-address and transfers refuse a token’s contract and the fee oracle as destination', async () => {
  const USDC = '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48'
  const USDT = '0xdAC17F958D2ee523a2206206994597C13D831ec7'
  for (const [asset, to, reason] of [
    ['USDC_ETH', USDT, /^is the contract of USDT_ETH/],
    ['USDC_ETH', USDT.toLowerCase(), /^is the contract of/],
    ['USDC_ETH', USDC, /own contract/],
    ['ETH', USDC, /^is the contract of/],
    ['BASE', '0x420000000000000000000000000000000000000F', /sets fees/],
    ['USDT_TRX', 'TEkxiTehnzSmSe2XqrBj4w32RUN966rdz8', /^is the contract of/],
    ['TRX', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', /^is the contract of/],
    ['SOL', 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v', /^is the contract of/],
  ] as const) {
    const checked = await call<{ valid: boolean; reason?: string }>(
      user,
      'POST',
      '/dac/v1/validate-address',
      { asset, address: to },
    )
    assert.equal(checked.body.valid, false, `${asset} ${to}: ${checked.text}`)
    assert.match(checked.body.reason ?? '', reason)
    await call(user, 'POST', '/dac/v1/create-wallet', { asset })
    const sent = await call<Problem>(
      user,
      'POST',
      '/dac/v1/transaction',
      transferBody(asset, '1', to, {}),
    )
    assert.deepEqual(
      [sent.status, sent.body.code, sent.body.field],
      [400, 'INVALID_ADDRESS', 'destination_address'],
      sent.text,
    )
  }
  // The same contract address is accepted on a network for which the registry does not list the
  // contract.
  assert.equal(
    (
      await call<{ valid: boolean }>(user, 'POST', '/dac/v1/validate-address', {
        asset: 'AVAX',
        address: USDC,
      })
    ).body.valid,
    true,
  )
})
