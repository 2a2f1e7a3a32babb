import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  assertConfirmed,
  balance,
  call,
  rpc,
  terminal,
  TestPlatform,
  transferBody,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import { waitFor } from '../../../testing/wait-for.ts'

const platform = new TestPlatform()
let alice: User

/**
 * Receiver of each network, the sighash byte at the end of its signatures, and the sequence of its
 * inputs.
 */
const CASES = {
  LTC: {
    to: 'rltc1qw508d6qejxtdg4y5r3zarvary0c5xw7k693xs3',
    shown: 'rltc1qw508d6qejxtdg4y5r3zarvary0c5xw7k693xs3',
    sighash: '01',
    sequence: 0xfffffffd,
    own: /^rltc1q[a-z0-9]{38}$/,
  },
  DASH: {
    to: 'yWziQMcwmKjRdzi7eWjwiQX8EjWcd6dSg6',
    shown: 'yWziQMcwmKjRdzi7eWjwiQX8EjWcd6dSg6',
    sighash: '01',
    sequence: 0xffffffff,
    own: /^y[1-9A-HJ-NP-Za-km-z]{33}$/,
  },
  DOGE: {
    to: 'mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r',
    shown: 'mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r',
    sighash: '01',
    sequence: 0xffffffff,
    own: /^[mn][1-9A-HJ-NP-Za-km-z]{33}$/,
  },
  // The address is passed in the legacy format, and returned and paid as CashAddr.
  BCH: {
    to: 'mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r',
    shown: 'bchreg:qp63uahgrxged4z5jswyt5dn5v3lzsem6c6mz8vuwd',
    sighash: '41',
    sequence: 0xffffffff,
    own: /^bchreg:q[a-z0-9]{41}$/,
  },
} as const
type Ticker = keyof typeof CASES
const TICKERS = Object.keys(CASES) as Ticker[]

interface OnChain {
  vin: {
    txid: string
    vout: number
    sequence: number
    scriptSig: { hex: string }
    txinwitness?: string[]
  }[]
  vout: { value: number; scriptPubKey: { address: string } }[]
}
interface Info {
  networks: Record<string, { height: number | null }>
}

const units = (text: string): bigint => {
  const [whole = '0', fraction = ''] = text.split('.')
  return BigInt(whole + fraction.padEnd(8, '0'))
}
const heightOf = async (network: string) =>
  ((await platform.operator('devnet', { command: 'info' })) as unknown as Info).networks[network]
    ?.height

before(async () => {
  await platform.start()
  alice = await platform.user('alice')
})
after(() => platform.remove())

test('does not start the local chain of an unused network', async () => {
  for (const ticker of TICKERS) assert.equal(await heightOf(ticker), null, ticker)
})

test('assigns no address on a network that is not scanned', async () => {
  await platform.operator('devnet', { command: 'fault', network: 'DOGE', mode: 'down' })
  const refused = await call(alice, 'POST', '/dac/v1/create-wallet', { asset: 'DOGE' })
  assert.equal(refused.status, 503, refused.text)
  assert.equal(refused.body['code'], 'NETWORK_UNAVAILABLE')
  assert.deepEqual((await call<unknown[]>(alice, 'GET', '/dac/v1/wallets?asset=DOGE')).body, [])
  await platform.operator('devnet', { command: 'fault', network: 'DOGE', mode: 'heal' })
})

test('scans all first addresses that two processes create concurrently on one network', async () => {
  const other = await platform.startApi()
  try {
    const users = await Promise.all(
      ['one', 'two', 'three', 'four'].map((name) => platform.user(name)),
    )
    const addresses = await Promise.all(
      users.map(async (user, at) => {
        const base = at % 2 === 0 ? platform.base : other.base
        const created = await call(
          user,
          'POST',
          '/dac/v1/create-wallet',
          { asset: 'DASH' },
          { base },
        )
        assert.equal(created.status, 200, created.text)
        const { address } = (
          await call<{ address: string }>(
            user,
            'POST',
            '/dac/v1/address',
            { asset: 'DASH' },
            { base },
          )
        ).body
        // The next block pays the new address.
        await platform.fund('DASH', address, '0.5')
        return address
      }),
    )
    assert.equal(new Set(addresses).size, users.length)
    for (const user of users)
      await waitFor('the deposit', async () => (await balance(user, 'DASH')).balance === '0.5')
  } finally {
    await other.stop()
  }
})

/**
 * Receives deposits at two addresses, sends an amount that needs both coins, and accounts for every
 * unit.
 */
