// Tron: ids, bytes and signatures of the seven contract types, verified with tronweb.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../../testing/property.ts'
import { utils } from 'tronweb'
import { familyOf, tron, type SignatureBytes, type UnsignedTransaction } from '../index.ts'
import { addressHex } from './address.ts'
import { decodeRaw } from './proto.ts'
import { addressOf, highS, publicKeyAt, refuses, sign, signDigest } from '../../testing/support.ts'
import {
  ASSETS,
  NATIVE,
  OWNER,
  PATH,
  publicKey,
  REFERENCE,
  SHAPES,
  TO,
  TRX,
  USDT_TRX,
} from '../../testing/tron-support.ts'

const { decode, signing, assemble, exclusive } = familyOf(TRX)
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
const hexOf = (address: string) => utils.address.toHex(address)
const of = (unsigned: UnsignedTransaction) => decode(TRX, unsigned, ASSETS, publicKeyAt)

/** Returns the same transaction as tronweb builds it from JSON. */
function oracle(
  type: string,
  value: Record<string, unknown>,
  reference = REFERENCE,
  feeLimit?: bigint,
): { id: string; hex: string } {
  const pb = utils.transaction.txJsonToPb({
    visible: false,
    raw_data: {
      contract: [{ type, parameter: { value, type_url: `type.googleapis.com/protocol.${type}` } }],
      ref_block_bytes: hex(reference.refBlockBytes),
      ref_block_hash: hex(reference.refBlockHash),
      expiration: reference.expiration,
      timestamp: reference.timestamp,
      ...(feeLimit === undefined ? {} : { fee_limit: Number(feeLimit) }),
    },
  } as never)
  return {
    id: utils.transaction.txPbToTxID(pb).replace(/^0x/, ''),
    hex: utils.transaction.txPbToRawDataHex(pb).toLowerCase(),
  }
}

const owner_address = hexOf(OWNER)
const EXPECTED: Record<string, [Record<string, unknown>, bigint?]> = {
  TransferContract: [{ owner_address, to_address: hexOf(TO), amount: 1_234_567 }],
  TriggerSmartContract: [
    {
      owner_address,
      contract_address: hexOf(USDT_TRX.contract_address as string),
      data: `a9059cbb${hexOf(TO).slice(2).padStart(64, '0')}${(5_000_000).toString(16).padStart(64, '0')}`,
    },
    30_000_000n,
  ],
  FreezeBalanceV2Contract: [{ owner_address, frozen_balance: 10_000_000, resource: 'ENERGY' }],
  UnfreezeBalanceV2Contract: [
    { owner_address, unfreeze_balance: 10_000_000, resource: 'BANDWIDTH' },
  ],
  WithdrawExpireUnfreezeContract: [{ owner_address }],
  DelegateResourceContract: [
    {
      owner_address,
      receiver_address: hexOf(TO),
      balance: 10_000_000,
      resource: 'ENERGY',
      lock: false,
    },
  ],
  UnDelegateResourceContract: [
    { owner_address, receiver_address: hexOf(TO), balance: 10_000_000, resource: 'BANDWIDTH' },
  ],
}

for (const [type, [value, feeLimit]] of Object.entries(EXPECTED)) {
  test(`${type}: id and bytes equal tronweb's, and the signature identifies the owner`, () => {
    const unsigned = (SHAPES[type] as () => UnsignedTransaction)()
    const expected = oracle(type, value, REFERENCE, feeLimit)
    assert.equal(unsigned.bytes, expected.hex)
    const items = signing(TRX, unsigned, publicKeyAt)
    assert.equal(hex(items[0]?.message as Uint8Array), expected.id)
    const [signature] = sign(items) as [SignatureBytes]
    const signed = assemble(TRX, unsigned, [signature], publicKeyAt)
    assert.equal(signed.hash, expected.id)
    const text = `${hex(signature.signature)}${(27 + (signature.recoveryId as number)).toString(16)}`
    assert.equal(utils.crypto.ecRecover(expected.id, text).toLowerCase(), owner_address)
    assert.ok(signed.raw.includes(unsigned.bytes) && signed.raw.endsWith(`1241${text}`))
    assert.equal(BigInt(signed.raw.length / 2 + 64), tron.bandwidthOf(unsigned.bytes))
  })
}

