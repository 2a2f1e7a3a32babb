import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { ed25519 } from '@noble/curves/ed25519.js'
import {
  Account,
  Keypair,
  MuxedAccount,
  StrKey,
  TransactionBuilder,
  type Transaction,
} from '@stellar/stellar-sdk'
import { xdr } from '@stellar/stellar-base'
import * as fc from '../../../../testing/property.ts'
import {
  exclusive,
  familyOf,
  loadRegistry,
  stellar,
  StellarClient,
  type Asset,
  type Fetch,
  type Network,
  type PublicKeyAt,
} from '../index.ts'
import type { Unreadable } from '../index.ts'
import { paymentUri as stellarUri } from './payment-uri.ts'
import { refuses } from '../../testing/support.ts'

const local = loadRegistry('local')
const XLM = local.network('XLM') as Network
const MAIN = loadRegistry('mainnet').network('XLM') as Network
const ASSETS: readonly Asset[] = local.assetsOf('XLM')
const family = familyOf(XLM)
const SECRET = createHash('sha256').update('tests of Stellar').digest()
const PUBLIC = ed25519.getPublicKey(SECRET)
const publicKeyAt: PublicKeyAt = () => PUBLIC
const PATH = [1, XLM.chain_index, 0]
const SINK = Keypair.fromRawEd25519Seed(createHash('sha256').update('sink').digest()).publicKey()
const END = 1_900_000_000
const build = (o: Partial<Parameters<typeof stellar.buildPayment>[1]> = {}) =>
  stellar.buildPayment(XLM, {
    to: SINK,
    tag: null,
    amount: 15n,
    fee: 100n,
    sequence: 9n,
    validUntil: END,
    create: false,
    publicKey: PUBLIC,
    path: PATH,
    ...o,
  })
const validate = (address: string, tag?: string | null) => family.validate(MAIN, address, tag)
const read = (unsigned: { bytes: string }, network: Network) =>
  TransactionBuilder.fromXDR(
    Buffer.from(unsigned.bytes, 'hex').toString('base64'),
    network.passphrase as string,
  ) as Transaction
/** Returns the SDK's own JSON of a memo. */
const memoOf = (transaction: Transaction) =>
  (JSON.parse(JSON.stringify(transaction.toEnvelope())) as { tx: { tx: { memo: unknown } } }).tx.tx
    .memo

describe('Stellar addresses', () => {
  // SEP-23, test cases of the standard.
  const G = 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ'
  test('SEP-23: accepts valid addresses', () => {
    assert.equal(
      family.address(
        XLM,
        Buffer.from('3f0c34bf93ad0d9971d04ccc90f705511c838aad9734a4a2fb0d7a03fc7fe89a', 'hex'),
      ),
      G,
    )
    assert.deepEqual(validate(G), { valid: true, address: G, address_tag: null })
    for (const [text, id] of [
      ['MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAAAAAAAACJUQ', '0'],
      [
        'MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVAAAAAAAAAAAAAJLK',
        '9223372036854775808',
      ],
    ] as const) {
      assert.deepEqual(stellar.splitMuxed(text), { account: G, id })
      assert.deepEqual(validate(text), { valid: true, address: text, address_tag: null })
      assert.equal(validate(text, id).valid, true, 'the same id beside it')
      assert.equal(validate(text, '1').valid, false)
    }
  })

  test('SEP-23: refuses invalid addresses', () => {
    for (const bad of [
      'GAAAAAAAACGC6',
      'MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAAAAAAAACJUR',
      'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZA',
      'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUACUSI',
      'G47QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVP2I',
      'MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVAAAAAAAAAAAAAJLKA',
      'MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVAAAAAAAAAAAAAAV75I',
      'M47QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAAAAAAAACJUQ',
      'MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAAAAAAAACJUK===',
      'MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAAAAAAAACJUO',
      '',
      'G',
      G.toLowerCase(),
      `${G.slice(0, -1)}A`,
    ])
      assert.equal(validate(bad).valid, false, bad)
    const secret = Keypair.random().secret()
    assert.match((validate(secret) as { reason: string }).reason, /secret key/)
    assert.match(
      (validate(StrKey.encodeContract(Buffer.alloc(32))) as { reason: string }).reason,
      /contract/,
    )
  })

  test('a memo of digits is an id, and a prefix states another type', () => {
    const cases: [string, string | null][] = [
      ['0', '0'],
      ['18446744073709551615', '18446744073709551615'],
      ['rent', 'rent'],
      ['x'.repeat(28), 'x'.repeat(28)],
      ['é'.repeat(14), 'é'.repeat(14)],
      ['-1', '-1'],
      ['1.5', '1.5'],
      ['id:7', '7'],
      ['text:7', 'text:7'],
      ['text:rent', 'rent'],
      ['text:id:7', 'text:id:7'],
      [`hash:${'AB'.repeat(32)}`, `hash:${'ab'.repeat(32)}`],
      [`return:${'01'.repeat(32)}`, `return:${'01'.repeat(32)}`],
      ['', null],
      ['x'.repeat(29), null],
      ['é'.repeat(15), null],
      ['18446744073709551616', null],
      ['007', null],
      ['id:x', null],
      ['hash:ab', null],
      [`hash:${'zz'.repeat(32)}`, null],
      ['text:', null],
      ['\ud800', null],
    ]
    for (const [input, canonical] of cases) {
      const result = validate(G, input)
      assert.deepEqual(result.valid ? result.address_tag : null, canonical, input)
      if (canonical !== null)
        assert.deepEqual(validate(G, canonical), result, 'the canonical spelling means itself')
    }
  })
})

