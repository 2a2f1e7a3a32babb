// EIP-155 and EIP-1559: digests, signatures and hashes, verified with ethers and @ethereumjs/tx;
// low s of EIP-2.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCustomCommon, Hardfork, Mainnet } from '@ethereumjs/common'
import { createTxFromRLP } from '@ethereumjs/tx'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { getAddress, Interface, Transaction } from 'ethers'
import * as fc from '../../../../testing/property.ts'
import { evm, familyOf, type Asset, type Network, type UnsignedTransaction } from '../index.ts'
import {
  addressOf,
  ETH,
  ETH_ASSETS,
  highS,
  mainnet,
  NATIVE,
  publicKeyAt,
  refuses,
  sign,
  signDigest,
  USDT,
} from '../../testing/support.ts'

const { decode, signing, assemble, exclusive } = familyOf(ETH)
const PATH = [1, 60, 0]
const TO = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

function build(
  o: Partial<{
    asset: Asset
    to: string
    amount: bigint
    nonce: bigint
    gas: bigint
    fee: evm.EvmFee
  }> = {},
): UnsignedTransaction {
  return evm.buildTransfer(ETH, {
    asset: NATIVE,
    to: TO,
    amount: 10n ** 18n,
    nonce: 7n,
    gas: 21_000n,
    fee: { maxFeePerGas: 30_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n },
    path: PATH,
    ...o,
  })
}

test('EIP-155: computes the published example of the standard', () => {
  const main = mainnet.network('ETH') as Network
  const secret = Buffer.alloc(32, 0x46)
  const publicKey = () => secp256k1.getPublicKey(secret, true)
  const unsigned = evm.buildTransfer(main, {
    asset: mainnet.asset('ETH') as Asset,
    to: `0x${'35'.repeat(20)}`,
    amount: 10n ** 18n,
    nonce: 9n,
    gas: 21_000n,
    fee: { maxFeePerGas: 20_000_000_000n, maxPriorityFeePerGas: 0n, legacy: true },
    path: [0],
  })
  assert.equal(
    unsigned.bytes,
    'ec098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a764000080018080',
  )
  const [item] = signing(main, unsigned, publicKey)
  assert.equal(
    hex(item?.message as Uint8Array),
    'daf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53',
  )
  const signature = signDigest(item?.message as Uint8Array, secret)
  assert.equal(
    hex(signature.signature),
    '28ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa63627667cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83',
  )
  assert.equal(
    assemble(main, unsigned, [signature], publicKey).raw,
    'f86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a76400008025a028ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa636276a067cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83',
  )
})

const erc20 = new Interface(['function transfer(address to, uint256 amount)'])

test('ethers and @ethereumjs/tx decode the same sender, hash and fields of signed transfers', () => {
  const address = fc.uint8Array({ minLength: 20, maxLength: 20 }).map((bytes) => evmAddress(bytes))
  fc.assert(
    fc.property(
      fc.boolean(),
      fc.boolean(),
      address,
      fc.bigInt({ min: 0n, max: 2n ** 128n }),
      fc.nat(100_000),
      fc.bigInt({ min: 21_000n, max: 5_000_000n }),
      fc.bigInt({ min: 1n, max: 10n ** 13n }),
      fc.nat(20),
      (isToken, legacy, to, amount, nonce, gas, price, index) => {
        const path = [1, 60, index]
        const asset = isToken ? USDT : NATIVE
        const fee = { maxFeePerGas: price, maxPriorityFeePerGas: price / 2n, legacy }
        const unsigned = evm.buildTransfer(ETH, {
          asset,
          to,
          amount,
          nonce: BigInt(nonce),
          gas,
          fee,
          path,
        })
        const signed = assemble(
          ETH,
          unsigned,
          sign(signing(ETH, unsigned, publicKeyAt)),
          publicKeyAt,
        )

        const parsed = Transaction.from(`0x${signed.raw}`)
        assert.equal(parsed.unsignedSerialized, `0x${unsigned.bytes}`)
        assert.equal(parsed.from, addressOf(ETH, path))
        assert.equal(parsed.hash, signed.hash)
        assert.equal(parsed.chainId, BigInt(ETH.chain_id as number))
        assert.equal(parsed.nonce, nonce)
        assert.equal(parsed.to, isToken ? USDT.contract_address : to)
        assert.equal(parsed.value, isToken ? 0n : amount)
        assert.equal(
          parsed.data,
          isToken ? erc20.encodeFunctionData('transfer', [to, amount]) : '0x',
        )
        assert.equal(legacy ? parsed.gasPrice : parsed.maxFeePerGas, price)

        const second = createTxFromRLP(Buffer.from(signed.raw, 'hex'), { common: commonOf() })
        assert.equal(second.getSenderAddress().toString(), addressOf(ETH, path).toLowerCase())
        assert.equal(`0x${hex(second.hash())}`, signed.hash)
        assert.ok(second.verifySignature())

        const decoded = decode(ETH, unsigned, ETH_ASSETS, publicKeyAt)
        assert.deepEqual(decoded.payments, [{ address: to, amount, tag: null }])
        assert.equal(decoded.asset, asset.asset_name)
        assert.equal(decoded.fee_max, gas * price)
        assert.deepEqual(decoded.consumes, [`${addressOf(ETH, path)}:${nonce}`])
        assert.deepEqual(
          [decoded.nonce, decoded.gas_limit, decoded.max_fee_per_gas, decoded.from],
          [BigInt(nonce), gas, price, [addressOf(ETH, path)]],
        )
      },
    ),
    { numRuns: 60 },
  )
})