test("decodes, re-encodes and recovers the signer of a mainnet transaction of Tron's docs", () => {
  const bytes =
    '0a0268bd2208bc830d2c09fa23d14092a3bae4a3335aae01081f12a9010a31747970652e676f6f676c65617069732e636f6d2f70726f746f636f6c2e54726967676572536d617274436f6e747261637412740a1541cf2e99409d2a9a9190197ab0bff35ca87818c41e121541a614f803b6fd780986a42c78ec9c7f77e6ded13c2244a9059cbb0000000000000000000000415d4a41a3b0cdda5c03df72b38a20aa1b88777c7500000000000000000000000000000000000000000000000000000000f9cd95c070afceb6e4a3339001c0f4a46b'
  const raw = decodeRaw(Buffer.from(bytes, 'hex'))
  assert.deepEqual(
    [raw.type, raw.feeLimit, raw.expiration, raw.timestamp],
    [31, 225_000_000n, 1_761_952_567_698n, 1_761_952_507_695n],
  )
  assert.equal(
    hex(raw.value['contract_address'] as Uint8Array),
    addressHex(USDT_TRX.contract_address as string),
  )
  const unsigned = { network: 'TRX', bytes, inputs: [{ path: PATH }] }
  const [item] = signing(TRX, unsigned, publicKeyAt)
  assert.equal(
    hex(item?.message as Uint8Array),
    '4ad97d49409cfff338d2f9e71d4019c70e82030b52e15e208b1808f2f3ea782e',
  )
  const signature =
    'c99cdc8af6f47dc65a75aa0c6da1c5be8510736e581043162c3e8525c6e0ed8f592adaa74ba250136ea6e1fb125b3d3d024ac6abd3e24c28097d66a8e2a0c0aa01'
  assert.equal(
    utils.crypto
      .ecRecover('4ad97d49409cfff338d2f9e71d4019c70e82030b52e15e208b1808f2f3ea782e', signature)
      .toLowerCase(),
    hex(raw.value['owner_address'] as Uint8Array),
  )
  refuses(() => of(unsigned), 'PATH')
})

test('decodes the payments of transfers and the actions of staking', () => {
  const shape = (name: string) => of((SHAPES[name] as () => UnsignedTransaction)())
  const native = shape('TransferContract')
  assert.deepEqual(
    [native.asset, native.payments, native.from, native.action],
    ['TRX', [{ address: TO, amount: 1_234_567n, tag: null }], [OWNER], undefined],
  )
  assert.equal(
    native.fee_max,
    1_100_000n +
      tron.bandwidthOf((SHAPES['TransferContract'] as () => UnsignedTransaction)().bytes) * 1000n,
  )
  assert.equal(native.valid_until, 1_700_000_600)
  const token = shape('TriggerSmartContract')
  assert.deepEqual(
    [token.asset, token.payments],
    ['USDT_TRX', [{ address: TO, amount: 5_000_000n, tag: null }]],
  )
  assert.equal(
    token.fee_max,
    30_000_000n +
      1000n *
        tron.bandwidthOf((SHAPES['TriggerSmartContract'] as () => UnsignedTransaction)().bytes),
  )
  assert.deepEqual(shape('FreezeBalanceV2Contract').action, {
    kind: 'freeze',
    resource: 'ENERGY',
    amount: 10_000_000n,
    receiver: null,
  })
  assert.deepEqual(shape('UnfreezeBalanceV2Contract').action, {
    kind: 'unfreeze',
    resource: 'BANDWIDTH',
    amount: 10_000_000n,
    receiver: null,
  })
  assert.deepEqual(shape('WithdrawExpireUnfreezeContract').action, {
    kind: 'withdraw',
    resource: null,
    amount: 0n,
    receiver: null,
  })
  assert.deepEqual(shape('DelegateResourceContract').action, {
    kind: 'delegate',
    resource: 'ENERGY',
    amount: 10_000_000n,
    receiver: TO,
  })
  assert.deepEqual(shape('UnDelegateResourceContract').action, {
    kind: 'undelegate',
    resource: 'BANDWIDTH',
    amount: 10_000_000n,
    receiver: TO,
  })
  for (const name of Object.keys(SHAPES))
    if (!/Transfer|Trigger/.test(name))
      assert.deepEqual([shape(name).payments, shape(name).asset], [[], 'TRX'])
})

