import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import * as fc from '../../../../testing/property.ts'
import {
  classicAddressToXAddress,
  decode as decodeBlob,
  deriveKeypair,
  ECDSA,
  hashes,
  verifyKeypairSignature,
  Wallet,
  type Payment,
} from 'xrpl'
import { encode as encodeBlob, encodeForSigning } from 'ripple-binary-codec'
import {
  ChainError,
  exclusive,
  familyOf,
  loadRegistry,
  RpcUnavailable,
  xrp,
  XrpClient,
  type Asset,
  type Fetch,
  type Network,
} from '../index.ts'
import { paymentUri as xrpUri } from './payment-uri.ts'
import { publicKeyAt, refuses, sign } from '../../testing/support.ts'

const local = loadRegistry('local')
const mainnet = loadRegistry('mainnet')
const XRP = local.network('XRP') as Network
const MAIN = mainnet.network('XRP') as Network
const ASSETS: readonly Asset[] = local.assetsOf('XRP')
const family = familyOf(XRP)
const PATH = [1, XRP.chain_index, 0]
const SINK = 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh'
const build = (o: Partial<Parameters<typeof xrp.buildPayment>[1]> = {}) =>
  xrp.buildPayment(XRP, {
    to: SINK,
    tag: null,
    amount: 1_000_000n,
    fee: 12n,
    sequence: 7n,
    validUntil: 100,
    publicKey: publicKeyAt(PATH),
    path: PATH,
    ...o,
  })
const tagged = (address: string, tag?: string | null) => family.validate(MAIN, address, tag)

