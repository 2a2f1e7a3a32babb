// Fee rates if a node has no estimate, or one that would never be accepted.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  CardanoClient,
  EvmClient,
  NoFeeEstimate,
  RpcUnavailable,
  SolanaClient,
  StellarClient,
  TronClient,
  UtxoClient,
  XrpClient,
  type Fetch,
  type FeeFloors,
  type Network,
  solana,
} from '../index.ts'
import { local, mainnet } from '../../testing/support.ts'

type Answers = Record<string, (params: unknown[]) => string | number | undefined>
const net = (code: string): Network => mainnet.network(code) as Network

/**
 * Returns a node with JSON texts by method; a number is an error code, and every other method is
 * unknown.
 */
const node =
  (answers: () => Answers): Fetch =>
  async (_url, init) => {
    const { method, params } = JSON.parse(String(init.body)) as {
      method: string
      params: unknown[]
    }
    const reply = answers()[method]?.(params) ?? -32601
    return new Response(
      typeof reply === 'number'
        ? `{"result":null,"error":{"code":${reply},"message":"refused"},"id":1}`
        : `{"result":${reply},"error":null,"id":1}`,
    )
  }

const NONE = '{"errors":["Insufficient data or no feerate found"],"blocks":2}'
const INFO = '{"mempoolminfee":0.00001,"minrelaytxfee":0.00001}'

/** A Bitcoin Core client whose responses and clock the test sets. */
function bitcoin(code = 'BTC', floors?: FeeFloors) {
  const state = {
    now: 1_700_000_000_000,
    answers: { estimatesmartfee: () => NONE, getmempoolinfo: () => INFO } as Answers,
  }
  const client = new UtxoClient(
    net(code),
    { url: 'http://node.test', ...(floors ? { fee_floors: floors } : {}) },
    node(() => state.answers),
    () => state.now,
  )
  return { state, client }
}
const estimates =
  (low: string, medium: string, high: string) =>
  ([target]: unknown[]) =>
    `{"feerate":${target === 24 ? low : target === 6 ? medium : high},"blocks":${String(target)}}`

test('BTC: without any estimate, mainnet and local chains report an error instead of a rate', async () => {
  for (const answer of [
    NONE,
    '{"blocks":2}',
    '{"feerate":null}',
    '{"feerate":-1}',
    '{"feerate":0}',
    'null',
  ]) {
    const { state, client } = bitcoin()
    state.answers['estimatesmartfee'] = () => answer
    await assert.rejects(
      client.feeRates(),
      (error: unknown) =>
        error instanceof NoFeeEstimate &&
        error instanceof RpcUnavailable &&
        /^BTC: the node has no estimate of fee rates now.*level low; set fee_rate/.test(
          error.message,
        ),
      answer,
    )
    assert.equal(client.feeReading, null)
  }
  const { state } = bitcoin()
  const here = new UtxoClient(
    local.network('BTC') as Network,
    { url: 'http://node.test' },
    node(() => state.answers),
  )
  await assert.rejects(here.feeRates(), NoFeeEstimate)
})

test('BTC: fails with NoFeeEstimate if the node returns no estimates', async () => {
  const { state, client } = bitcoin()
  state.answers = {}
  await assert.rejects(client.feeRates(), NoFeeEstimate)
})

test('BTC: uses the last estimate for two hours and reports when it was read', async () => {
  const { state, client } = bitcoin()
  const readAt = state.now
  state.answers['estimatesmartfee'] = estimates('0.00005', '0.0001', '0.0002')
  const rates = { low: 5000n, medium: 10_000n, high: 20_000n }
  assert.deepEqual(await client.feeRates(), rates)
  assert.deepEqual(client.feeReading, { rates, readAt, basis: 'estimate' })
  state.answers['estimatesmartfee'] = () => NONE
  state.now += 7_200_000
  assert.deepEqual(await client.feeRates(), rates)
  assert.deepEqual(client.feeReading, { rates, readAt, basis: 'last_estimate' })
  state.now += 1
  await assert.rejects(client.feeRates(), NoFeeEstimate)
})

test("BTC: the node's minimum raises every level, but does not replace a missing estimate", async () => {
  const { state, client } = bitcoin()
  state.answers['getmempoolinfo'] = () => '{"mempoolminfee":0.00015,"minrelaytxfee":0.00001}'
  await assert.rejects(client.feeRates(), NoFeeEstimate)
  state.answers['estimatesmartfee'] = estimates('0.00005', '0.0001', '0.0002')
  assert.deepEqual(await client.feeRates(), { low: 15_000n, medium: 15_000n, high: 20_000n })
  state.answers['getmempoolinfo'] = () => -28
  assert.deepEqual(await client.feeRates(), { low: 5000n, medium: 10_000n, high: 20_000n })
})

