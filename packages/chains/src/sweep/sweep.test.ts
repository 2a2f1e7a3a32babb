import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ed25519 } from '@noble/curves/ed25519.js'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { Transaction } from 'bitcoinjs-lib'
import {
  addressAt,
  decode,
  formatAmount,
  loadRegistry,
  publicKeysBelow,
  utxo,
  type Fetch,
  type Network,
} from '@custody/chains'
import { sweeperOf, type Found, type Plan } from '@custody/chains/sweep'

/**
 * Offline plans from data of the chain: nodes can decode every transaction, and all amounts are
 * accounted for.
 */
const registry = loadRegistry('local')
const secret = new Uint8Array(32).fill(7)
const networkOf = (code: string): Network => registry.network(code) as Network
const keyOf = ({ curve }: Network) => ({
  curve,
  chainCode: new Uint8Array(32).fill(9),
  publicKey: (curve === 'ed25519' ? ed25519 : secp256k1).getPublicKey(secret),
})
const at = (network: Network, subAccount: number, index = 0) => {
  const path = [subAccount, network.chain_index, index]
  return { path, address: addressAt(network, keyOf(network), path) }
}
function planned(code: string, state: Found, to: string): { plan: Plan; transactions: string[] } {
  const network = networkOf(code)
  const publicKeyAt = publicKeysBelow(keyOf(network))
  const plan = sweeperOf(network).plan({
    registry,
    network,
    publicKeyAt,
    scan: state,
    to,
    tag: null,
  })
  const plans = plan.transactions.map(({ unsigned, amount, asset, fuel }) => {
    const decoded = decode(registry, unsigned, publicKeyAt)
    const [payment] = decoded.payments
    assert.deepEqual(
      [decoded.asset, payment?.amount, decoded.change, decoded.payments.length],
      [asset, BigInt(amount), null, 1],
    )
    if (fuel) assert.equal(payment?.address, addressAt(network, keyOf(network), fuel))
    else assert.equal(payment?.address, to)
    return `${asset} ${amount}${fuel ? ` to ${fuel.join('/')}` : ''}${decoded.nonce === null ? '' : ` #${decoded.nonce}`}`
  })
  return { plan, transactions: plans }
}

const ETH = networkOf('ETH')
const SINK = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const PRICE = 1_000_000_000n
const evm = (
  accounts: { place: ReturnType<typeof at>; nonce: string; balances: Record<string, string> }[],
): Found => ({
  accounts: accounts.map(({ place, ...rest }) => ({
    ...place,
    ...rest,
    gas: { ETH: '21000', USDT_ETH: '60000', USDC_ETH: '50000' },
  })),
  price: PRICE.toString(),
  legacy: false,
  l1: { native: '0', token: '0' },
})

test('sweeps tokens first, with gas funding if required, then coins, with consecutive nonces', () => {
  const [tank, poor, rich, bare] = [at(ETH, 0), at(ETH, 1, 3), at(ETH, 1), at(ETH, 2)]
  const first = planned(
    'ETH',
    evm([
      { place: tank, nonce: '4', balances: { ETH: '1000000000000000000' } },
      { place: poor, nonce: '0', balances: { USDT_ETH: '5' } },
      {
        place: rich,
        nonce: '7',
        balances: { ETH: '900000000000000000', USDT_ETH: '6', USDC_ETH: '8' },
      },
      { place: bare, nonce: '0', balances: { ETH: '20000' } },
    ]),
    SINK,
  )
  const fuel = 2n * 60_000n * PRICE
  assert.deepEqual(
    [first.transactions, first.plan.more, first.plan.left],
    [['USDT_ETH 6 #7', 'USDC_ETH 8 #8', `ETH ${fuel} to 1/${ETH.chain_index}/3 #4`], true, []],
  )
  const last = planned(
    'ETH',
    evm([
      { place: tank, nonce: '5', balances: { ETH: '1000000000000000000' } },
      { place: bare, nonce: '0', balances: { ETH: '20000' } },
    ]),
    SINK,
  )
  assert.deepEqual(
    [last.transactions, last.plan.more],
    [[`ETH ${10n ** 18n - 21_000n * PRICE} #5`], false],
  )
  assert.deepEqual(last.plan.left, [
    { address: bare.address, asset: 'ETH', amount: '20000', why: 'less than its fee' },
  ])
})

