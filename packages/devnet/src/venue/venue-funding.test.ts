// Deposits on every local chain, and withdrawals for whose payment no response arrived.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Devnet } from '../devnet.ts'
import type { LocalChain, Payment } from '../local-chain.ts'
import { Engine } from './engine/engine.ts'
import { BINANCE_RULES } from './binance/names.ts'
import { Funding, type FundingEntry } from './funding/funding.ts'
import { routesOf } from './funding/routes.ts'
import { look } from './funding/watch.ts'
import { removeHome, tempHome } from '../../testing/support.ts'
import { clientOf, control, newKey, type Client } from '../../testing/venue-support.ts'
import { waitFor } from '../../../../testing/wait-for.ts'

const home = tempHome()
let devnet: Devnet
let client: Client
before(async () => {
  devnet = await Devnet.start(home, 0, { manual: true })
  client = await clientOf(
    'binance',
    devnet,
    await newKey(devnet, 'binance', { unlimited: true, balances: 'USDT=0' }),
  )
})
after(() => {
  devnet.close()
  removeHome(home)
})

/** One network of each family, and its tokens. */
const ROUTES = [
  { coin: 'BTC', network: 'BTC', asset: 'BTC', chain: 'BTC' },
  { coin: 'BCH', network: 'BCH', asset: 'BCH', chain: 'BCH' },
  { coin: 'ETH', network: 'ETH', asset: 'ETH', chain: 'ETH' },
  { coin: 'USDT', network: 'ETH', asset: 'USDT_ETH', chain: 'ETH' },
  { coin: 'TRX', network: 'TRX', asset: 'TRX', chain: 'TRX' },
  { coin: 'USDT', network: 'TRX', asset: 'USDT_TRX', chain: 'TRX' },
  { coin: 'XRP', network: 'XRP', asset: 'XRP', chain: 'XRP' },
  { coin: 'XLM', network: 'XLM', asset: 'XLM', chain: 'XLM' },
  { coin: 'SOL', network: 'SOL', asset: 'SOL', chain: 'SOL' },
  { coin: 'USDC', network: 'SOL', asset: 'USDC_SOL', chain: 'SOL' },
  { coin: 'ADA', network: 'ADA', asset: 'ADA', chain: 'ADA' },
]