describe('XRP addresses', () => {
  test('derives the documented account of a secp256k1 key', () => {
    assert.equal(
      family.address(
        XRP,
        Buffer.from('0330E7FC9D56BB25D6893BA3F317AE5BCF33B3291BD63DB32654A313222F7FD020', 'hex'),
      ),
      SINK,
    )
    const { publicKey } = deriveKeypair('sp5fghtJtpUorTwvof1NpDXAzNwf5')
    assert.equal(
      family.address(XRP, Buffer.from(publicKey, 'hex')),
      'rU6K7V3Po4snVhBBaU29sesqs2qTQJWDw1',
    )
  })

  // XLS-5, the reference implementation of the standard.
  const vectors: [string, string | null, string, string][] = [
    [
      'r9cZA1mLK5R5Am25ArfXFmqgNwjZgnfk59',
      null,
      'X7AcgcsBL6XDcUb289X4mJ8djcdyKaB5hJDWMArnXr61cqZ',
      'T719a5UwUCnEs54UsxG9CJYYDhwmFCqkr7wxCcNcfZ6p5GZ',
    ],
    [
      'r9cZA1mLK5R5Am25ArfXFmqgNwjZgnfk59',
      '1',
      'X7AcgcsBL6XDcUb289X4mJ8djcdyKaGZMhc9YTE92ehJ2Fu',
      'T719a5UwUCnEs54UsxG9CJYYDhwmFCvbJNZbi37gBGkRkbE',
    ],
    [
      'r9cZA1mLK5R5Am25ArfXFmqgNwjZgnfk59',
      '14',
      'X7AcgcsBL6XDcUb289X4mJ8djcdyKaGo2K5VpXpmCqbV2gS',
      'T719a5UwUCnEs54UsxG9CJYYDhwmFCvqXVCALUGJGSbNV3x',
    ],
    [
      'r9cZA1mLK5R5Am25ArfXFmqgNwjZgnfk59',
      '11747',
      'X7AcgcsBL6XDcUb289X4mJ8djcdyKaLFuhLRuNXPrDeJd9A',
      'T719a5UwUCnEs54UsxG9CJYYDhwmFCziiNHtUukubF2Mg6t',
    ],
    [
      'rLczgQHxPhWtjkaQqn3Q6UM8AbRbbRvs5K',
      null,
      'XVZVpQj8YSVpNyiwXYSqvQoQqgBttTxAZwMcuJd4xteQHyt',
      'TVVrSWtmQQssgVcmoMBcFQZKKf56QscyWLKnUyiuZW8ALU4',
    ],
    [
      'rGWrZyQqhTp9Xu7G5Pkayo7bXjH4k4QYpf',
      '4294967295',
      'XVLhHMPHU98es4dbozjVtdWzVrDjtV18pX8yuPT7y4xaEHi',
      'TVE26TYGhfLC7tQDno7G8dGtxSkYQnXoy6kSDh6rZzApc69',
    ],
  ]
  test('decodes the X-addresses of the XLS-5 specification', () => {
    for (const [classic, tag, main, other] of vectors) {
      assert.deepEqual(tagged(main), { valid: true, address: classic, address_tag: tag })
      assert.equal(tagged(other).valid, false, 'a test network’s spelling')
      assert.deepEqual(family.validate(XRP, other), {
        valid: true,
        address: classic,
        address_tag: tag,
      })
    }
  })

  test('a tag is a 32-bit whole number, 0 included, and must agree with an X-address', () => {
    assert.deepEqual(tagged(SINK), { valid: true, address: SINK, address_tag: null })
    assert.deepEqual(tagged(SINK, '0'), { valid: true, address: SINK, address_tag: '0' })
    assert.deepEqual(tagged(SINK, '4294967295'), {
      valid: true,
      address: SINK,
      address_tag: '4294967295',
    })
    for (const bad of ['', '4294967296', '-1', '01', '1.0', '1e3', 'abc', ' 1', '٣'])
      assert.equal(tagged(SINK, bad).valid, false, bad)
    const zero = classicAddressToXAddress(SINK, 0, false)
    const none = classicAddressToXAddress(SINK, false, false)
    assert.deepEqual(tagged(zero), { valid: true, address: SINK, address_tag: '0' })
    assert.deepEqual(tagged(zero, '0'), { valid: true, address: SINK, address_tag: '0' })
    assert.equal(tagged(zero, '1').valid, false)
    assert.deepEqual(tagged(none), { valid: true, address: SINK, address_tag: null })
    assert.equal(tagged(none, '0').valid, false)
  })

  test('refuses invalid addresses', () => {
    for (const bad of [
      '',
      'r',
      SINK.slice(0, -1),
      `${SINK.slice(0, -1)}i`,
      SINK.toUpperCase(),
      'rrrrrrrrrrrrrrrrrrrrrhoLvTp',
      'rrrrrrrrrrrrrrrrrrrrBZbvji',
      '1BoatSLRHtKNngkdXEeobR76b53LETtpyT',
      'X7AcgcsBL6XDcUb289X4mJ8djcdyKaB5hJDWMArnXr61cqY',
    ])
      assert.equal(tagged(bad).valid, false, bad)
  })

  test('property: decodes every X-address of xrpl.js to its account and tag', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 32, maxLength: 32 }),
        fc.option(fc.integer({ min: 0, max: 0xffff_ffff })),
        (entropy, tag) => {
          const { classicAddress } = Wallet.fromEntropy(entropy.subarray(0, 16))
          assert.deepEqual(tagged(classicAddressToXAddress(classicAddress, tag ?? false, false)), {
            valid: true,
            address: classicAddress,
            address_tag: tag === null ? null : String(tag),
          })
        },
      ),
      { numRuns: 50 },
    )
  })
})

test('writes payment URIs of XRP', () => {
  assert.equal(xrpUri({ address: SINK }), `xrpl:${SINK}`)
  assert.equal(
    xrpUri({ address: SINK, amount: '0.000015', tag: '0' }),
    `xrpl:${SINK}?amount=0.000015&dt=0`,
  )
})

