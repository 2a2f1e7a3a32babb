// Transactions that a hostile platform may send to a signer node on an EVM network.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeRlp } from 'ethers'
import * as fc from '../../../../testing/property.ts'
import { serializeTransaction, type TransactionSerializable } from 'viem'
import { ChainError, evm, familyOf, type UnsignedTransaction } from '../index.ts'
import { ETH, ETH_ASSETS, publicKeyAt, refuses, USDT } from '../../testing/support.ts'

const PATH = [1, 60, 0]
const TO = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const decodeAll = (unsigned: UnsignedTransaction) =>
  familyOf(ETH).decode(ETH, unsigned, ETH_ASSETS, publicKeyAt)
const of = (bytes: string): UnsignedTransaction => ({
  network: 'ETH',
  bytes: bytes.replace(/^0x/, ''),
  inputs: [{ path: PATH }],
})
const decode = (bytes: string) => decodeAll(of(bytes))
const CONTRACT = USDT.contract_address as `0x${string}`

const native = {
  type: 'eip1559',
  chainId: ETH.chain_id as number,
  nonce: 1,
  gas: 21_000n,
  maxFeePerGas: 100n,
  maxPriorityFeePerGas: 1n,
  to: TO,
  value: 5n,
} as const
const token = { ...native, to: CONTRACT, value: 0n, data: evm.transferData(TO, 5n) } as const
const bytesOf = (transaction: object) =>
  serializeTransaction(transaction as TransactionSerializable)

test('decodes plain transfers', () => {
  assert.deepEqual(decode(bytesOf(native)).payments, [{ address: TO, amount: 5n, tag: null }])
  assert.deepEqual(decode(bytesOf(token)).payments, [{ address: TO, amount: 5n, tag: null }])
  assert.equal(decode(bytesOf(token)).asset, 'USDT_ETH')
})

test('refuses another chain id and a missing chain id', () => {
  for (const chainId of [1, 56, 31338])
    refuses(() => decode(bytesOf({ ...native, chainId })), 'CHAIN_ID')
  refuses(() => decode(encodeRlp(['0x01', '0x64', '0x5208', TO, '0x05', '0x'])), 'CHAIN_ID')
  refuses(
    () => familyOf(ETH).signing(ETH, of(bytesOf({ ...native, chainId: 1 })), publicKeyAt),
    'CHAIN_ID',
  )
})

test('refuses contract creation', () => {
  refuses(() => decode(bytesOf({ ...native, to: undefined })), 'SHAPE', /creation/)
  refuses(() => decode(bytesOf({ ...native, to: undefined, data: '0x6001' })), 'SHAPE', /creation/)
})

test('refuses transaction types 1, 3 and 4, unknown types, and an access list', () => {
  const { maxFeePerGas: _, maxPriorityFeePerGas: __, ...base } = native
  refuses(
    () => decode(bytesOf({ ...base, type: 'eip2930', gasPrice: 100n, accessList: [] })),
    'SHAPE',
    /type 0 and 2/,
  )
  refuses(
    () =>
      decode(
        bytesOf({
          ...native,
          type: 'eip4844',
          maxFeePerBlobGas: 1n,
          blobVersionedHashes: [`0x01${'00'.repeat(31)}`],
        }),
      ),
    /SHAPE|TRANSACTION/,
  )
  refuses(
    () =>
      decode(
        bytesOf({
          ...native,
          type: 'eip7702',
          authorizationList: [
            {
              address: TO,
              chainId: 1,
              nonce: 0,
              r: `0x${'11'.repeat(32)}`,
              s: `0x${'11'.repeat(32)}`,
              yParity: 0,
            },
          ],
        }),
      ),
    /SHAPE|TRANSACTION/,
  )
  for (const type of ['05', '7e', '7f', '00', 'ff'])
    refuses(
      () => decode(`${type}${bytesOf(native).slice(4)}`),
      /TRANSACTION|SHAPE|CHAIN_ID|ENCODING/,
    )
  refuses(
    () => decode(bytesOf({ ...native, accessList: [{ address: TO, storageKeys: [] }] })),
    'SHAPE',
    /access list/,
  )
})

test('refuses token data of wrong length, padding or method, and token calls with native value', () => {
  const { data } = token
  for (const changed of [
    data.slice(0, -2),
    `${data}00`,
    `${data}${'00'.repeat(32)}`,
    '0xa9059cbb',
    '0xa9059cbb00',
    data.slice(0, 10 + 64),
    `${data.slice(0, 10)}01${data.slice(12)}`,
    `${data.slice(0, 32)}01${data.slice(34)}`,
    data.replace('a9059cbb', '095ea7b3'),
    data.replace('a9059cbb', '23b872dd'),
    data.replace('a9059cbb', '40c10f19'),
  ])
    refuses(() => decode(bytesOf({ ...token, data: changed })), 'SHAPE', /exactly transfer/)
  refuses(() => decode(bytesOf({ ...token, value: 1n })), 'SHAPE', /no native value/)
})