test('BTC: configured minimums replace missing estimates and raise lower ones', async () => {
  const { state, client } = bitcoin('BTC', { low: '5', medium: '20', high: '40.5' })
  const rates = { low: 5000n, medium: 20_000n, high: 40_500n }
  assert.deepEqual(await client.feeRates(), rates)
  assert.deepEqual(client.feeReading, { rates, readAt: state.now, basis: 'configured' })
  state.answers['estimatesmartfee'] = estimates('0.00001', '0.00001', '0.001')
  assert.deepEqual(await client.feeRates(), { low: 5000n, medium: 20_000n, high: 100_000n })
  assert.equal(client.feeReading?.basis, 'estimate')
})

test('BTC: a level without an estimate uses the next more expensive level, else a cheaper one', async () => {
  const { state, client } = bitcoin()
  state.answers['estimatesmartfee'] = ([target]) => (target === 6 ? '{"feerate":0.0003}' : NONE)
  assert.deepEqual(await client.feeRates(), { low: 30_000n, medium: 30_000n, high: 30_000n })
  const low = bitcoin('BTC', { low: '3' })
  await assert.rejects(
    low.client.feeRates(),
    /level medium/,
    'a floor of the lowest level says nothing of the others',
  )
})

test('fee rates increase with the level even if estimates do not', async () => {
  const { state, client } = bitcoin()
  state.answers['estimatesmartfee'] = estimates('0.0003', '0.0002', '0.0001')
  assert.deepEqual(await client.feeRates(), { low: 30_000n, medium: 30_000n, high: 30_000n })
})

test('BTC: a node that is loading, or returns another format, is unavailable', async () => {
  const { state, client } = bitcoin()
  state.answers['estimatesmartfee'] = () => -28
  await assert.rejects(client.feeRates(), { code: 'RPC_REFUSED' })
  state.answers['estimatesmartfee'] = () => '{"feerate":"0.0002"}'
  await assert.rejects(
    client.feeRates(),
    /BTC: the node returned a fee rate that is not a number of coins/,
  )
})

test('LTC, DASH, DOGE, BCH: uses the minimum fee rates of the registry without estimates', async () => {
  for (const [code, rates] of [
    ['LTC', [1n, 2n, 10n]],
    ['DASH', [1n, 2n, 10n]],
    ['DOGE', [1000n, 1000n, 1000n]],
    ['BCH', [1n, 1n, 1n]],
  ] as const) {
    const { client } = bitcoin(code)
    const [low, medium, high] = rates.map((rate) => rate * 1000n)
    assert.deepEqual(await client.feeRates(), { low, medium, high }, code)
    assert.equal(client.feeReading?.basis, 'configured')
  }
})

const evm = (code: string, answers: Answers) =>
  new EvmClient(
    net(code),
    [],
    { url: 'http://node.test' },
    node(() => answers),
  )

test("EVM: without a fee history, uses the newest block's base fee, not an earlier price", async () => {
  const answers: Answers = {
    eth_getBlockByNumber: () => '{"baseFeePerGas":"0x64"}',
    eth_maxPriorityFeePerGas: () => '"0x7"',
  }
  for (const history of [
    'null',
    '{}',
    '{"baseFeePerGas":[],"reward":[]}',
    '{"baseFeePerGas":null,"reward":null}',
    '{"baseFeePerGas":[null]}',
  ]) {
    const { low, high } = await evm('ETH', { ...answers, eth_feeHistory: () => history }).feeRates()
    assert.deepEqual(low, { maxFeePerGas: 207n, maxPriorityFeePerGas: 7n }, history)
    assert.deepEqual(high, low)
  }
  await assert.rejects(
    evm('ETH', { ...answers, eth_feeHistory: () => '{"baseFeePerGas":["7"]}' }).feeRates(),
    /ETH: eth_feeHistory .*baseFeePerGas/,
  )
})

