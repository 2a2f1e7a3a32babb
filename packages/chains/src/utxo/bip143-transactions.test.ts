// BIP143 digests, BIP141 sizes and complete signed transactions, verified with @scure/btc-signer
// and bitcore-lib's interpreter.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sha256 } from '@noble/hashes/sha2.js'
import { OutScript, Transaction as Scure } from '@scure/btc-signer'
import bitcore from 'bitcore-lib'
import { Transaction } from 'bitcoinjs-lib'
import * as fc from '../../../../testing/property.ts'
import {
  familyOf,
  utxo,
  type Network,
  type SignedTransaction,
  type UnsignedTransaction,
  type UtxoParams,
} from '../index.ts'
import {
  addressOf,
  BTC,
  BTC_ASSETS,
  fund,
  highS,
  P2PKH,
  previousOf,
  publicKeyAt,
  refuses,
  sign,
  signDigest,
} from '../../testing/support.ts'

const { decode, signing, assemble, exclusive } = familyOf(BTC)
const SIGHASH_ALL = 1
const LOOSE = {
  allowUnknownInputs: true,
  allowUnknownOutputs: true,
  disableScriptCheck: true,
  allowLegacyWitnessUtxo: true,
}

function transfer(
  network: Network,
  values: bigint[],
  o: { amount: bigint; to?: string; change?: bigint; salt?: number; witness?: boolean },
): { unsigned: UnsignedTransaction; utxos: utxo.Utxo[] } {
  const funding = fund(
    network,
    values.map((value, at) => ({ value, path: [1, network.chain_index, at] })),
    o.salt ?? 0,
    o.witness,
  )
  const total = values.reduce((sum, value) => sum + value, 0n)
  const change = o.change ?? 0n
  const unsigned = utxo.buildTransfer(network, {
    selection: { utxos: funding.utxos, fee: total - o.amount - change, change, vsize: 0 },
    to: o.to ?? addressOf(network, [9, 0, 9]),
    amount: o.amount,
    changeAddress: addressOf(network, [1, network.chain_index, 77]),
    changePath: [1, network.chain_index, 77],
    previous: previousOf(funding),
  })
  return { unsigned, utxos: funding.utxos }
}

test('BIP143, native P2WPKH: the reference implementation computes the published digest', () => {
  const raw =
    '0100000002fff7f7881a8099afa6940d42d1e7f6362bec38171ea3edf433541db4e4ad969f0000000000eeffffffef51e1b804cc89d182d279655c3aa89e815b1b309fe287d9b2b55d57b90ec68a0100000000ffffffff02202cb206000000001976a9148280b37df378db99f66f85c95a783a76ac7a6d5988ac9093510d000000001976a9143bde42dbee7e4dbe6a21b2d50ce2f0167faa815988ac11000000'
  const hash = Buffer.from('1d0f172a0ecb48aee1be1f2687d2963ae33f71a1', 'hex')
  const script = OutScript.encode({ type: 'pkh', hash })
  const digest = Scure.fromRaw(Buffer.from(raw, 'hex'), LOOSE).preimageWitnessV0(
    1,
    script,
    SIGHASH_ALL,
    600_000_000n,
  )
  assert.equal(
    Buffer.from(digest).toString('hex'),
    'c37af31116d1b27caf68aae9e3ac82f1477929014d5b917657d0eb49478cb670',
  )
  // The library that our code uses agrees.
  const ours = Transaction.fromHex(raw).hashForWitnessV0(1, script, 600_000_000n, SIGHASH_ALL)
  assert.equal(
    Buffer.from(ours).toString('hex'),
    'c37af31116d1b27caf68aae9e3ac82f1477929014d5b917657d0eb49478cb670',
  )
})

const values = fc.array(fc.bigInt({ min: 10_000n, max: 10n ** 12n }), {
  minLength: 1,
  maxLength: 4,
})

test('signing digests equal those of @scure/btc-signer on random transactions', () => {
  fc.assert(
    fc.property(values, fc.nat(1000), fc.boolean(), (amounts, salt, withChange) => {
      const { unsigned } = transfer(BTC, amounts, {
        amount: 1000n,
        change: withChange ? 2000n : 0n,
        salt,
        witness: salt % 2 === 0,
      })
      const judge = Scure.fromRaw(Buffer.from(unsigned.bytes, 'hex'), LOOSE)
      signing(BTC, unsigned, publicKeyAt).forEach((item, at) => {
        const { hash } = OutScript.decode(utxo.scriptOf(BTC, addressOf(BTC, item.path))) as {
          hash: Uint8Array
        }
        assert.deepEqual(
          item.message,
          judge.preimageWitnessV0(
            at,
            OutScript.encode({ type: 'pkh', hash }),
            SIGHASH_ALL,
            amounts[at] as bigint,
          ),
        )
        assert.deepEqual(item.publicKey, publicKeyAt(item.path))
      })
    }),
    { numRuns: 40 },
  )
})