describe('XRP transactions', () => {
  test('xrpl.js decodes the built transaction with the same digest, id and valid signature', () => {
    for (const tag of [null, '0', '4294967295']) {
      const unsigned = build({ tag })
      const json = decodeBlob(unsigned.bytes.toUpperCase()) as unknown as Payment
      assert.equal(json.DestinationTag, tag === null ? undefined : Number(tag))
      const [item] = family.signing(XRP, unsigned, publicKeyAt)
      assert.ok(item)
      const [signature] = sign([item])
      const signed = family.assemble(XRP, unsigned, [signature!], publicKeyAt)
      assert.equal(hashes.hashSignedTx(signed.raw.toUpperCase()), signed.hash)
      const full = decodeBlob(signed.raw.toUpperCase()) as unknown as Payment & {
        TxnSignature: string
        SigningPubKey: string
      }
      assert.ok(
        verifyKeypairSignature(
          encodeForSigning(full as unknown as Parameters<typeof encodeForSigning>[0]),
          full.TxnSignature,
          full.SigningPubKey,
        ),
      )
    }
  })

  test('a payment signed by xrpl.js has the same meaning as ours', () => {
    const wallet = Wallet.fromSeed('sn3nxiW7v8KXzPzAqzyHXbSSKNuN9', { algorithm: ECDSA.secp256k1 })
    const publicKey = Buffer.from(wallet.publicKey, 'hex')
    const unsigned = xrp.buildPayment(XRP, {
      to: SINK,
      tag: '13',
      amount: 5n,
      fee: 12n,
      sequence: 3n,
      validUntil: 77,
      publicKey,
      path: PATH,
    })
    const theirs = wallet.sign({
      TransactionType: 'Payment',
      Flags: 0,
      Account: wallet.address,
      Destination: SINK,
      DestinationTag: 13,
      Amount: '5',
      Fee: '12',
      Sequence: 3,
      LastLedgerSequence: 77,
    })
    const { TxnSignature: _, ...plain } = decodeBlob(theirs.tx_blob) as unknown as Record<
      string,
      unknown
    >
    assert.deepEqual(decodeBlob(unsigned.bytes.toUpperCase()), plain)
  })

  test('decodes amount, tag, fee, sequence and expiry', () => {
    const decoded = family.decode(XRP, build({ tag: '0' }), ASSETS, publicKeyAt)
    assert.deepEqual(decoded.payments, [{ address: SINK, amount: 1_000_000n, tag: '0' }])
    assert.deepEqual(
      [decoded.fee_max, decoded.fee_rate, decoded.nonce, decoded.valid_until, decoded.consumes],
      [12n, '12', 7n, 100, [`${decoded.from[0]}:7`]],
    )
    const other = family.decode(XRP, build({ validUntil: 500, tag: '9' }), ASSETS, publicKeyAt)
    assert.ok(exclusive(local, decoded, other))
    assert.ok(
      !exclusive(local, decoded, family.decode(XRP, build({ sequence: 8n }), ASSETS, publicKeyAt)),
    )
  })

  test('refuses a payment that lacks a field, with our own message', () => {
    const unsigned = build()
    const full = decodeBlob(unsigned.bytes.toUpperCase()) as unknown as Record<string, unknown>
    for (const name of Object.keys(full)) {
      if (name === 'Flags') continue
      const { [name]: _, ...rest } = full
      const bytes = encodeBlob(rest as never).toLowerCase()
      assert.throws(
        () => family.decode(XRP, { ...unsigned, bytes }, ASSETS, publicKeyAt),
        ChainError,
        name,
      )
    }
  })

  test('refuses a signature with high s, a signature of another key, and a damaged one', () => {
    const unsigned = build()
    const [item] = family.signing(XRP, unsigned, publicKeyAt)
    const [good] = sign([item!])
    const s =
      secp256k1.Point.Fn.ORDER -
      BigInt(`0x${Buffer.from(good!.signature.subarray(32)).toString('hex')}`)
    const high = {
      ...good!,
      signature: Buffer.concat([
        good!.signature.subarray(0, 32),
        Buffer.from(s.toString(16).padStart(64, '0'), 'hex'),
      ]),
    }
    for (const bad of [
      [high],
      [],
      [good!, good!],
      [{ ...good!, signature: good!.signature.subarray(1) }],
    ])
      refuses(() => family.assemble(XRP, unsigned, bad, publicKeyAt), 'SIGNATURE')
  })

  test('property: a transaction decodes to its input, and a changed byte never keeps its meaning', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 1n, max: 10n ** 17n }),
        fc.option(fc.integer({ min: 0, max: 0xffff_ffff })),
        fc.integer({ min: 1, max: 0xffff_ffff }),
        fc.nat(),
        fc.integer({ min: 1, max: 255 }),
        (amount, tag, sequence, where, flip) => {
          const unsigned = build({
            amount,
            tag: tag === null ? null : String(tag),
            sequence: BigInt(sequence),
          })
          const decoded = family.decode(XRP, unsigned, ASSETS, publicKeyAt)
          assert.deepEqual(decoded.payments[0], {
            address: SINK,
            amount,
            tag: tag === null ? null : String(tag),
          })
          const bytes = Buffer.from(unsigned.bytes, 'hex')
          // tfFullyCanonicalSig, the topmost bit of the flags, is the only optional flag: it does
          // not affect the payment.
          fc.pre(
            !(
              where % bytes.length === bytes.indexOf(Buffer.from('2200000000', 'hex')) + 1 &&
              flip === 0x80
            ),
          )
          bytes[where % bytes.length]! ^= flip
          try {
            assert.notDeepEqual(
              family.decode(
                XRP,
                { ...unsigned, bytes: bytes.toString('hex') },
                ASSETS,
                publicKeyAt,
              ),
              decoded,
            )
          } catch (error) {
            assert.equal((error as Error).name, 'ChainError', String(error))
          }
        },
      ),
      { numRuns: 200 },
    )
  })
})

