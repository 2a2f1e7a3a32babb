// Signed transactions that are read again: on every network whose payments can be cancelled.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  assemble,
  evm,
  signing,
  traitsOf,
  utxo,
  verifySigned,
  type Asset,
  type Network,
  type UnsignedTransaction,
} from './index.ts'
import {
  addressOf,
  fund,
  highS,
  local,
  previousOf,
  privateKeyAt,
  publicKeyAt,
  refuses,
  sign,
  signDigest,
} from '../testing/support.ts'

const CHANGE = 0x7fffffff
const GWEI = 1_000_000_000n

/** Returns an unsigned payment; it spends two coins where the network has coins. */
function paymentOn(network: Network, amount: bigint): UnsignedTransaction {
  const [path, other] = [0, 1].map((index) => [1, network.chain_index, index]) as [
    number[],
    number[],
  ]
  const to = addressOf(network, [9, network.chain_index, 0])
  if (network.family === 'evm')
    return evm.buildTransfer(network, {
      asset: local.asset(network.native_asset) as Asset,
      to,
      amount,
      nonce: 3n,
      gas: 21_000n,
      fee: {
        maxFeePerGas: 2n * GWEI,
        maxPriorityFeePerGas: GWEI,
        ...(network.legacy_gas_price ? { legacy: true } : {}),
      },
      path,
    })
  const coins = fund(network, [
    { value: 900_000_000n, path },
    { value: 900_000_000n, path: other },
  ])
  const changePath = [1, network.chain_index, CHANGE]
  return utxo.buildTransfer(network, {
    selection: {
      utxos: coins.utxos,
      fee: 10_000_000n,
      change: 1_790_000_000n - amount,
      vsize: 200,
    },
    to,
    amount,
    changeAddress: addressOf(network, changePath),
    changePath,
    previous: previousOf(coins),
  })
}

for (const network of local.networks.filter((each) => traitsOf(each).cancellation !== null))
  test(`${network.code}: a signed transaction is verified against its unsigned form and its keys`, () => {
    const unsigned = paymentOn(network, 600_000_000n)
    const items = signing(local, unsigned, publicKeyAt)
    const signed = assemble(local, unsigned, sign(items), publicKeyAt)
    const verify = (raw: string, of = unsigned) => verifySigned(local, of, raw, publicKeyAt)
    assert.deepEqual(verify(signed.raw), signed)
    refuses(() => verify(signed.raw, paymentOn(network, 600_000_001n)), 'SIGNATURE')
    for (const raw of ['', 'zz', signed.raw.slice(2), `${signed.raw}00`, unsigned.bytes])
      refuses(() => verify(raw), /SIGNATURE|TRANSACTION/)
    for (let at = 0; at < signed.raw.length; at += 14) {
      const digit = signed.raw[at] === '0' ? '1' : '0'
      const altered = signed.raw.slice(0, at) + digit + signed.raw.slice(at + 1)
      refuses(() => verify(altered), /SIGNATURE|TRANSACTION/)
    }
  })

test('a signature of another key, or with a high s, is refused', () => {
  const ETH = local.network('ETH') as Network
  const unsigned = paymentOn(ETH, 5n)
  const [item] = signing(local, unsigned, publicKeyAt)
  // The other library writes the signature, because ours would refuse it.
  const rawWith = (path: number[], change: typeof highS = (same) => same) => {
    const other = { ...unsigned, inputs: [{ path }] }
    const own = signDigest(item!.message, privateKeyAt(path))
    const raw = assemble(local, other, [own], publicKeyAt).raw
    const { signature } = change(own)
    const [s, changed] = [own.signature, signature].map((each) =>
      Buffer.from(each.subarray(32))
        .toString('hex')
        .replace(/^(?:00)+/, ''),
    )
    return raw.replace(s as string, changed as string)
  }
  const path = unsigned.inputs[0]!.path
  assert.equal(verifySigned(local, unsigned, rawWith(path), publicKeyAt).network, 'ETH')
  refuses(
    () => verifySigned(local, unsigned, rawWith([2, ...path.slice(1)]), publicKeyAt),
    'SIGNATURE',
  )
  refuses(() => verifySigned(local, unsigned, rawWith(path, highS), publicKeyAt), 'SIGNATURE')
})

test('signatures of networks without cancellations are not read', () => {
  const unsigned = { network: 'XRP', bytes: '00', inputs: [{ path: [1, 2, 0] }] }
  refuses(() => verifySigned(local, unsigned, '00', publicKeyAt), 'SIGNATURE', /XRP cannot be read/)
})
