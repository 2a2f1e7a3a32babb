import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { MuxedAccount, Account, Keypair } from '@stellar/stellar-sdk'
import { classicAddressToXAddress, Wallet } from 'xrpl'
import { useApi } from '../../../testing/api-support.ts'
import { call, transferBody, type Transfer } from '../../../testing/harness.ts'

/**
 * Tests of destination tags and memos at the API: which assets accept them, and which requests are
 * refused before the chain is queried.
 */
const api = useApi()
let user: Awaited<ReturnType<typeof api.user>>
before(async () => {
  await api.started
  user = await api.user('tags')
  for (const asset of ['XRP', 'XLM', 'BTC'])
    await call(user, 'POST', '/dac/v1/create-wallet', { asset })
  await api.fund(user, 'XRP', 1_000_000_000n)
  await api.fund(user, 'XLM', 1_000_000_000n)
  await api.fund(user, 'BTC', 1_000_000_000n)
})

const xrp = Wallet.generate().address
const xlm = Keypair.random().publicKey()
const muxed = new MuxedAccount(new Account(xlm, '0'), '77').accountId()
const send = (asset: string, to: string, more: Record<string, unknown>) =>
  call<Transfer & { code: string; field: string; message: string }>(
    user,
    'POST',
    '/dac/v1/transaction',
    transferBody(asset, '1.5', to, more),
  )

test('the lists of assets state which assets accept a tag, and which require one', async () => {
  for (const [caller, path] of [
    [null, '/assets'],
    [user, '/dac/v1/supported-assets'],
  ] as const) {
    type Row = { asset_name: string; takes_tag: boolean; requires_tag: boolean }
    const { body } = await call<Row[]>(caller, 'GET', path, undefined, { base: api.base })
    const of = (field: 'takes_tag' | 'requires_tag') =>
      body
        .filter((asset) => asset[field])
        .map(({ asset_name: name }) => name)
        .sort()
    assert.deepEqual(of('takes_tag'), ['XLM', 'XRP'], path)
    assert.deepEqual(of('requires_tag'), ['XLM', 'XRP'], path)
    assert.ok(
      body.every(
        (asset) => typeof asset.takes_tag === 'boolean' && typeof asset.requires_tag === 'boolean',
      ),
      path,
    )
  }
})

test('refuses a memo that looks like a tag if the transfer has no tag', async () => {
  for (const [asset, to, memo] of [
    ['XRP', xrp, '123456'],
    ['XRP', xrp, ' 123456 '],
    ['XRP', xrp, '0'],
    ['XLM', xlm, '123456'],
    ['XLM', xlm, 'text:customer 9'],
    ['XLM', xlm, `hash:${'ab'.repeat(32)}`],
  ] as const) {
    const { status, body, text } = await send(asset, to, { memo })
    assert.deepEqual([status, body.code, body.field], [400, 'INVALID_REQUEST', 'memo'], text)
    assert.match(body.message, /^memo: .*address_tag/)
  }
  assert.deepEqual(
    (await call<{ total: string }>(user, 'GET', '/dac/v1/transactions')).body.total,
    '0',
  )
})

test('accepts any memo if the transfer has a tag or the network has no tags', async () => {
  const bitcoin = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
  for (const [asset, to, more, tag] of [
    ['XRP', xrp, { memo: '123456', address_tag: '7' }, '7'],
    ['XRP', xrp, { memo: 'invoice 123456' }, null],
    ['XRP', xrp, { memo: '4294967296' }, null],
    ['XRP', classicAddressToXAddress(xrp, false, false), { memo: '123456' }, null],
    ['XRP', classicAddressToXAddress(xrp, 12, false), { memo: '123456' }, '12'],
    ['XLM', xlm, { memo: '123456', address_tag: '7' }, '7'],
    ['XLM', xlm, { memo: 'March salaries' }, null],
    ['XLM', muxed, { memo: '123456' }, null],
    ['BTC', bitcoin, { memo: '123456' }, null],
  ] as const) {
    const { status, body, text } = await send(asset, to, more)
    assert.equal(status, 200, `${asset} ${to} ${JSON.stringify(more)}: ${text}`)
    assert.deepEqual([body['memo'], body['address_tag']], [more.memo, tag], text)
  }
})

test('a repeated request is replayed even if its memo would be refused now', async () => {
  const first = await send('XRP', xrp, { memo: 'invoice 9', sequence_id: 'kept' })
  assert.equal(first.status, 200, first.text)
  const again = await send('XRP', xrp, { memo: '9', sequence_id: 'kept' })
  assert.deepEqual(
    [again.status, again.body.id, again.headers.get('idempotent-replayed')],
    [200, first.body.id, 'true'],
    again.text,
  )
})

test('validate-address returns the tag of an address, and whether a separate tag is allowed', async () => {
  const check = async (asset: string, address: string, more = {}) =>
    (
      await call<Record<string, unknown>>(user, 'POST', '/dac/v1/validate-address', {
        asset,
        address,
        ...more,
      })
    ).body
  // No chain responds here, so it is unknown whether an account refuses payments without a tag.
  assert.deepEqual(await check('XRP', xrp), {
    valid: true,
    address_tag: null,
    takes_tag: true,
    requires_tag: null,
  })
  assert.deepEqual(await check('XRP', xrp, { address_tag: '0' }), {
    valid: true,
    address_tag: '0',
    takes_tag: true,
    requires_tag: null,
  })
  assert.deepEqual(await check('XLM', xlm, { address_tag: 'text:7' }), {
    valid: true,
    address_tag: 'text:7',
    takes_tag: true,
    requires_tag: null,
  })
  const fixed = { valid: true, takes_tag: false, requires_tag: false }
  assert.deepEqual(await check('XRP', classicAddressToXAddress(xrp, 12, false)), {
    ...fixed,
    address: xrp,
    address_tag: '12',
  })
  assert.deepEqual(await check('XRP', classicAddressToXAddress(xrp, false, false)), {
    ...fixed,
    address: xrp,
    address_tag: null,
  })
  assert.deepEqual(await check('XLM', muxed), { ...fixed, address_tag: null })
  assert.deepEqual(await check('BTC', 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'), {
    valid: true,
  })
  assert.deepEqual(Object.keys(await check('XRP', xrp, { address_tag: 'x' })).sort(), [
    'reason',
    'valid',
  ])
})

test('validate-address returns the canonical spelling of an address if it differs', async () => {
  const spelled = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
  const { body } = await call<Record<string, unknown>>(user, 'POST', '/dac/v1/validate-address', {
    asset: 'BTC',
    address: spelled.toUpperCase(),
  })
  assert.deepEqual(body, { valid: true, address: spelled })
  const made = await call<Transfer>(
    user,
    'POST',
    '/dac/v1/transaction',
    transferBody('BTC', '0.01', spelled.toUpperCase()),
  )
  assert.equal(made.body['destination_id'], spelled, made.text)
})

test('estimates the fee for an address that contains its tag', async () => {
  const rate = { asset: 'XRP', fee_rate: 12, amount: 1 }
  const { status, body, text } = await call<{ field?: string }>(
    user,
    'POST',
    '/dac/v1/estimate-fee',
    {
      ...rate,
      destination_address: classicAddressToXAddress(xrp, 12, false),
    },
  )
  assert.notEqual(body.field, 'destination_address', text)
  assert.equal(status, 200, text)
})