test('a token whose fee cannot be paid is reported with the required amount; others move', () => {
  const [poor, other] = [at(ETH, 1, 3), at(ETH, 2)]
  const { transactions, plan } = planned(
    'ETH',
    evm([
      { place: poor, nonce: '0', balances: { USDT_ETH: '5', ETH: '50000000000000' } },
      { place: other, nonce: '2', balances: { ETH: '60000000000000' } },
    ]),
    SINK,
  )
  assert.deepEqual([transactions, plan.more], [['ETH 39000000000000 #2'], false])
  assert.equal(plan.left[0]?.waits, true)
  assert.match(
    plan.left[0]?.why ?? '',
    /its fees require 70000000000000 more of ETH, in the smallest unit, at this address: send it, and gather again/,
  )
  assert.deepEqual(plan.left[1], {
    address: poor.address,
    asset: 'ETH',
    amount: '50000000000000',
    why: 'kept for the fees of its tokens',
  })
})

test('one payment creates the destination account, later ones follow; reserves are reported', () => {
  const XRP = networkOf('XRP')
  const to = 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh'
  const account = (subAccount: number, balance: string) => ({
    ...at(XRP, subAccount),
    balance,
    reserve: '1000000',
    sequence: '9',
  })
  const accounts = [account(1, '3000000'), account(2, '9000000'), account(3, '1000005')]
  const state = { accounts, fee: '12', validUntil: 700 }
  const first = planned('XRP', { ...state, creates: true }, to)
  assert.deepEqual([first.transactions, first.plan.more], [['XRP 7999988 #9'], true])
  const next = planned('XRP', { ...state, creates: false }, to)
  assert.deepEqual(
    [next.transactions, next.plan.more],
    [['XRP 7999988 #9', 'XRP 1999988 #9'], false],
  )
  assert.deepEqual(
    next.plan.left.map(({ amount }) => amount),
    ['1000000', '1000000', '1000005'],
  )
})

test('refuses a network of an unknown family, and accepts each family of the registry', () => {
  assert.throws(
    () => sweeperOf({ ...ETH, family: 'template' }),
    /cannot be recovered by this version/,
  )
  for (const network of [...registry.networks, ...loadRegistry('mainnet').networks])
    assert.ok(sweeperOf(network).life, network.code)
})

test('refuses a damaged findings file with the name of the field, and plans nothing', () => {
  const account = { ...at(ETH, 1), nonce: '4', balances: { ETH: '1000000000000000000' } }
  const sound = evm([])
  const coin = { ...at(networkOf('BTC'), 1), txid: 'ab'.repeat(32), vout: 0, value: '90000' }
  const cases: [code: string, found: Found, field: string][] = [
    ['ETH', { ...sound, accounts: [{ ...account, gas: {}, nonce: 4 }] }, 'found.accounts.0.nonce'],
    [
      'ETH',
      { ...sound, accounts: [{ ...account, gas: {}, balances: { ETH: '-1' } }] },
      'found.accounts.0.balances.ETH',
    ],
    ['ETH', { ...sound, price: '1e9' }, 'found.price'],
    [
      'BTC',
      { coins: [{ ...coin, value: 90000 }], previous: {}, rate: '1000' },
      'found.coins.0.value',
    ],
    [
      'BTC',
      { coins: [{ ...coin, path: [1, 0] }], previous: {}, rate: '1000' },
      'found.coins.0.path',
    ],
    [
      'BTC',
      { coins: [coin], previous: { [coin.txid]: 'xyz' }, rate: '1000' },
      `found.previous.${coin.txid}`,
    ],
    [
      'ADA',
      { coins: [], previous: {}, rate: '1', validUntil: 1, parameters: {} },
      'found.parameters.feePerByte',
    ],
    ['SOL', { accounts: [], unitPrice: '1' }, 'found.blockhash'],
    [
      'TRX',
      { accounts: [], energySun: '1', bandwidthSun: '1', activates: false },
      'found.reference',
    ],
    ['XRP', { accounts: [], fee: '12', validUntil: '700', creates: false }, 'found.validUntil'],
    ['XLM', { fee: '100', validUntil: 1, creates: false }, 'found.accounts'],
  ]
  for (const [code, state, field] of cases) {
    assert.throws(
      () => planned(code, state, SINK),
      (error: Error & { code?: string }) => {
        assert.equal(error.code, 'FOUND')
        assert.ok(
          error.message.startsWith(`${field}: `) && error.message.endsWith('; gather again'),
          `${code}: ${error.message}`,
        )
        return true
      },
    )
  }
})