/** Executes every input of a signed transaction under the rules of consensus and relay. */
function executes(
  network: Network,
  signed: SignedTransaction,
  spent: readonly utxo.Utxo[],
): boolean {
  const { Script, Transaction: Foreign } = bitcore
  const { Interpreter } = Script
  const flags = [
    'P2SH',
    'DERSIG',
    'NULLDUMMY',
    'CHECKLOCKTIMEVERIFY',
    'CHECKSEQUENCEVERIFY',
    'WITNESS',
    'STRICTENC',
    'LOW_S',
    'MINIMALDATA',
    'NULLFAIL',
    'WITNESS_PUBKEYTYPE',
  ].reduce((all, name) => all | (Interpreter[`SCRIPT_VERIFY_${name}`] as number), 0)
  const parsed = Transaction.fromHex(signed.raw)
  const foreign = new Foreign(signed.raw)
  const scripts = spent.map((coin) => Buffer.from(utxo.scriptOf(network, coin.address)))
  foreign.inputs.forEach((input, at) => {
    input.output = new Foreign.Output({
      satoshis: Number(spent[at]?.value),
      script: scripts[at] as Buffer,
    })
  })
  return parsed.ins.every((input, at) =>
    new Interpreter().verify(
      Script.fromBuffer(Buffer.from(input.script)),
      Script.fromBuffer(scripts[at] as Buffer),
      foreign,
      at,
      flags,
      input.witness.map((item) => Buffer.from(item)),
      Number(spent[at]?.value),
    ),
  )
}

for (const [name, network] of [
  ['P2WPKH', BTC],
  ['P2PKH', P2PKH],
] as const) {
  test(`${name}: signed transactions execute, and the size estimate is exact or slightly too high`, () => {
    fc.assert(
      fc.property(values, fc.nat(1000), fc.boolean(), (amounts, salt, withChange) => {
        const { unsigned, utxos } = transfer(network, amounts, {
          amount: 1000n,
          change: withChange ? 2000n : 0n,
          salt,
        })
        const signed = assemble(
          network,
          unsigned,
          sign(signing(network, unsigned, publicKeyAt)),
          publicKeyAt,
        )
        assert.ok(executes(network, signed, utxos))
        const decoded = decode(network, unsigned, BTC_ASSETS, publicKeyAt)
        const real = Transaction.fromHex(signed.raw)
        assert.equal(real.getId(), signed.hash)
        const estimated = decoded.vsize as number
        assert.ok(estimated >= real.virtualSize(), `${estimated} < ${real.virtualSize()}`)
        // A signature whose r or s begins with a zero byte is shorter than the longest: one in 128
        // by one byte.
        assert.ok(
          estimated - real.virtualSize() <= amounts.length + 1,
          `${estimated} ≫ ${real.virtualSize()}`,
        )
        // With another amount, the same signatures do not execute.
        assert.ok(
          network !== BTC ||
            !executes(
              network,
              signed,
              utxos.map((coin) => ({ ...coin, value: coin.value + 1n })),
            ),
        )
        if (network === BTC)
          assert.equal(Scure.fromRaw(Buffer.from(signed.raw, 'hex'), LOOSE).id, signed.hash)
      }),
      { numRuns: 30 },
    )
  })
}

test('the size estimate is exact for a signature with the longest DER encoding', () => {
  const params = BTC.utxo as UtxoParams
  // 2 inputs of 41 bytes and 109 witness bytes, 2 outputs of 31 bytes: 8 + 1 + 1 + 82 + 62 bytes, 2
  // + 2 × 108 of witness.
  assert.equal(utxo.virtualSize(params, 2, [22, 22]), Math.ceil((4 * 154 + 2 + 216) / 4))
  assert.equal(utxo.virtualSize(params, 1, [22]), 110)
  assert.equal(utxo.virtualSize(params, 1, [22, 22]), 141)
  assert.equal(utxo.virtualSize(P2PKH.utxo as UtxoParams, 1, [25, 25]), 226)
  // The number of inputs takes three bytes from 253 on.
  assert.equal(
    utxo.virtualSize(P2PKH.utxo as UtxoParams, 253, [25]) -
      utxo.virtualSize(P2PKH.utxo as UtxoParams, 252, [25]),
    150,
  )
})