test('refuses calls of unknown contracts, and native transfers with data', () => {
  refuses(() => decode(bytesOf({ ...token, to: TO })), 'CONTRACT')
  refuses(() => decode(bytesOf({ ...native, data: '0x00' })), 'CONTRACT')
  refuses(
    () =>
      familyOf(ETH).decode(
        ETH,
        of(bytesOf(token)),
        ETH_ASSETS.filter((asset) => asset.type === 'native'),
        publicKeyAt,
      ),
    'CONTRACT',
  )
  refuses(
    () =>
      familyOf(ETH).decode(
        ETH,
        of(bytesOf(native)),
        ETH_ASSETS.filter((asset) => asset.type === 'token'),
        publicKeyAt,
      ),
    'NETWORK',
  )
})

test('decodes a call of a token contract without data as a native transfer', () => {
  assert.equal(decode(bytesOf({ ...native, to: CONTRACT })).asset, 'ETH')
})

test('refuses non-canonical encodings of the bytes', () => {
  const hex = bytesOf(native).slice(2)
  for (const bytes of [
    hex.toUpperCase(),
    `0x${hex}`,
    ` ${hex}`,
    `${hex}\n`,
    hex.slice(1),
    '',
    'zz',
    hex.slice(0, -2),
    `${hex}00`,
    `${hex}c0`,
  ]) {
    refuses(() => decodeAll({ ...of(''), bytes }), /TRANSACTION|ENCODING/)
  }
  // Leading zeros in an integer; the long form of a short string.
  const padded = `0x02${encodeRlp(['0x7a69', '0x01', '0x01', '0x64', '0x5208', TO, '0x0005', '0x', []]).slice(2)}`
  refuses(() => decode(padded), /TRANSACTION|ENCODING/)
  refuses(
    () =>
      decode(
        `0x02${encodeRlp(['0x7a69', '0x00', '0x01', '0x64', '0x5208', TO, '0x05', '0x', []]).slice(2)}`,
      ),
    /TRANSACTION|ENCODING/,
  )
  refuses(() => decode('00'.repeat(70_000)), 'TRANSACTION')
  refuses(() => decode('00'.repeat(20_000_000)), 'TRANSACTION')
})

test('refuses signed bytes where unsigned bytes are required', () => {
  const signature = {
    r: `0x${'11'.repeat(32)}`,
    s: `0x${'11'.repeat(32)}`,
    yParity: 0,
    v: 27n,
  } as const
  refuses(
    () => decode(serializeTransaction(native as TransactionSerializable, signature)),
    /TRANSACTION|ENCODING/,
  )
  const { maxFeePerGas: _, maxPriorityFeePerGas: __, ...base } = native
  const legacy = { ...base, type: 'legacy', gasPrice: 100n } as const
  decode(bytesOf(legacy))
  refuses(
    () => decode(serializeTransaction(legacy as TransactionSerializable, signature)),
    /TRANSACTION|ENCODING|CHAIN_ID/,
  )
})

test('refuses a tip above the maximum, a missing fee, and a fee that is too large', () => {
  const fields = (tip: string, max: string) =>
    `0x02${encodeRlp(['0x7a69', '0x01', tip, max, '0x5208', TO, '0x05', '0x', []]).slice(2)}`
  assert.equal(decode(fields('0x01', '0x64')).fee_max, 2_100_000n)
  refuses(() => decode(fields('0x65', '0x64')), /SHAPE|TRANSACTION/)
  refuses(() => decode(fields('0x01', '0x')), /SHAPE|TRANSACTION/)
  refuses(() => decode(fields('0x01', `0x01${'00'.repeat(32)}`)), /SHAPE|TRANSACTION|ENCODING/)
})

test('refuses a nonce above the largest exact integer of a double', () => {
  refuses(
    () =>
      decode(
        `0x02${encodeRlp(['0x7a69', '0x20000000000001', '0x01', '0x64', '0x5208', TO, '0x05', '0x', []]).slice(2)}`,
      ),
    /TRANSACTION|ENCODING|SHAPE/,
  )
})

test('requires exactly one input and no change', () => {
  const unsigned = of(bytesOf(native))
  refuses(() => decodeAll({ ...unsigned, inputs: [] }), 'SHAPE')
  refuses(() => decodeAll({ ...unsigned, inputs: [{ path: PATH }, { path: PATH }] }), 'SHAPE')
  refuses(() => decodeAll({ ...unsigned, change: { output: 0, path: PATH } }), 'SHAPE')
  refuses(() => decodeAll({ ...unsigned, inputs: [{ path: [0x80000000] }] }), 'PATH')
})

test('any changed byte results in a decoded transfer or a ChainError', () => {
  for (const transaction of [
    native,
    token,
    {
      ...native,
      type: 'legacy',
      gasPrice: 1n,
      maxFeePerGas: undefined,
      maxPriorityFeePerGas: undefined,
    },
  ]) {
    const bytes = Buffer.from(bytesOf(transaction).slice(2), 'hex')
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)), { minLength: 1, maxLength: 3 }),
        fc.nat(3),
        (changes, cut) => {
          const changed = Buffer.from(bytes)
          for (const [at, value] of changes) changed[at] = value
          try {
            assert.equal(
              decode(changed.subarray(0, changed.length - (cut === 3 ? 1 : 0)).toString('hex'))
                .payments.length,
              1,
            )
          } catch (error) {
            assert.ok(
              error instanceof ChainError,
              error instanceof Error ? error.stack : String(error),
            )
          }
        },
      ),
      { numRuns: 400 },
    )
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      assert.throws(() => decode(Buffer.from(bytes).toString('hex')), ChainError)
    }),
  )
})