test('returns fee rates in gwei exactly', () => {
  for (const [wei, gwei] of [
    [1n, '0.000000001'],
    [30_000_000_000n, '30'],
    [1_500_000_000n, '1.5'],
    [10n ** 18n, '1000000000'],
  ] as const) {
    assert.equal(
      decode(
        ETH,
        build({ fee: { maxFeePerGas: wei, maxPriorityFeePerGas: 0n } }),
        ETH_ASSETS,
        publicKeyAt,
      ).fee_rate,
      gwei,
    )
  }
})

test('assembling refuses signatures that do not verify', () => {
  for (const legacy of [false, true]) {
    const unsigned = build({ fee: { maxFeePerGas: 10n, maxPriorityFeePerGas: 1n, legacy } })
    const items = signing(ETH, unsigned, publicKeyAt)
    const [good] = sign(items) as [{ signature: Uint8Array; recoveryId: number }]
    const message = items[0]?.message as Uint8Array
    for (const [name, signatures] of Object.entries({
      none: [],
      two: [good, good],
      'high s': [highS(good)],
      'wrong parity': [{ ...good, recoveryId: good.recoveryId ^ 1 }],
      'v instead of parity': [{ ...good, recoveryId: 27 + good.recoveryId }],
      'no parity': [{ ...good, recoveryId: null }],
      'another key': [signDigest(message, Buffer.alloc(32, 7))],
      short: [{ ...good, signature: good.signature.subarray(1) }],
      zero: [{ ...good, signature: new Uint8Array(64) }],
      'beyond the order': [{ ...good, signature: new Uint8Array(64).fill(255) }],
      'another digest': [signDigest(Buffer.alloc(32, 7), Buffer.alloc(32, 7))],
    }))
      assert.throws(
        () => assemble(ETH, unsigned, signatures, publicKeyAt),
        { name: 'ChainError', code: 'SIGNATURE' },
        name,
      )
  }
})

test('transactions with the same account and nonce exclude each other', () => {
  const of = (unsigned: UnsignedTransaction) => decode(ETH, unsigned, ETH_ASSETS, publicKeyAt)
  const one = of(build())
  assert.equal(exclusive(one, of(build({ amount: 1n }))), true)
  assert.equal(exclusive(one, of(build({ asset: USDT }))), true)
  assert.equal(exclusive(one, of(build({ nonce: 8n }))), false)
  assert.equal(exclusive(one, of({ ...build(), inputs: [{ path: [1, 60, 1] }] })), false)
})

test('gas funding is gas × price × 1.2, plus the data fee of a layer-2 network', () => {
  assert.equal(evm.fuelFor(65_000n, 1_000_000_000n), 78_000_000_000_000n)
  assert.equal(evm.fuelFor(21_000n, 10n, 5n), 252_005n)
})

test('refuses to build a transfer to an invalid address', () => {
  for (const to of ['', '0x', 'vitalik.eth', TO.slice(0, -1), `${TO}00`]) {
    refuses(() => build({ to }), 'ADDRESS')
    refuses(() => build({ to, asset: USDT }), 'ADDRESS')
  }
})

function evmAddress(bytes: Uint8Array): string {
  return getAddress(`0x${hex(bytes)}`)
}

function commonOf() {
  return createCustomCommon({ chainId: ETH.chain_id as number }, Mainnet, {
    hardfork: Hardfork.Cancun,
  })
}