describe('XRP client', () => {
  const answering = (answers: Record<string, unknown>): XrpClient => {
    const fetch: Fetch = async (_url, init) => {
      const { method } = JSON.parse(String(init.body)) as { method: string }
      return new Response(
        JSON.stringify({ result: answers[method] ?? { status: 'error', error: 'unknownCmd' } }),
      )
    }
    return new XrpClient(XRP, { url: 'http://127.0.0.1:1' }, fetch)
  }
  const info = {
    info: {
      network_id: 1000,
      validated_ledger: { hash: 'A', seq: 200, reserve_base_xrp: 1, reserve_inc_xrp: 0.2 },
    },
    status: 'success',
  }

  test('counts delivered_amount, never Amount, and ignores failures and tokens', async () => {
    const payment = (meta: Record<string, unknown>, more = {}) => ({
      hash: 'H',
      TransactionType: 'Payment',
      Account: 'rA',
      Destination: 'rB',
      Amount: '1000000000',
      ...more,
      metaData: { TransactionResult: 'tesSUCCESS', ...meta },
    })
    const client = answering({
      ledger: {
        status: 'success',
        validated: true,
        ledger_hash: 'L',
        ledger_index: 9,
        ledger: {
          parent_hash: 'P',
          transactions: [
            payment({ delivered_amount: '7' }, { DestinationTag: 0 }),
            payment({ delivered_amount: 'unavailable' }),
            payment({ delivered_amount: { currency: 'USD', issuer: 'rX', value: '9' } }),
            payment({ delivered_amount: '5', TransactionResult: 'tecPATH_PARTIAL' }),
            payment({}),
            payment({ delivered_amount: '5' }, { TransactionType: 'CheckCash' }),
            payment(
              { delivered_amount: '8' },
              { TransactionType: 'AccountDelete', Amount: undefined, DestinationTag: 3 },
            ),
          ],
        },
      },
    })
    assert.deepEqual(
      (await client.block(9))?.transfers.map(({ amount, tag }) => [amount, tag]),
      [
        [7n, '0'],
        [8n, '3'],
      ],
    )
  })

  test('a transaction is expired only past its expiry and if every ledger was searched', async () => {
    const absent = (searched: boolean | undefined) => ({
      server_info: info,
      tx: {
        status: 'error',
        error: 'txnNotFound',
        ...(searched === undefined ? {} : { searched_all: searched }),
      },
    })
    assert.equal(await answering(absent(true)).isDead('H', 199), true)
    assert.equal(await answering(absent(true)).isDead('H', 200), false)
    assert.equal(await answering(absent(false)).isDead('H', 100), false)
    assert.equal(await answering(absent(undefined)).isDead('H', 100), false)
    await assert.rejects(
      answering({ server_info: info, tx: { status: 'error', error: 'lgrNotFound' } }).isDead(
        'H',
        100,
      ),
    )
  })

  test('finds the same payment under another signature in the account’s history', async () => {
    const unsigned = build({ validUntil: 150 })
    const [item] = family.signing(XRP, unsigned, publicKeyAt)
    const twin = family.assemble(XRP, unsigned, sign([item!]), publicKeyAt)
    const [otherItem] = family.signing(XRP, build({ validUntil: 150, amount: 5n }), publicKeyAt)
    const other = family.assemble(
      XRP,
      build({ validUntil: 150, amount: 5n }),
      sign([otherItem!]),
      publicKeyAt,
    )
    const entry = (raw: string) => ({
      tx_blob: raw.toUpperCase(),
      meta: '',
      ledger_index: 140,
      validated: true,
    })
    const read = (transactions: unknown[], more = {}) =>
      answering({
        account_tx: {
          status: 'success',
          validated: true,
          ledger_index_min: 1,
          ledger_index_max: 150,
          transactions,
          ...more,
        },
      }).findSigned('rA', unsigned.bytes, 150)
    assert.deepEqual(await read([entry(other.raw), entry(twin.raw)]), {
      hash: twin.hash,
      raw: twin.raw,
    })
    assert.equal(await read([entry(other.raw)]), null)
    assert.equal(await read([]), null)
    for (const gap of [
      { ledger_index_min: 149 },
      { ledger_index_max: 149 },
      { validated: false },
      { transactions: undefined },
    ])
      await assert.rejects(read([], gap), RpcUnavailable)
  })

  test('refuses a server of another network, and reads its reserves', async () => {
    await answering({ server_info: info }).probe()
    await assert.rejects(
      answering({ server_info: { ...info, info: { ...info.info, network_id: 1 } } }).probe(),
      /network id 1/,
    )
    const client = answering({
      server_info: info,
      account_info: {
        status: 'success',
        account_data: { Balance: '5000000', Sequence: 3, OwnerCount: 2, Flags: 0x0002_0000 },
      },
    })
    assert.deepEqual(await client.account('rA'), {
      balance: 5_000_000n,
      sequence: 3n,
      reserve: 1_400_000n,
      requiresTag: true,
      closed: false,
    })
  })

  test('classifies the responses to a broadcast', async () => {
    for (const [result, kind] of [
      ['tesSUCCESS', 'accepted'],
      ['terQUEUED', 'accepted'],
      ['terPRE_SEQ', 'accepted'],
      ['tefALREADY', 'accepted'],
      ['tecUNFUNDED_PAYMENT', 'accepted'],
      ['tefMAX_LEDGER', 'rejected'],
      ['tefPAST_SEQ', 'rejected'],
      ['telINSUF_FEE_P', 'rejected'],
    ]) {
      assert.equal(
        (
          await answering({
            submit: { status: 'success', engine_result: result, engine_result_message: '' },
          }).broadcast('00')
        ).kind,
        kind,
        result,
      )
    }
  })
})
