import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ChainError,
  evm,
  loadRegistry,
  stellar,
  withNonce,
  xrp,
  type Asset,
  type Network,
} from '@custody/chains'

const registry = loadRegistry('local')
const network = (code: string, change: Partial<Network> = {}) => ({
  ...(registry.network(code) as Network),
  ...change,
})
const path = [1, 60, 0]

test('a transaction whose nonce is replaced equals one built with the new nonce', () => {
  const fee = { maxFeePerGas: 2_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n }
  for (const [code, ticker, legacy] of [
    ['ETH', 'ETH', false],
    ['ETH', 'USDT_ETH', false],
    ['ETH', 'ETH', true],
  ] as const) {
    const at = (nonce: bigint) =>
      evm.buildTransfer(network(code), {
        asset: registry.asset(ticker) as Asset,
        to: `0x${'ab'.repeat(20)}`,
        amount: 5n,
        nonce,
        gas: 65_000n,
        fee: { ...fee, legacy },
        path,
      })
    for (const [from, to] of [
      [0n, 1n],
      [127n, 128n],
      [300n, 0n],
    ] as const)
      assert.deepEqual(withNonce(network(code), at(from), to), at(to), `${ticker} ${legacy}`)
  }
  const tagged = (sequence: bigint) =>
    xrp.buildPayment(network('XRP'), {
      to: 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe',
      tag: '7',
      amount: 5n,
      fee: 12n,
      sequence,
      validUntil: 99,
      publicKey: new Uint8Array(33).fill(2),
      path,
    })
  assert.deepEqual(withNonce(network('XRP'), tagged(5n), 4n), tagged(4n))
  for (const create of [false, true]) {
    const lumens = (sequence: bigint) =>
      stellar.buildPayment(network('XLM'), {
        to: 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ',
        tag: '7',
        amount: 5n,
        fee: 100n,
        sequence,
        validUntil: 1_900_000_000,
        create,
        publicKey: new Uint8Array(32).fill(3),
        path,
      })
    assert.deepEqual(
      withNonce(network('XLM'), lumens(2n ** 40n), 2n ** 40n - 1n),
      lumens(2n ** 40n - 1n),
    )
  }
  // Invalid transactions and impossible numbers cause our own errors, whatever the libraries throw.
  const eth = evm.buildTransfer(network('ETH'), {
    asset: registry.asset('ETH') as Asset,
    to: '0x00000000000000000000000000000000000000Ee',
    amount: 5n,
    nonce: 1n,
    gas: 21_000n,
    path,
    fee: { maxFeePerGas: 2n, maxPriorityFeePerGas: 1n },
  })
  for (const [code, bytes, nonce] of [
    ['ETH', '02ff', 1n],
    ['XLM', '00000002', 1n],
    ['XRP', '12', 1n],
    ['ETH', eth.bytes, 2n ** 53n],
  ] as const) {
    const renumber = () =>
      withNonce(network(code), { network: code, bytes, inputs: [{ path }] }, nonce)
    assert.throws(renumber, (error) => error instanceof ChainError && error.code === 'SHAPE')
  }
  assert.throws(
    () => withNonce(network('TRX'), { network: 'TRX', bytes: '00', inputs: [] }, 1n),
    /have no nonce/,
  )
})