test('a transfer takes 268 points of bandwidth, and a token transfer 345', () => {
  const reference = { ...REFERENCE, expiration: 1_760_000_060_000, timestamp: 1_760_000_000_000 }
  const common = { reference, publicKey, path: PATH }
  const bandwidth = (unsigned: UnsignedTransaction) => tron.bandwidthOf(unsigned.bytes)
  assert.ok(
    bandwidth(tron.buildTransfer(TRX, { ...common, asset: NATIVE, to: TO, amount: 10_000_000n })) <=
      tron.TRANSFER_BANDWIDTH,
  )
  assert.equal(
    bandwidth(
      tron.buildTransfer(TRX, {
        ...common,
        asset: USDT_TRX,
        to: TO,
        amount: 1n,
        feeLimit: 30_000_000n,
      }),
    ),
    tron.TOKEN_BANDWIDTH,
  )
})

test('any amount and reference give the same bytes as tronweb', () => {
  const account = fc
    .uint8Array({ minLength: 20, maxLength: 20 })
    .filter((bytes) => bytes.some((byte) => byte > 0))
    .map((bytes) => utils.address.fromHex(`41${hex(bytes)}`))
  fc.assert(
    fc.property(
      fc.nat(6),
      account,
      fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
      fc.integer({ min: 1, max: 15_000_000_000 }),
      fc.uint8Array({ minLength: 2, maxLength: 2 }),
      fc.uint8Array({ minLength: 8, maxLength: 8 }),
      fc.integer({ min: 1, max: 4_000_000_000_000 }),
      fc.boolean(),
      fc.nat(20),
      (kind, other, amount, fee, refBlockBytes, refBlockHash, time, isEnergy, index) => {
        const path = [1, 195, index]
        const reference = {
          refBlockBytes,
          refBlockHash,
          expiration: time + 60_000,
          timestamp: time,
        }
        const common = { reference, publicKey: publicKeyAt(path), path }
        const resource = isEnergy ? 'ENERGY' : 'BANDWIDTH'
        const staked = { ...common, amount: BigInt(amount), resource } as const
        const owner = hexOf(addressOf(TRX, path))
        const [unsigned, type, value] = (
          [
            [
              tron.buildTransfer(TRX, {
                ...common,
                asset: NATIVE,
                to: other,
                amount: BigInt(amount),
              }),
              'TransferContract',
              { to_address: hexOf(other), amount },
            ],
            [
              tron.buildTransfer(TRX, {
                ...common,
                asset: USDT_TRX,
                to: other,
                amount: BigInt(amount),
                feeLimit: BigInt(fee),
              }),
              'TriggerSmartContract',
              {
                contract_address: hexOf(USDT_TRX.contract_address as string),
                data: `a9059cbb${hexOf(other).slice(2).padStart(64, '0')}${amount.toString(16).padStart(64, '0')}`,
              },
            ],
            [
              tron.buildFreeze(TRX, staked),
              'FreezeBalanceV2Contract',
              { frozen_balance: amount, resource },
            ],
            [
              tron.buildUnfreeze(TRX, staked),
              'UnfreezeBalanceV2Contract',
              { unfreeze_balance: amount, resource },
            ],
            [tron.buildWithdraw(TRX, common), 'WithdrawExpireUnfreezeContract', {}],
            [
              tron.buildDelegate(TRX, { ...staked, receiver: other }),
              'DelegateResourceContract',
              { receiver_address: hexOf(other), balance: amount, resource },
            ],
            [
              tron.buildUndelegate(TRX, { ...staked, receiver: other }),
              'UnDelegateResourceContract',
              { receiver_address: hexOf(other), balance: amount, resource },
            ],
          ] as [UnsignedTransaction, string, Record<string, unknown>][]
        )[kind] as [UnsignedTransaction, string, Record<string, unknown>]
        assert.equal(
          unsigned.bytes,
          oracle(
            type,
            { owner_address: owner, ...value },
            reference,
            kind === 1 ? BigInt(fee) : undefined,
          ).hex,
        )
        const decoded = of(unsigned)
        assert.deepEqual(
          decoded.payments,
          kind < 2 ? [{ address: other, amount: BigInt(amount), tag: null }] : [],
        )
        assert.deepEqual(
          [decoded.from, decoded.consumes, decoded.valid_until],
          [[addressOf(TRX, path)], [], Math.ceil((time + 60_000) / 1000)],
        )
      },
    ),
    { numRuns: 150 },
  )
})