async function journey(ticker: Ticker): Promise<void> {
  const { to, shown, sighash, sequence, own } = CASES[ticker]
  const created = await call(alice, 'POST', '/dac/v1/create-wallet', { asset: ticker })
  assert.equal(created.status, 200, created.text)
  const addresses: string[] = []
  for (let count = 0; count < 2; count++)
    addresses.push(
      (await call<{ address: string }>(alice, 'POST', '/dac/v1/address', { asset: ticker })).body
        .address,
    )
  for (const address of addresses) {
    assert.match(address, own)
    assert.deepEqual(
      (await call(alice, 'POST', '/dac/v1/validate-address', { asset: ticker, address })).body[
        'valid'
      ],
      true,
    )
    await platform.fund(ticker, address, '2')
  }
  await waitFor(`${ticker} deposits`, async () => (await balance(alice, ticker)).balance === '4')
  const sent = await call<Transfer>(
    alice,
    'POST',
    '/dac/v1/transaction',
    transferBody(ticker, '3.00000001', to),
  )
  assert.equal(sent.status, 200, sent.text)
  assert.equal(sent.body['destination_id'] ?? sent.body['destination_address'] ?? shown, shown)
  const done = await terminal(alice, sent.body.id)
  assert.equal(done.status, 'confirmed', `${ticker}: ${String(done.failure_reason)}`)
  assert.equal(
    units((await balance(alice, ticker)).balance),
    units('4') - units('3.00000001') - units(done.fee),
  )
  const transaction = await rpc<OnChain>(platform, ticker, 'getrawtransaction', [done.hash, true])
  assert.ok(
    transaction.vout.some(
      (output) => output.value === 3.00000001 && output.scriptPubKey.address === shown,
    ),
  )
  assert.equal(transaction.vin.length, 2)
  let spent = 0n
  for (const input of transaction.vin) {
    assert.equal(input.sequence, sequence)
    const signature =
      input.txinwitness?.[0] ??
      input.scriptSig.hex.slice(2, 2 + 2 * Number.parseInt(input.scriptSig.hex.slice(0, 2), 16))
    assert.ok(signature.startsWith('30') && signature.endsWith(sighash), `${ticker}: ${signature}`)
    const source = await rpc<OnChain>(platform, ticker, 'getrawtransaction', [input.txid, true])
    spent += units(source.vout[input.vout]!.value.toFixed(8))
  }
  assert.equal(
    spent - transaction.vout.reduce((sum, output) => sum + units(output.value.toFixed(8)), 0n),
    units(done.fee),
  )
}

test('coins can be received and sent on each network, and the ledger accounts for every unit', async () => {
  await Promise.all(TICKERS.map(journey))
})

test('an amount below dust is refused before signing', async () => {
  for (const [ticker, amount] of [
    ['LTC', '0.00002939'],
    ['DASH', '0.00000545'],
    ['DOGE', '0.00999999'],
    ['BCH', '0.00000545'],
  ] as const) {
    const refused = await call<Transfer>(
      alice,
      'POST',
      '/dac/v1/transaction',
      transferBody(ticker, amount, CASES[ticker].to),
    )
    assert.equal(refused.status, 400, refused.text)
    assert.equal(refused.body['field'], 'amount', refused.text)
  }
})

test('an address of a related chain is refused', async () => {
  for (const [ticker, address] of [
    ['LTC', 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'],
    ['DASH', 'DFpN6QqFfUm3gKNaxN6tNcab1FArL9cZLE'],
    ['DOGE', 'XmN7PQYWKn5MJFna5fRYgP6mxT2F7xpekE'],
    ['BCH', 'bitcoincash:qp63uahgrxged4z5jswyt5dn5v3lzsem6cy4spdc2h'],
  ] as const) {
    const refused = await call<Transfer>(
      alice,
      'POST',
      '/dac/v1/transaction',
      transferBody(ticker, '0.1', address),
    )
    assert.equal(refused.status, 400, refused.text)
    assert.equal(refused.body['field'], 'destination_address', refused.text)
  }
})

test('a reorganisation removes a deposit, which is credited when it is mined again', async () => {
  const bob = await platform.user('bob')
  await call(bob, 'POST', '/dac/v1/create-wallet', { asset: 'DASH' })
  const { address } = (
    await call<{ address: string }>(bob, 'POST', '/dac/v1/address', { asset: 'DASH' })
  ).body
  await platform.halted('DASH', async () => {
    await platform.fund('DASH', address, '1')
    await platform.operator('devnet', { command: 'reorg', network: 'DASH', depth: 1 })
  })
  await waitFor('the deposit', async () => (await balance(bob, 'DASH')).balance === '1')
})

test('a mining reward is credited when the chain allows spending it, and can be spent', async () => {
  const miner = await platform.user('miner')
  await call(miner, 'POST', '/dac/v1/create-wallet', { asset: 'DASH' })
  const { address } = (
    await call<{ address: string }>(miner, 'POST', '/dac/v1/address', { asset: 'DASH' })
  ).body
  await platform.operator('devnet', { command: 'mine', network: 'DASH', blocks: 1, address })
  await platform.operator('devnet', { command: 'mine', network: 'DASH', blocks: 60 })
  await waitFor('the deposit’s confirmations', async () => {
    const { data } = (
      await call<{ data: { confirmations: string }[] }>(miner, 'GET', '/dac/v1/transactions')
    ).body
    return Number(data[0]?.confirmations) > 60
  })
  assert.equal(
    (await balance(miner, 'DASH')).balance,
    '0',
    'twelve confirmations are enough for others, not for a coinbase',
  )
  await platform.operator('devnet', { command: 'mine', network: 'DASH', blocks: 40 })
  await waitFor('the deposit', async () => (await balance(miner, 'DASH')).balance !== '0')
  const sent = await call<Transfer>(
    miner,
    'POST',
    '/dac/v1/transaction',
    transferBody('DASH', '1', CASES.DASH.to),
  )
  await assertConfirmed(miner, sent.body.id)
})

test('after these transfers, the ledger agrees with every chain', async () => {
  const report = await platform.operator('audit')
  assert.equal(report['ok'], true, JSON.stringify(report['differences']))
})