test('EVM: does not use a price of zero', async () => {
  const legacy = evm('ONE', { eth_gasPrice: () => '"0x0"' })
  await assert.rejects(legacy.feeRates(), /ONE: eth_gasPrice returned a price of 0/)
  const history = '{"baseFeePerGas":["0x0","0x0"],"reward":[["0x0","0x0","0x0"]]}'
  const answers: Answers = {
    eth_feeHistory: () => history,
    eth_maxPriorityFeePerGas: () => '"0x0"',
  }
  await assert.rejects(
    evm('BSC', { ...answers, eth_gasPrice: () => '"0x0"' }).feeRates(),
    /BSC: eth_gasPrice returned a price of 0/,
  )
  const { medium } = await evm('BSC', { ...answers, eth_gasPrice: () => '"0x3b9aca00"' }).feeRates()
  assert.deepEqual(medium, { maxFeePerGas: 10n ** 9n, maxPriorityFeePerGas: 10n ** 9n })
})

test('EVM: tips increase with the fee level even if blocks of the fee history vary', async () => {
  const history =
    '{"baseFeePerGas":["0x1"],"reward":[["0x0","0x1","0x2"],["0x0","0x1","0x2"],["0x9","0x9","0x9"]]}'
  const { low, medium, high } = await evm('ETH', { eth_feeHistory: () => history }).feeRates()
  assert.deepEqual(
    [low, medium, high].map(({ maxPriorityFeePerGas: tip }) => tip),
    [9n, 9n, 9n],
  )
})

/** Answers of a node whose market pays a tip of 2 wei at a base fee of 10. */
const LOW_MARKET: Answers = {
  eth_feeHistory: () => '{"baseFeePerGas":["0xa"],"reward":[["0x2","0x2","0x2"]]}',
}
const tipsOf = async (client: EvmClient): Promise<bigint[]> => {
  const { low, medium, high } = await client.feeRates()
  assert.ok(
    [low, medium, high].every((each) => each.maxFeePerGas === 20n + each.maxPriorityFeePerGas),
  )
  return [low, medium, high].map(({ maxPriorityFeePerGas: tip }) => tip)
}

test('EVM: no tip is below the minimum of the network, or of the configuration', async () => {
  const gwei = 10n ** 9n
  assert.deepEqual(await tipsOf(evm('ETH', LOW_MARKET)), [2n, 2n, 2n])
  assert.deepEqual(await tipsOf(evm('POL', LOW_MARKET)), [25n * gwei, 25n * gwei, 25n * gwei])
  const configured = new EvmClient(
    net('ETH'),
    [],
    { url: 'http://node.test', min_tip: '1.5' },
    node(() => LOW_MARKET),
  )
  assert.deepEqual(await tipsOf(configured), [(3n * gwei) / 2n, (3n * gwei) / 2n, (3n * gwei) / 2n])
})

test('EVM: a tip that a refusal names is paid for an hour, up to four times the usual tips', async () => {
  for (const [named, paid] of [
    ['7', 7n],
    ['8', 8n],
    ['25000000000', 8n],
    ['1', 2n],
  ] as const) {
    let now = 0
    const client = new EvmClient(
      net('ETH'),
      [],
      { url: 'http://node.test' },
      async (_url, init) => {
        const { id, method } = JSON.parse(String(init?.body)) as { id: number; method: string }
        if (method !== 'eth_sendRawTransaction')
          return new Response(`{"id":${id},"result":${LOW_MARKET[method]?.([])}}`)
        const message = `transaction underpriced: gas tip cap 2, minimum needed ${named}`
        return Response.json({ id, error: { code: -32_000, message } })
      },
      { now: () => now },
    )
    assert.equal((await client.broadcast('00')).kind, 'rejected')
    assert.deepEqual(await tipsOf(client), [paid, paid, paid], named)
    now = 3_600_001
    assert.deepEqual(await tipsOf(client), [2n, 2n, 2n], named)
  }
})

test('EVM: uses the other way to a price if the node refuses an optional method', async () => {
  const refuses = (...methods: string[]) =>
    new EvmClient(net('ETH'), [], { url: 'http://node.test' }, async (_url, init) => {
      const { id, method } = JSON.parse(String(init?.body)) as { id: number; method: string }
      if (methods.includes(method))
        return Response.json({ id, error: { code: -32_000, message: 'method handler crashed' } })
      const results: Record<string, string> = {
        eth_feeHistory: '{"baseFeePerGas":["0xa"],"reward":[]}',
        eth_getBlockByNumber: '{"baseFeePerGas":"0xa"}',
        eth_maxPriorityFeePerGas: '"0x3"',
        eth_gasPrice: '"0xf"',
      }
      return new Response(`{"id":${id},"result":${results[method]}}`)
    })
  assert.deepEqual(await tipsOf(refuses()), [3n, 3n, 3n])
  assert.deepEqual(await tipsOf(refuses('eth_feeHistory')), [3n, 3n, 3n])
  assert.deepEqual(await tipsOf(refuses('eth_feeHistory', 'eth_maxPriorityFeePerGas')), [
    5n,
    5n,
    5n,
  ])
  assert.deepEqual(
    await tipsOf(refuses('eth_feeHistory', 'eth_maxPriorityFeePerGas', 'eth_gasPrice')),
    [1n, 1n, 1n],
  )
})