test('amounts above 2^53 stay exact, and amounts above 63 bits are refused', () => {
  const common = { reference: REFERENCE, publicKey, path: PATH, asset: NATIVE, to: TO }
  const most = 2n ** 63n - 1n
  assert.equal(of(tron.buildTransfer(TRX, { ...common, amount: most })).payments[0]?.amount, most)
  refuses(() => tron.buildTransfer(TRX, { ...common, amount: most + 1n }), 'AMOUNT')
  refuses(() => tron.buildTransfer(TRX, { ...common, amount: -1n }), 'AMOUNT')
  const huge = 2n ** 256n - 1n
  assert.equal(
    of(tron.buildTransfer(TRX, { ...common, asset: USDT_TRX, amount: huge, feeLimit: 1n }))
      .payments[0]?.amount,
    huge,
  )
  refuses(
    () => tron.buildTransfer(TRX, { ...common, asset: USDT_TRX, amount: huge + 1n, feeLimit: 1n }),
    'AMOUNT',
  )
})

test('only token transfers have a fee limit', () => {
  const common = { reference: REFERENCE, publicKey, path: PATH, to: TO, amount: 1n }
  refuses(() => tron.buildTransfer(TRX, { ...common, asset: NATIVE, feeLimit: 1n }), 'FEE')
  refuses(() => tron.buildTransfer(TRX, { ...common, asset: USDT_TRX }), 'FEE')
  refuses(() => tron.buildTransfer(TRX, { ...common, asset: USDT_TRX, feeLimit: 0n }), 'FEE')
  assert.equal(tron.feeLimitFor(65_000n, 100n), 7_800_000n)
})

test('assembling refuses signatures that do not verify', () => {
  const unsigned = (SHAPES['TransferContract'] as () => UnsignedTransaction)()
  const items = signing(TRX, unsigned, publicKeyAt)
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
      () => assemble(TRX, unsigned, signatures, publicKeyAt),
      { name: 'ChainError', code: 'SIGNATURE' },
      name,
    )
  const elsewhere = { ...unsigned, inputs: [{ path: [1, 195, 1] }] }
  refuses(
    () => assemble(TRX, elsewhere, sign(signing(TRX, elsewhere, publicKeyAt)), publicKeyAt),
    'PATH',
  )
})

test('two Tron transactions never exclude each other', () => {
  const one = of((SHAPES['TransferContract'] as () => UnsignedTransaction)())
  assert.equal(exclusive(one, one), false)
})

test('buildAction gives the bytes of the specific builder within the stated bandwidth', () => {
  const common = { reference: REFERENCE, publicKey, path: PATH }
  const long = { resource: 'ENERGY', amount: 2n ** 63n - 1n, receiver: TO } as const
  const own = {
    freeze: tron.buildFreeze(TRX, { ...common, ...long }),
    unfreeze: tron.buildUnfreeze(TRX, { ...common, ...long }),
    withdraw: tron.buildWithdraw(TRX, common),
    delegate: tron.buildDelegate(TRX, { ...common, ...long }),
    undelegate: tron.buildUndelegate(TRX, { ...common, ...long }),
  }
  for (const kind of ['freeze', 'unfreeze', 'withdraw', 'delegate', 'undelegate'] as const) {
    assert.deepEqual(tron.buildAction(TRX, { ...common, kind, ...long }), own[kind])
    const taken = tron.bandwidthOf(own[kind].bytes)
    assert.ok(
      taken <= tron.actionBandwidth(kind) && taken > tron.actionBandwidth(kind) - 4n,
      `${kind} ${taken}`,
    )
  }
  refuses(
    () => tron.buildAction(TRX, { ...common, kind: 'freeze', ...long, resource: null }),
    'AMOUNT',
    /no resource/,
  )
  refuses(
    () => tron.buildAction(TRX, { ...common, kind: 'delegate', ...long, receiver: null }),
    'ADDRESS',
    /no receiver/,
  )
})