describe('Stellar transactions', () => {
  test('the SDK decodes the built transaction with the same hash and a valid signature', () => {
    for (const network of [XLM, MAIN]) {
      for (const [tag, memo] of [
        [null, 'none'],
        ['0', { id: '0' }],
        ['rent', { text: 'rent' }],
        [`hash:${'ab'.repeat(32)}`, { hash: 'ab'.repeat(32) }],
        [`return:${'cd'.repeat(32)}`, { return: 'cd'.repeat(32) }],
      ] as const) {
        for (const create of [false, true]) {
          const unsigned = build({ tag, create })
          const [item] = family.signing(network, unsigned, publicKeyAt)
          assert.ok(item)
          const transaction = read(unsigned, network)
          assert.equal(
            Buffer.from(transaction.hash()).toString('hex'),
            Buffer.from(item.message).toString('hex'),
          )
          assert.deepEqual(memoOf(transaction), memo)
          assert.equal(transaction.operations[0]?.type, create ? 'createAccount' : 'payment')
          const signed = family.assemble(
            network,
            unsigned,
            [{ signature: ed25519.sign(item.message, SECRET), recoveryId: null }],
            publicKeyAt,
          )
          const full = read({ bytes: signed.raw }, network)
          assert.equal(full.signatures.length, 1)
          const decoded = family.decode(network, unsigned, ASSETS, publicKeyAt)
          assert.deepEqual(decoded.payments, [{ address: SINK, amount: 15n, tag }])
        }
      }
    }
    const [here, there] = [XLM, MAIN].map((network) =>
      Buffer.from(family.signing(network, build(), publicKeyAt)[0]!.message).toString('hex'),
    )
    assert.notEqual(here, there, 'the hash commits to the passphrase')
  })

  test('pays an M-address unchanged, and refuses to create an account for it', () => {
    const muxed = new MuxedAccount(new Account(SINK, '0'), '42').accountId()
    assert.deepEqual(family.decode(XLM, build({ to: muxed }), ASSETS, publicKeyAt).payments, [
      { address: muxed, amount: 15n, tag: null },
    ])
    refuses(() => build({ to: muxed, create: true }), 'SHAPE')
  })

  test('refuses a payment of an account to itself, also through an M-address', () => {
    const own = family.address(XLM, PUBLIC)
    for (const to of [own, new MuxedAccount(new Account(own, '0'), '3').accountId()])
      refuses(() => family.decode(XLM, build({ to }), ASSETS, publicKeyAt), 'SHAPE')
  })

  test('writes payment URIs of SEP-7', () => {
    assert.equal(stellarUri({ address: SINK }), `web+stellar:pay?destination=${SINK}`)
    assert.equal(
      stellarUri({ address: SINK, amount: '1.5', tag: '0' }),
      `web+stellar:pay?destination=${SINK}&amount=1.5&memo=0&memo_type=MEMO_ID`,
    )
    assert.equal(
      stellarUri({ address: SINK, tag: 'a b' }),
      `web+stellar:pay?destination=${SINK}&memo=a%20b&memo_type=MEMO_TEXT`,
    )
    assert.match(
      stellarUri({ address: SINK, tag: `hash:${'ff'.repeat(32)}` }),
      /memo=%2F%2F.*&memo_type=MEMO_HASH$/,
    )
  })

  test('transactions with the same sequence exclude each other; returns expiry and fee', () => {
    const decoded = family.decode(XLM, build(), ASSETS, publicKeyAt)
    assert.deepEqual(
      [decoded.fee_max, decoded.nonce, decoded.valid_until, decoded.consumes],
      [100n, 9n, END, [`${decoded.from[0]}:9`]],
    )
    assert.ok(
      exclusive(
        local,
        decoded,
        family.decode(XLM, build({ validUntil: END + 1, create: true }), ASSETS, publicKeyAt),
      ),
    )
    assert.ok(
      !exclusive(local, decoded, family.decode(XLM, build({ sequence: 10n }), ASSETS, publicKeyAt)),
    )
  })

  test('refuses signatures of another key or network, with a recovery id, and a second one', () => {
    const unsigned = build()
    const [item] = family.signing(XLM, unsigned, publicKeyAt)
    const [elsewhere] = family.signing(MAIN, unsigned, publicKeyAt)
    const good = { signature: ed25519.sign(item!.message, SECRET), recoveryId: null }
    for (const bad of [
      [],
      [good, good],
      [{ ...good, recoveryId: 0 }],
      [{ ...good, signature: ed25519.sign(elsewhere!.message, SECRET) }],
      [{ ...good, signature: ed25519.sign(item!.message, Buffer.alloc(32, 1)) }],
    ])
      refuses(() => family.assemble(XLM, unsigned, bad, publicKeyAt), 'SIGNATURE')
  })

  test('property: a transaction decodes to its input, and a changed byte never keeps its meaning', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }),
        fc.option(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })),
        fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }),
        fc.boolean(),
        fc.nat(),
        fc.integer({ min: 1, max: 255 }),
        (amount, id, sequence, create, where, flip) => {
          const tag = id === null ? null : id.toString()
          const unsigned = build({ amount, tag, sequence, create })
          const decoded = family.decode(XLM, unsigned, ASSETS, publicKeyAt)
          assert.deepEqual(decoded.payments[0], { address: SINK, amount, tag })
          const bytes = Buffer.from(unsigned.bytes, 'hex')
          bytes[where % bytes.length]! ^= flip
          const changed = { ...unsigned, bytes: bytes.toString('hex') }
          try {
            const other = family.decode(XLM, changed, ASSETS, publicKeyAt)
            // For the receiver, a payment and the creation of an account are the same.
            if (bytes.length === Buffer.from(unsigned.bytes, 'hex').length)
              assert.ok(
                changed.bytes !== unsigned.bytes &&
                  (JSON.stringify(other.payments, text) !==
                    JSON.stringify(decoded.payments, text) ||
                    other.consumes[0] !== decoded.consumes[0] ||
                    other.fee_max !== decoded.fee_max ||
                    other.valid_until !== decoded.valid_until),
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

const text = (_key: string, value: unknown) =>
  typeof value === 'bigint' ? value.toString() : value

describe('Stellar client', () => {
  const answering = (
    answers: Record<string, unknown>,
    o: { now?: () => number; report?: (problem: Unreadable) => void } = {},
  ): StellarClient => {
    const fetch: Fetch = async (_url, init) => {
      const { method } = JSON.parse(String(init.body)) as { method: string }
      const answer = answers[method]
      return new Response(
        JSON.stringify(
          answer === undefined
            ? { error: { code: -32601, message: 'method not found' } }
            : { result: answer },
        ),
      )
    }
    return new StellarClient(XLM, { url: 'http://127.0.0.1:1' }, fetch, o.now, o.report)
  }
  const envelope = (unsigned: { bytes: string }) =>
    Buffer.from(unsigned.bytes, 'hex').toString('base64')
  const header = Buffer.concat([
    Buffer.alloc(32, 1),
    Buffer.alloc(4),
    Buffer.alloc(32, 2),
  ]).toString('base64')
  const success = new xdr.TransactionResult({
    feeCharged: xdr.Int64.fromString('100'),
    ext: new xdr.TransactionResultExt(0),
    result: xdr.TransactionResultResult.txSuccess([
      xdr.OperationResult.opInner(
        xdr.OperationResultTr.payment(xdr.PaymentResult.paymentSuccess()),
      ),
    ]),
  }).toXDR('base64')

  test('returns payments of successful transactions, page by page, with memo or muxed id', async () => {
    const muxed = new MuxedAccount(new Account(SINK, '0'), '42').accountId()
    const shown = (unsigned: { bytes: string }, more = {}) => ({
      status: 'SUCCESS',
      txHash: 'h',
      ledger: 9,
      envelopeXdr: envelope(unsigned),
      resultXdr: success,
      ...more,
    })
    const client = answering({
      getLedgers: { ledgers: [{ sequence: 9, hash: 'L', headerXdr: header }] },
      getTransactions: {
        transactions: [
          shown(build({ tag: '0' })),
          shown(build({ to: muxed })),
          shown(build(), { status: 'FAILED' }),
          shown(build({ create: true, tag: 'rent' })),
          shown(build(), { ledger: 10 }),
        ],
        cursor: '1',
      },
    })
    const block = await client.block(9)
    assert.deepEqual(
      block?.transfers.map(({ address, amount, tag }) => [address, amount, tag]),
      [
        [SINK, 15n, '0'],
        [SINK, 15n, '42'],
        [SINK, 15n, 'rent'],
      ],
    )
    assert.equal(block?.parent, '02'.repeat(32))
    assert.equal(block?.txids.length, 4)
  })

  // Layouts by CAP-34 (arm 1), CAP-83 (arm 2) and CAP-88 (arms 3 and 4); 9 belongs to a future
  // protocol.
  const uint32 = (value: number) => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(value)
    return bytes
  }
  const signature = Buffer.concat([
    uint32(0),
    Buffer.alloc(32, 7),
    uint32(5),
    Buffer.alloc(5, 8),
    Buffer.alloc(3),
  ])
  const proposal = Buffer.concat([Buffer.alloc(64, 6), uint32(30), signature])
  const milliseconds = Buffer.alloc(8, 3)
  const ARMS: Record<number, Uint8Array> = {
    0: Buffer.alloc(0),
    1: signature,
    2: proposal,
    3: Buffer.concat([milliseconds, signature]),
    4: Buffer.concat([milliseconds, proposal]),
    9: Buffer.alloc(72, 9),
  }
  const headerOf = (
    arm: number,
    { reserve = 5_000_000, results = Buffer.alloc(32, 4), sequence = 9 } = {},
  ) =>
    Buffer.concat([
      Buffer.alloc(32, 1),
      uint32(30),
      Buffer.alloc(32, 2),
      Buffer.alloc(32),
      Buffer.alloc(8),
      uint32(2),
      uint32(5),
      Buffer.alloc(8),
      uint32(4),
      Buffer.alloc(4),
      uint32(arm),
      ARMS[arm] as Uint8Array,
      results,
      Buffer.alloc(32),
      uint32(sequence),
      Buffer.alloc(8, 1),
      Buffer.alloc(8, 1),
      uint32(0),
      Buffer.alloc(8),
      uint32(100),
      uint32(reserve),
      uint32(1000),
      Buffer.alloc(128),
      uint32(0),
      uint32(0),
    ]).toString('base64')
  const entryOf = (extension: Uint8Array) =>
    Buffer.concat([
      uint32(0),
      uint32(0),
      Uint8Array.from(StrKey.decodeEd25519PublicKey(SINK)),
      Buffer.from('00000000000f4240', 'hex'),
      Buffer.from('0000000000000008', 'hex'),
      uint32(3),
      uint32(0),
      uint32(0),
      uint32(0),
      uint32(0),
      uint32(1),
      uint32(3),
      Buffer.alloc(32),
      uint32(2),
      Buffer.alloc(4),
      uint32(1),
      extension,
    ]).toString('base64')
  const keyOf = (account: string) =>
    xdr.LedgerKey.account(
      new xdr.LedgerKeyAccount({
        accountId: xdr.PublicKey.publicKeyTypeEd25519(
          Buffer.from(StrKey.decodeEd25519PublicKey(account)),
        ),
      }),
    ).toXDR('base64')
  const heading = (headerXdr: unknown) => ({
    getLatestLedger: { id: 'L', sequence: 9 },
    getLedgers: { ledgers: [{ sequence: 9, hash: 'L', ledgerCloseTime: '1', headerXdr }] },
  })

  test('the fixtures of ledger headers and accounts equal the encoding of the library', () => {
    for (const arm of [0, 1])
      assert.equal(
        xdr.LedgerHeaderHistoryEntry.fromXDR(headerOf(arm, { reserve: 1234 }), 'base64')
          .header()
          .baseReserve(),
        1234,
      )
    const account = xdr.LedgerEntryData.fromXDR(entryOf(uint32(0)), 'base64').account()
    assert.deepEqual(
      [account.balance().toString(), account.seqNum().toString(), account.numSubEntries()],
      ['1000000', '8', 3],
    )
  })

  test('reads the base reserve from every known version of the ledger header', async () => {
    for (const arm of [0, 1, 2, 3, 4]) {
      const reports: Unreadable[] = []
      const client = answering(
        {
          ...heading(headerOf(arm, { reserve: 7_000_000 })),
          getLedgerEntries: { entries: [{ key: keyOf(SINK), xdr: entryOf(uint32(0)) }] },
        },
        {
          report: (each) => {
            reports.push(each)
          },
        },
      )
      assert.equal(await client.activation(), 14_000_000n, `arm ${arm}`)
      assert.deepEqual(await client.account(SINK), {
        balance: 1_000_000n,
        sequence: 9n,
        reserve: 5n * 7_000_000n,
        requiresTag: false,
        closed: false,
      })
      assert.deepEqual(reports, [])
    }
  })

  test('for an unreadable header, uses the last base reserve or 5,000,000 stroops and reports it', async () => {
    const unread: [string, unknown][] = [
      ['an arm to come', headerOf(9)],
      ['a field more before it', headerOf(0, { sequence: 10 })],
      ['cut short', headerOf(3).slice(0, 160)],
      [
        'seven upgrades',
        Buffer.concat([Buffer.alloc(108), uint32(7), Buffer.alloc(400)]).toString('base64'),
      ],
      ['empty', ''],
      ['missing', undefined],
      ['a number', 7],
    ]
    for (const [what, headerXdr] of unread) {
      const reports: Unreadable[] = []
      const client = answering(heading(headerXdr), {
        report: (each) => {
          reports.push(each)
        },
      })
      assert.equal(await client.activation(), 10_000_000n, what)
      assert.deepEqual(
        reports.map(({ network, kind, name }) => [network, kind, name]),
        [['XLM', 'field', 'LedgerHeader.baseReserve']],
        what,
      )
    }
    let now = 0
    const answers = heading(headerOf(3, { reserve: 6_000_000 }))
    const client = answering(answers, { now: () => now })
    assert.equal(await client.activation(), 12_000_000n)
    Object.assign(answers, heading(headerOf(9)))
    now += 120_000
    assert.equal(await client.activation(), 12_000_000n, 'the last known value')
  })

  test('reads balance and sequence of an account with an extension of a future protocol', async () => {
    const liabilities = Buffer.alloc(16)
    const cases: [Uint8Array, bigint, number][] = [
      [uint32(0), 5n, 0],
      [Buffer.concat([uint32(1), liabilities, uint32(0)]), 5n, 0],
      [
        Buffer.concat([
          uint32(1),
          liabilities,
          uint32(2),
          uint32(2),
          uint32(1),
          uint32(0),
          uint32(0),
        ]),
        4n,
        0,
      ],
      [Buffer.concat([uint32(1), liabilities, uint32(5), Buffer.alloc(16)]), 5n, 1],
      [uint32(9), 5n, 1],
    ]
    for (const [extension, entries, reported] of cases) {
      const reports: Unreadable[] = []
      const client = answering(
        {
          ...heading(headerOf(4)),
          getLedgerEntries: { entries: [{ key: keyOf(SINK), xdr: entryOf(extension) }] },
        },
        {
          report: (each) => {
            reports.push(each)
          },
        },
      )
      assert.deepEqual(await client.account(SINK), {
        balance: 1_000_000n,
        sequence: 9n,
        reserve: entries * 5_000_000n,
        requiresTag: false,
        closed: false,
      })
      assert.deepEqual(
        reports.map(({ name }) => name),
        reported === 0 ? [] : ['AccountEntry.ext'],
      )
    }
    const broken = answering({
      ...heading(headerOf(4)),
      getLedgerEntries: { entries: [{ key: keyOf(SINK), xdr: 'AAAA' }] },
    })
    await assert.rejects(broken.account(SINK), {
      code: 'RPC_UNAVAILABLE',
      message: /getLedgerEntries returned a xdr that cannot be read/,
    })
  })

  test('detects that transactions of a ledger of a later protocol are missing', async () => {
    for (const arm of [2, 3, 4]) {
      const client = answering({
        ...heading(headerOf(arm)),
        getTransactions: { transactions: [], latestLedger: 9 },
      })
      await assert.rejects(
        client.block(9),
        /getTransactions returned ledger 9 without its transactions/,
      )
    }
  })

  test('reports a transaction that cannot be decoded, and reads the others', async () => {
    const reports: Unreadable[] = []
    const shown = (txHash: string, more: object = {}) => ({
      status: 'SUCCESS',
      txHash,
      ledger: 9,
      envelopeXdr: envelope(build({ tag: '5' })),
      resultXdr: success,
      ...more,
    })
    const odd = [
      ['type', uint32(99).toString('base64')],
      ['short', 'AAAAAg=='],
      ['null', null],
    ] as const
    const client = answering(
      {
        ...heading(headerOf(3)),
        getTransactions: {
          transactions: [
            shown('a'),
            ...odd.map(([txHash, envelopeXdr]) => shown(txHash, { envelopeXdr })),
            shown('results', { resultXdr: success.slice(0, 16) }),
            shown('b'),
          ],
          latestLedger: 9,
        },
      },
      {
        report: (each) => {
          reports.push(each)
        },
      },
    )
    const block = await client.block(9)
    assert.deepEqual(
      block?.transfers.map(({ txid, tag }) => [txid, tag]),
      [
        ['a', '5'],
        ['b', '5'],
      ],
    )
    assert.deepEqual(
      reports.map(({ kind, name }) => [kind, name]),
      [
        ['transaction', 'type'],
        ['transaction', 'short'],
        ['transaction', 'null'],
        ['transaction', 'results'],
      ],
    )
    assert.equal(block?.txids.length, 6)
  })

  test('reads the fee of a transfer even if its result code is unknown', async () => {
    const resultXdr = Buffer.concat([
      Buffer.from('0000000000000064', 'hex'),
      uint32(0xffff_ff00),
      uint32(0),
    ]).toString('base64')
    const client = answering({
      ...heading(headerOf(3)),
      getTransaction: { status: 'FAILED', ledger: 9, resultXdr },
      sendTransaction: { status: 'ERROR', errorResultXdr: resultXdr },
    })
    assert.deepEqual(await client.status('h'), {
      state: 'included',
      height: 9,
      blockHash: 'L',
      succeeded: false,
      fee: 100n,
    })
    assert.deepEqual(await client.broadcast('00'), { kind: 'rejected', reason: 'ERROR' })
  })

  test('a transaction is expired only if the endpoint stores its whole lifetime', async () => {
    const clientFor = (status: string, latest: number, oldest: number) =>
      answering({
        getTransaction: {
          status,
          latestLedgerCloseTime: String(latest),
          oldestLedgerCloseTime: String(oldest),
        },
      })
    assert.equal(await clientFor('NOT_FOUND', 2001, 100).isDead('h', 2000), true)
    assert.equal(await clientFor('NOT_FOUND', 2000, 100).isDead('h', 2000), false)
    assert.equal(
      await clientFor('NOT_FOUND', 9000, 1900).isDead('h', 2000),
      false,
      'it may have been forgotten',
    )
    assert.equal(await clientFor('SUCCESS', 9000, 100).isDead('h', 2000), false)
  })

  test('refuses another network, and classifies the responses to a broadcast', async () => {
    await answering({ getNetwork: { passphrase: XLM.passphrase } }).probe()
    await assert.rejects(
      answering({ getNetwork: { passphrase: MAIN.passphrase } }).probe(),
      /serves the network/,
    )
    for (const [status, kind] of [
      ['PENDING', 'accepted'],
      ['DUPLICATE', 'accepted'],
      ['TRY_AGAIN_LATER', 'unknown'],
      ['ERROR', 'rejected'],
    ])
      assert.equal((await answering({ sendTransaction: { status } }).broadcast('00')).kind, kind)
  })
})