test('the dust limit of every output type equals that of Bitcoin Core', () => {
  const params = BTC.utxo as UtxoParams
  const limits: [string, string, bigint][] = [
    ['P2PKH', `76a914${'11'.repeat(20)}88ac`, 546n],
    ['P2SH', `a914${'11'.repeat(20)}87`, 540n],
    ['P2WPKH', `0014${'11'.repeat(20)}`, 294n],
    ['P2WSH', `0020${'11'.repeat(32)}`, 330n],
    ['P2TR', `5120${'11'.repeat(32)}`, 330n],
  ]
  for (const [name, script, limit] of limits)
    assert.equal(utxo.dustLimit(params, Buffer.from(script, 'hex')), limit, name)
})

test('decoding a transaction returns the values that it was built from', () => {
  const { unsigned, utxos } = transfer(BTC, [50_000n, 60_000n], {
    amount: 30_000n,
    change: 79_000n,
    witness: true,
  })
  const decoded = decode(BTC, unsigned, BTC_ASSETS, publicKeyAt)
  assert.deepEqual(decoded, {
    network: 'BTC',
    asset: 'BTC',
    payments: [{ address: addressOf(BTC, [9, 0, 9]), amount: 30_000n, tag: null }],
    change: { address: addressOf(BTC, [1, 0, 77]), amount: 79_000n },
    from: utxos.map((coin) => coin.address),
    fee_max: 1000n,
    fee_rate: decoded.fee_rate,
    consumes: utxos.map((coin) => `${coin.txid}:${coin.vout}`),
    nonce: null,
    gas_limit: null,
    max_fee_per_gas: null,
    vsize: decoded.vsize,
  })
  assert.equal(decoded.vsize, utxo.virtualSize(BTC.utxo as UtxoParams, 2, [22, 22]))
  assert.equal(decoded.fee_rate, String(Math.floor(1_000_000 / (decoded.vsize as number)) / 1000))
})

test('assembling refuses signatures that do not verify', () => {
  const { unsigned } = transfer(BTC, [50_000n, 60_000n], { amount: 30_000n })
  const items = signing(BTC, unsigned, publicKeyAt)
  const good = sign(items)
  const [first, second] = good as [(typeof good)[0], (typeof good)[0]]
  const attempts: [string, typeof good][] = [
    ['none', []],
    ['too few', [first]],
    ['too many', [...good, first]],
    ['in the wrong order', [second, first]],
    ['high s', [highS(first), second]],
    ['of another key', [signDigest(items[0]?.message as Uint8Array, Buffer.alloc(32, 7)), second]],
    ['of another digest', [signDigest(Buffer.alloc(32, 7), Buffer.alloc(32, 7)), second]],
    ['short', [{ signature: first.signature.subarray(1), recoveryId: 0 }, second]],
    [
      'long',
      [{ signature: Buffer.concat([first.signature, Buffer.alloc(1)]), recoveryId: 0 }, second],
    ],
    ['zero', [{ signature: Buffer.alloc(64), recoveryId: 0 }, second]],
    ['beyond the order', [{ signature: Buffer.alloc(64, 255), recoveryId: 0 }, second]],
  ]
  for (const [name, signatures] of attempts)
    assert.throws(
      () => assemble(BTC, unsigned, signatures, publicKeyAt),
      { code: 'SIGNATURE' },
      name,
    )
  const signed = assemble(BTC, unsigned, good, publicKeyAt)
  // A signed transaction is refused where an unsigned one is expected.
  refuses(
    () => decode(BTC, { ...unsigned, bytes: signed.raw }, BTC_ASSETS, publicKeyAt),
    'TRANSACTION',
  )
})

test('the transaction hash is the sha256d of the signed data without the witness', () => {
  const { unsigned } = transfer(BTC, [50_000n], { amount: 30_000n })
  const signed = assemble(BTC, unsigned, sign(signing(BTC, unsigned, publicKeyAt)), publicKeyAt)
  assert.equal(
    Buffer.from(sha256(sha256(Buffer.from(unsigned.bytes, 'hex'))))
      .reverse()
      .toString('hex'),
    signed.hash,
  )
})

test('two transactions exclude each other if they share an input', () => {
  const of = (unsigned: UnsignedTransaction) => decode(BTC, unsigned, BTC_ASSETS, publicKeyAt)
  const one = of(transfer(BTC, [50_000n, 60_000n], { amount: 30_000n }).unsigned)
  const dearer = of(transfer(BTC, [50_000n, 60_000n], { amount: 29_000n }).unsigned)
  const other = of(transfer(BTC, [50_000n], { amount: 30_000n, salt: 5 }).unsigned)
  assert.equal(exclusive(one, dearer), true)
  assert.equal(exclusive(one, other), false)
  assert.equal(
    exclusive(one, { ...other, consumes: [...other.consumes, one.consumes[1] as string] }),
    true,
  )
})