const ENDPOINT = { url: 'http://node.test' }

test('XRP: uses the prices of a loaded server; if a price is missing, the error names its field', async () => {
  const ratesWith = (drops: string) =>
    new XrpClient(
      net('XRP'),
      ENDPOINT,
      node(() => ({ fee: () => `{"status":"success",${drops}}` })),
    ).feeRates()
  const loaded =
    '"drops":{"base_fee":"10","minimum_fee":"9000","open_ledger_fee":"5000","median_fee":"5000"}'
  assert.deepEqual(await ratesWith(loaded), { low: 9000n, medium: 9000n, high: 9000n })
  await assert.rejects(
    ratesWith('"drops":{"base_fee":"10"}'),
    /XRP: fee returned no drops\.minimum_fee/,
  )
  await assert.rejects(ratesWith('"x":1'), /XRP: fee returned no drops\.base_fee/)
})

test('XLM: uses the minimum fee if recent fees are zero; if a price is missing, the error names its field', async () => {
  const ratesWith = (stats: string) =>
    new StellarClient(
      net('XLM'),
      ENDPOINT,
      node(() => ({ getFeeStats: () => stats })),
    ).feeRates()
  assert.deepEqual(await ratesWith('{"inclusionFee":{"p50":"0","p80":"0","p95":"0"}}'), {
    low: 100n,
    medium: 100n,
    high: 100n,
  })
  assert.deepEqual(await ratesWith('{"inclusionFee":{"p50":"500","p80":"200","p95":"900"}}'), {
    low: 500n,
    medium: 500n,
    high: 900n,
  })
  await assert.rejects(ratesWith('{}'), /XLM: getFeeStats returned no inclusionFee\.p50/)
})

test('SOL: pays the minimum for an empty list of samples; an invalid list is an error', async () => {
  const ratesWith = (list: string) =>
    new SolanaClient(
      net('SOL'),
      [],
      ENDPOINT,
      node(() => ({ getRecentPrioritizationFees: () => list })),
    ).unitPrices()
  const prices = await ratesWith('[]')
  const units = solana.unitsOf(false)
  assert.deepEqual(
    (['low', 'medium', 'high'] as const).map((level) =>
      solana.feeOf(units, solana.unitPriceOf(prices, level, units)),
    ),
    [5000n, 6000n, 15_000n],
  )
  await assert.rejects(ratesWith('null'), /SOL: getRecentPrioritizationFees returned no list/)
  await assert.rejects(
    ratesWith('[{"slot":1}]'),
    /SOL: getRecentPrioritizationFees returned no prioritizationFee/,
  )
})

test('TRX, ADA: refuses a price of 0 and names the field', async () => {
  const parameters = (energy: number) =>
    JSON.stringify({
      chainParameter: [
        { key: 'getEnergyFee', ...(energy === 0 ? {} : { value: energy }) },
        { key: 'getTransactionFee', value: 1000 },
        { key: 'getCreateNewAccountFeeInSystemContract', value: 1 },
        { key: 'getCreateAccountFee', value: 1 },
        { key: 'getUnfreezeDelayDays', value: 14 },
        { key: 'getMaxFeeLimit', value: 1 },
      ],
    })
  const tron = (energy: number) =>
    new TronClient(
      net('TRX'),
      [],
      ENDPOINT,
      async () => new Response(parameters(energy)),
    ).parameters()
  assert.equal((await tron(100)).energySun, 100n)
  await assert.rejects(tron(0), /TRX: getchainparameters returned getEnergyFee 0/)
  const cardano = new CardanoClient(net('ADA'), ENDPOINT, async () =>
    Response.json({
      min_fee_a: 0,
      min_fee_b: 1,
      coins_per_utxo_size: '1',
      max_tx_size: 1,
      max_val_size: '1',
    }),
  )
  await assert.rejects(cardano.feeRates(), /min_fee_a is 0/)
})
