import assert from 'node:assert/strict'
import { test } from 'node:test'
import { evm, traitsOf, type Network } from '@custody/chains'
import { ETH, eth, registry, SINK_ETH, usdt } from '../../../testing/signer-cluster.ts'
import { addressOf, asksAbout, asksPay, Bench, IAT, pay } from '../../../testing/judging.ts'

/**
 * The platform chooses the gas limit of a transfer. With a low price, the fee cap would allow
 * hundreds of millions of gas, which a receiver's contract could use up; therefore the nodes limit
 * the gas.
 */
const ONE = 10n ** 18n
const CHEAP = 1n
const ABSURD = 30_000_000n
const MOST = 1_000_000n
const omnibus = [1, ETH.chain_index, 0]
const deposit = [1, ETH.chain_index, 4]
const tank = [0, ETH.chain_index, 0]
const above = (gas: bigint) =>
  new RegExp(
    `^FEE_CAP: The gas limit ${gas} is above ${MOST}, the maximum for one transfer on ETH$`,
  )

test('attack: refuses an excessive gas limit for every purpose, and signs a usual payment', async (t) => {
  const bench = new Bench()
  t.after(() => {
    bench.close()
  })
  const caller = bench.caller(1)
  const gas = { maxFeePerGas: CHEAP, gas: ABSURD }
  const request = await asksPay(caller)
  const fuelled = { kind: 'fuel', for: pay(request), gas: '21000', max_fee_per_gas: '1000000000' }
  const to = addressOf(ETH, omnibus)
  const by = await asksAbout(caller, request.id, 'cancel')
  const sweep = { kind: 'sweep', sub_account: 1, asset: 'ETH', address_index: 4 }
  bench.store.append('drain', {
    workspace: 'w',
    network: 'ETH',
    to_address: SINK_ETH,
    order: 'd',
    expires_at: IAT + 60,
  } as never)
  const attempts: [string, object, ReturnType<typeof eth>][] = [
    ['pay', pay(request), eth(omnibus, { value: ONE, ...gas })],
    ['fuel', fuelled, eth(tank, { value: 1n, to, ...gas })],
    [
      'cancel',
      { kind: 'cancel', of: pay(request), request: by.request },
      eth(omnibus, { to, ...gas }),
    ],
    ['sweep', sweep, eth(deposit, { value: ONE, to, ...gas })],
    ['token sweep', { ...sweep, asset: 'USDT_ETH' }, usdt(deposit, to, 5n, gas)],
    ['drain', { kind: 'drain', order: 'd' }, eth(tank, { value: ONE, ...gas })],
  ]
  for (const [name, purpose, unsigned] of attempts)
    assert.match((await bench.codeOf(purpose, unsigned)) ?? 'signed', above(ABSURD), name)
  const oneMore = eth(omnibus, { value: ONE, maxFeePerGas: CHEAP, gas: MOST + 1n })
  assert.match((await bench.codeOf(pay(request), oneMore)) ?? 'signed', above(MOST + 1n))
  // The fuel is for a transfer that would be refused itself.
  assert.equal(
    await bench.codeOf(
      { ...fuelled, gas: ABSURD.toString(), max_fee_per_gas: '1' },
      eth(tank, { value: 1n, to }),
    ),
    `FUEL_TOO_LARGE: The gas ${ABSURD} that the fuel pays for is above ${MOST}, the maximum for one transfer`,
  )
  assert.equal(await bench.codeOf(fuelled, eth(tank, { value: 1n, to, gas: 265_980n })), null)
  assert.equal(
    await bench.codeOf(pay(request), eth(omnibus, { value: ONE, gas: MOST, maxFeePerGas: CHEAP })),
    null,
  )
})

test('attack: a recovery order does not remove the gas limit', async (t) => {
  const bench = new Bench()
  t.after(() => {
    bench.close()
  })
  bench.store.append('recovering', { made_at: 1 })
  bench.store.append('recover', {
    order: 'r',
    workspace: 'w',
    network: 'ETH',
    to_address: SINK_ETH,
    tag: null,
    fee_max: '100000000000000000',
    expires_at: IAT,
  })
  const recover = { kind: 'recover', order: 'r' }
  assert.match(
    (await bench.codeOf(recover, eth(omnibus, { value: 1n, gas: ABSURD, maxFeePerGas: CHEAP }))) ??
      'signed',
    above(ABSURD),
  )
  assert.equal(await bench.codeOf(recover, eth(omnibus, { value: 1n, gas: 78_000n })), null)
})

test('Arbitrum has its own gas limit, and families without gas have none', () => {
  const mostOf = (code: string) =>
    traitsOf(registry.network(code) as Network).gasMost?.(registry.network(code) as Network)
  assert.equal(evm.GAS_MOST, MOST)
  assert.deepEqual(['ETH', 'BASE', 'ARB', 'BTC', 'TRX', 'XLM'].map(mostOf), [
    MOST,
    MOST,
    10_000_000n,
    undefined,
    undefined,
    undefined,
  ])
})