test('on each chain, credits a deposit exactly to its recipient, and pays a withdrawal', async () => {
  const hashes = new Map<string, string>()
  for (const { coin, network, asset } of ROUTES) {
    const { address, tag } = await client.fetchDepositAddress(coin, { network })
    const paid = await control<{ hash: string }>(devnet, {
      command: 'fund',
      asset,
      address,
      amount: '25.123456',
      ...(tag ? { tag } : {}),
    })
    hashes.set(`${coin} ${paid.hash}`, asset)
    // A deposit without its tag cannot be assigned to an account.
    if (tag) await control(devnet, { command: 'fund', asset, address, amount: '25' })
  }
  for (const network of new Set(ROUTES.map(({ chain }) => chain)))
    await control(devnet, { command: 'mine', network, blocks: 16 })
  const credited = async () =>
    (await client.fetchDeposits()).filter(({ status }) => status === 'ok').length
  await waitFor('all are credited', async () => (await credited()) === ROUTES.length)
  const deposits = await client.fetchDeposits()
  assert.deepEqual(
    deposits.map(({ currency, txid }) => `${currency} ${txid}`).sort(),
    [...hashes.keys()].sort(),
  )
  assert.ok(deposits.every(({ amount }) => amount === 25.123456))
  const balance = await client.fetchBalance()
  assert.deepEqual([balance['USDT']!.total, balance['XRP']!.total], [50.246912, 25.123456])
  for (const [coin, network, address, tag] of [
    ['USDT', 'TRX', 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8', undefined],
    ['XRP', 'XRP', 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe', '7'],
  ] as const)
    await client.withdraw(coin, 20, address, tag, { network })
  await waitFor('they are paid', async () =>
    (await client.fetchWithdrawals()).every(({ status }) => status === 'ok'),
  )
  for (const { currency, txid, amount, info } of await client.fetchWithdrawals()) {
    const [code, decimals] = currency === 'XRP' ? ['XRP', 6] : ['TRX', 6]
    const chain = devnet.chains.find((each) => each.code === code)!
    const { head } = await chain.info()
    const all: Payment[] = []
    for (let height = 1; height <= head!.height; height += 1)
      all.push(...((await chain.paymentsIn(height)) ?? []))
    const payment = all.find(({ hash }) => hash === txid)!
    assert.deepEqual(
      [payment.address, payment.amount],
      [info['address'], BigInt(Math.round(amount * 10 ** decimals))],
    )
    assert.equal(payment.tag, currency === 'XRP' ? '7' : null)
  }
})

test('offers the deposit methods that ccxt requests, each on its own network', async () => {
  const kraken = await clientOf(
    'kraken',
    devnet,
    await newKey(devnet, 'kraken', { unlimited: true }),
  )
  const addresses = new Map<string, string>()
  for (const coin of [
    'BTC',
    'BCH',
    'LTC',
    'DOGE',
    'DASH',
    'ETH',
    'USDT',
    'USDC',
    'TRX',
    'SOL',
    'XRP',
    'XLM',
    'ADA',
  ]) {
    addresses.set(coin, (await kraken.createDepositAddress(coin)).address)
  }
  // A different EVM key for each network.
  assert.equal(new Set(addresses.values()).size, addresses.size)
  const forms = { USDT: /^0x/, USDC: /^0x/, TRX: /^T/, XRP: /^r/, XLM: /^G/, ADA: /^addr_test1/ }
  for (const [coin, form] of Object.entries(forms)) assert.match(addresses.get(coin)!, form)
  const trc20 = await kraken.createDepositAddress('USDT', { method: 'Tether USD (TRC20)' })
  assert.match(trc20.address, /^T/)
})

test('a reorganisation removes deposits that were not credited yet', async () => {
  const { address } = await client.fetchDepositAddress('BTC', { network: 'BTC' })
  await control(devnet, { command: 'fund', asset: 'BTC', address, amount: '0.5' })
  const pending = async () =>
    (await client.fetchDeposits('BTC')).filter(({ status }) => status === 'pending')
  await waitFor('it is seen', async () => (await pending()).length === 1)
  await control(devnet, { command: 'reorg', network: 'BTC', depth: 1, drop: true })
  await waitFor('it is gone', async () => (await pending()).length === 0)
  await control(devnet, { command: 'mine', network: 'BTC', blocks: 5 })
  assert.equal((await client.fetchBalance())['BTC']!.total, 25.123456)
})

/**
 * A chain stub with only the methods that a venue uses: it executes payments, and drops the
 * configured number of responses.
 */
class Shaky {
  readonly code = 'LTC'
  readonly assets = ['LTC']
  readonly fundExtras = []
  readonly blocks: Payment[][] = [[]]
  losses = 0
  calls = 0

  async start(): Promise<void> {}
  async addressOf(): Promise<string> {
    return 'here'
  }
  async info(): Promise<unknown> {
    return { head: { height: this.blocks.length - 1, hash: '' } }
  }
  async paymentsIn(height: number): Promise<Payment[] | undefined> {
    return this.blocks[height]
  }
  async fund({ address, amount }: { address: string; amount: string }): Promise<string> {
    this.calls += 1
    const hash = `hash ${this.calls}`
    this.blocks.push([
      {
        hash,
        index: 0,
        asset: 'LTC',
        address,
        tag: null,
        amount: BigInt(Math.round(Number(amount) * 1e8)),
      },
    ])
    if (this.losses-- > 0) throw new Error('the connection was lost')
    return hash
  }
}

test('finds a payment with a lost response on the chain, and does not repeat it', async (context) => {
  context.mock.method(console, 'error', () => undefined)
  const chain = new Shaky()
  chain.losses = 1
  const chains = [chain as unknown as LocalChain]
  const engine = new Engine({
    rules: BINANCE_RULES,
    priceOf: () => undefined,
    now: Date.now,
    name: (_, number) => String(number),
  })
  engine.accounts.set('A1', {
    id: 'A1',
    number: 1,
    balances: { LTC: { total: 10n ** 9n, held: 0n } },
    createdMs: 0,
  })
  const written: FundingEntry[] = []
  const funding = new Funding({
    engine,
    coins: BINANCE_RULES.coins,
    routes: routesOf(BINANCE_RULES.coins, chains),
    chains,
    seed: () => 'seed',
    now: Date.now,
    isStuck: () => false,
    commit: (entry) => void written.push(structuredClone(entry)),
  })
  const order = {
    account: 'A1',
    coin: 'LTC',
    network: 'LTC',
    address: 'there',
    tag: null,
    amount: 10n ** 8n,
    fee: 10n ** 5n,
    clientId: null,
    addressName: null,
  }
  // An earlier, identical withdrawal, which has its own payment.
  const [first, second] = [
    funding.withdraw({ ...order, id: 'one' }),
    funding.withdraw({ ...order, id: 'two' }),
  ]
  assert.throws(() => funding.withdraw({ ...order, id: 'three', amount: 10n ** 9n }), {
    refusal: 'funds',
  })
  await waitFor('both are paid', () => first.status === 'success' && second.status === 'success')
  assert.equal(chain.calls, 2)
  assert.deepEqual([first.hash, second.hash].sort(), ['hash 1', 'hash 2'])
  assert.deepEqual(engine.accounts.get('A1')!.balances['LTC'], {
    total: 10n ** 9n - 2n * (10n ** 8n + 10n ** 5n),
    held: 0n,
  })
  // A payment is recorded before it is sent.
  assert.deepEqual(
    written
      .flatMap(({ withdrawals = [] }) => withdrawals)
      .filter(({ id }) => id === 'one')
      .map(({ status }) => status),
    ['initial', 'paying', 'pending', 'success'],
  )
  funding.close()
})

test('reads a long range of blocks in parts, and skips a chain that is not running', async () => {
  const chain = new Shaky()
  for (let height = 1; height <= 1200; height += 1) chain.blocks.push([])
  chain.blocks[1100] = [
    { hash: 'x', index: 0, asset: 'LTC', address: 'here', tag: null, amount: 5n },
  ]
  const routes = routesOf(BINANCE_RULES.coins, [chain as unknown as LocalChain])
  const owner = { account: 'A1', network: 'LTC', address: 'here', tag: null, createdMs: 0 }
  const read = (after: number, at: unknown = chain) =>
    look(at as LocalChain, {
      after,
      routes,
      coins: BINANCE_RULES.coins,
      ownerOf: () => owner,
      nowMs: 0,
    })
  assert.deepEqual(await read(0), { final: [], waiting: [], height: 500 })
  const last = await read(1000)
  assert.deepEqual(
    [last!.height, last!.final.map(({ hash, isCredited }) => [hash, isCredited])],
    [1189, [['x', true]]],
  )
  assert.equal(await read(0, { ...chain, info: async () => ({ head: null }) }), null)
})