test('skips and names a coin whose transaction is missing or unreadable, and moves the others', async () => {
  const network = networkOf('DASH')
  const place = at(network, 1)
  const own = (value: bigint, odd = false) => {
    const transaction = new Transaction()
    transaction.version = 2
    transaction.addInput(Buffer.alloc(32, Number(value % 251n)), 0)
    transaction.addOutput(utxo.scriptOf(network, place.address), value)
    return {
      hex: odd ? `${transaction.toHex()}00` : transaction.toHex(),
      txid: transaction.getId(),
      value,
    }
  }
  const [good, better, odd, absent] = [
    own(1_000_000n),
    own(2_000_000n),
    own(3_000_000n, true),
    own(4_000_000n),
  ]
  const everything = [good, better, odd, absent]
  const [to, rawOf] = [
    at(network, 7).address,
    new Map(everything.map(({ txid, hex }) => [txid, hex])),
  ]
  const script = Buffer.from(utxo.scriptOf(network, place.address)).toString('hex')
  const block = `{"hash":"h1","height":1,"previousblockhash":"h0","tx":[${everything.map(({ txid, value }) => `{"txid":"${txid}","vin":[{"txid":"u","vout":0}],"vout":[{"value":${formatAmount(value, 8)},"n":0,"scriptPubKey":{"hex":"${script}"}}]}`).join(',')}]}`
  const answers: Record<string, (params: unknown[]) => string> = {
    getblockhash: ([height]) => `"${height === 0 ? network.genesis : 'h1'}"`,
    getblockchaininfo: () => '{"blocks":1,"bestblockhash":"h1"}',
    getblock: () => block,
    gettxout: () => '{"value":1}',
    estimatesmartfee: () => '{"feerate":0.00001}',
    getrawtransaction: ([txid]) => `"${rawOf.get(txid as string)}"`,
  }
  const fetch: Fetch = async (_url, init) => {
    const { method, params } = JSON.parse(String(init.body)) as {
      method: string
      params: unknown[]
    }
    if (params[0] === absent.txid && method === 'getrawtransaction')
      return Response.json({ result: null, error: { code: -5, message: 'No such transaction' } })
    return new Response(`{"result":${answers[method]?.(params) ?? 'null'},"error":null}`)
  }
  const state = await sweeperOf(network).look({
    registry,
    network,
    endpoint: { url: 'http://node.test' },
    fetch,
    subAccounts: [1],
    gap: 2,
    fromHeight: 1,
    to,
    notify: () => undefined,
    placeAt: (subAccount, index) => at(network, subAccount, index),
  })
  const { plan, transactions } = planned('DASH', JSON.parse(JSON.stringify(state)) as Found, to)
  const moved = plan.transactions.reduce((sum, { amount }) => sum + BigInt(amount), 0n)
  assert.equal(transactions.length, 1)
  assert.ok(moved > 2_990_000n && moved < 3_000_000n, String(moved))
  assert.deepEqual(
    plan.left.map(({ amount, why }) => [amount, why]),
    [
      ['4000000', `${absent.txid}:0 cannot be spent: No such transaction`],
      ['3000000', `${odd.txid}:0 cannot be spent: its transaction is not a Bitcoin transaction`],
    ],
  )
})
