import {
  addressAt,
  publicKeysBelow,
  stellar,
  type Network,
  type UnsignedTransaction,
} from '@custody/chains'
import {
  Account,
  Asset,
  Keypair,
  Memo,
  MuxedAccount,
  Operation,
  TransactionBuilder,
  xdr,
} from '@stellar/stellar-base'
import { ed25519 } from '@noble/curves/ed25519.js'
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  SignerCluster,
  now,
  pay,
  registry,
  transfer,
  type Answer,
  type Caller,
} from '../../testing/signer-cluster.ts'

/**
 * Stellar: a hostile platform requests another payment than the caller signed; both nodes refuse
 * it.
 */
const XLM = registry.network('XLM') as Network
const SINK = Keypair.random().publicKey()
const OTHER = Keypair.random().publicKey()
const WORKSPACE = 'stellar'
let cluster: SignerCluster
let key: { publicKey: Uint8Array; chainCode: Uint8Array }
let at: (path: readonly number[]) => Uint8Array
let next = 1

before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
  const { status, body } = await cluster.key(1, WORKSPACE, 'ed25519')
  assert.equal(status, 200, JSON.stringify(body))
  key = {
    publicKey: new Uint8Array(Buffer.from(body.public_key, 'hex')),
    chainCode: new Uint8Array(Buffer.from(body.chain_code, 'hex')),
  }
  at = publicKeysBelow({ curve: 'ed25519', ...key })
})
after(async () => {
  await cluster.stop()
})

function refused(answer: Answer, code: string, rule: number): void {
  assert.equal(answer.body?.error, code, JSON.stringify(answer.body))
  assert.equal(answer.body.rule, rule)
}
const sign = (
  purpose: unknown,
  unsigned: UnsignedTransaction,
  pair: readonly [number, number] = [1, 2],
) => cluster.post(pair[0], '/sign', { workspace: WORKSPACE, purpose, unsigned, partner: pair[1] })
async function fresh(): Promise<{ caller: Caller; path: number[] }> {
  const api_key = crypto.randomUUID()
  const sub_account = next++
  for (const node of [1, 2, 3])
    await cluster.enrol(node, { api_key, workspace: WORKSPACE, sub_account })
  return { caller: { api_key, sub_account }, path: [sub_account, XLM.chain_index, 0] }
}
const wants = (caller: Caller, more: Record<string, unknown> = {}) =>
  transfer(caller, { asset: 'XLM', amount: '2.5', destination_address: SINK, ...more })
const built = (
  path: number[],
  o: Partial<Parameters<typeof stellar.buildPayment>[1]> = {},
): UnsignedTransaction =>
  stellar.buildPayment(XLM, {
    to: SINK,
    tag: null,
    amount: 25_000_000n,
    fee: 100n,
    sequence: 777n << 32n,
    validUntil: now() + 300,
    create: false,
    path,
    publicKey: at(path),
    ...o,
  })
/** Builds any transaction that an attacker may choose, with the published library. */
function raw(
  path: number[],
  operations: xdr.Operation[],
  o: {
    sequence?: string
    edit?: (builder: TransactionBuilder) => void
    source?: string
    bounds?: { minTime: number; maxTime: number } | null
  } = {},
): UnsignedTransaction {
  const source = new Account(o.source ?? addressAt(XLM, key, path), String((777n << 32n) - 1n))
  const builder = new TransactionBuilder(source, {
    fee: '100',
    networkPassphrase: XLM.passphrase as string,
    ...(o.bounds === null ? {} : { timebounds: o.bounds ?? { minTime: 0, maxTime: now() + 300 } }),
  })
  if (o.bounds === null) builder.setTimeout(0)
  for (const operation of operations) builder.addOperation(operation)
  o.edit?.(builder)
  return { network: 'XLM', bytes: builder.build().toEnvelope().toXDR('hex'), inputs: [{ path }] }
}
const payment = (amount = '2.5', asset = Asset.native()) =>
  Operation.payment({ destination: SINK, asset, amount })

test('signs a payment, an account creation, every memo type and a muxed destination', async () => {
  const { caller, path } = await fresh()
  const muxed = new MuxedAccount(new Account(SINK, '0'), '7').accountId()
  const cases: [Record<string, unknown>, Partial<Parameters<typeof stellar.buildPayment>[1]>][] = [
    [{}, {}],
    [{}, { create: true }],
    [{ address_tag: '0' }, { tag: '0' }],
    [{ address_tag: 'rent' }, { tag: 'rent' }],
    [{ address_tag: `hash:${'AB'.repeat(32)}` }, { tag: `hash:${'ab'.repeat(32)}` }],
    [{ destination_address: muxed }, { to: muxed }],
  ]
  for (const [at_, [body, build]] of cases.entries()) {
    const unsigned = built(path, { ...build, sequence: (777n << 32n) + BigInt(at_) })
    const answer = await sign(
      pay(await wants(caller, body)),
      unsigned,
      (
        [
          [1, 2],
          [2, 3],
          [3, 1],
        ] as const
      )[at_ % 3],
    )
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
    // The published library computes the same hash and accepts the signature.
    const transaction = TransactionBuilder.fromXDR(
      Buffer.from(answer.body.signed.raw, 'hex').toString('base64'),
      XLM.passphrase as string,
    )
    assert.equal(transaction.hash().toString('hex'), answer.body.signed.hash)
    assert.ok(ed25519.verify(transaction.signatures[0]!.signature(), transaction.hash(), at(path)))
  }
})

test('destination, amount and memo must match exactly, and a missing memo is not 0', async () => {
  const { caller, path } = await fresh()
  const muxed = (id: string) => new MuxedAccount(new Account(SINK, '0'), id).accountId()
  refused(
    await sign(pay(await wants(caller)), built(path, { to: OTHER })),
    'DESTINATION_MISMATCH',
    7,
  )
  refused(
    await sign(pay(await wants(caller)), built(path, { to: OTHER, create: true })),
    'DESTINATION_MISMATCH',
    7,
  )
  refused(
    await sign(pay(await wants(caller)), built(path, { to: muxed('0') })),
    'DESTINATION_MISMATCH',
    7,
  )
  refused(
    await sign(
      pay(await wants(caller, { destination_address: muxed('7') })),
      built(path, { to: muxed('8') }),
    ),
    'DESTINATION_MISMATCH',
    7,
  )
  refused(
    await sign(pay(await wants(caller)), built(path, { amount: 25_000_001n })),
    'AMOUNT_MISMATCH',
    7,
  )
  refused(await sign(pay(await wants(caller)), built(path, { tag: '0' })), 'TAG_MISMATCH', 7)
  refused(
    await sign(pay(await wants(caller, { address_tag: '0' })), built(path)),
    'TAG_MISMATCH',
    7,
  )
  refused(
    await sign(pay(await wants(caller, { address_tag: '42' })), built(path, { tag: 'text:42' })),
    'TAG_MISMATCH',
    7,
  )
  refused(
    await sign(
      pay(await wants(caller, { address_tag: `hash:${'ab'.repeat(32)}` })),
      built(path, { tag: `return:${'ab'.repeat(32)}` }),
    ),
    'TAG_MISMATCH',
    7,
  )
})

test('a signature is valid only for the network whose passphrase it includes', async () => {
  const { caller, path } = await fresh()
  const answer = await sign(pay(await wants(caller)), built(path))
  const elsewhere = TransactionBuilder.fromXDR(
    Buffer.from(answer.body.signed.raw, 'hex').toString('base64'),
    'Public Global Stellar Network ; September 2015',
  )
  assert.ok(!ed25519.verify(elsewhere.signatures[0]!.signature(), elsewhere.hash(), at(path)))
})

test('refuses two operations, path payments, other operations, conditions and fee bumps', async () => {
  const { caller, path } = await fresh()
  const request = pay(await wants(caller))
  const usd = new Asset('USD', OTHER)
  for (const unsigned of [
    raw(path, [payment(), payment()]),
    raw(path, [payment('2.5', usd)]),
    raw(path, [
      Operation.pathPaymentStrictReceive({
        sendAsset: usd,
        sendMax: '9',
        destination: SINK,
        destAsset: Asset.native(),
        destAmount: '2.5',
        path: [],
      }),
    ]),
    raw(path, [
      Operation.pathPaymentStrictSend({
        sendAsset: Asset.native(),
        sendAmount: '2.5',
        destination: SINK,
        destAsset: Asset.native(),
        destMin: '0.1',
        path: [],
      }),
    ]),
    raw(path, [Operation.accountMerge({ destination: SINK })]),
    raw(path, [Operation.setOptions({ signer: { ed25519PublicKey: OTHER, weight: 1 } })]),
    raw(path, [
      Operation.payment({ destination: SINK, asset: Asset.native(), amount: '2.5', source: OTHER }),
    ]),
    raw(path, [payment()], { bounds: null }),
    raw(path, [payment()], { bounds: { minTime: now() + 5, maxTime: now() + 60 } }),
    raw(path, [payment()], { edit: (builder) => builder.setMinAccountSequence('5') }),
    raw(path, [payment()], { edit: (builder) => builder.setLedgerbounds(1, 500) }),
  ])
    refused(await sign(request, unsigned), 'SHAPE', 7)
  const inner = TransactionBuilder.fromXDR(
    Buffer.from(built(path).bytes, 'hex').toString('base64'),
    XLM.passphrase as string,
  ) as ReturnType<TransactionBuilder['build']>
  inner.sign(Keypair.random())
  refused(
    await sign(request, {
      network: 'XLM',
      bytes: inner.toEnvelope().toXDR('hex'),
      inputs: [{ path }],
    }),
    'SHAPE',
    7,
  )
  const bump = TransactionBuilder.buildFeeBumpTransaction(
    Keypair.random(),
    '200',
    inner,
    XLM.passphrase as string,
  )
  refused(
    await sign(request, {
      network: 'XLM',
      bytes: bump.toEnvelope().toXDR('hex'),
      inputs: [{ path }],
    }),
    'SHAPE',
    7,
  )
  refused(
    await sign(request, { ...built(path), bytes: `${built(path).bytes}00000000` }),
    'SHAPE',
    7,
  )
  refused(await sign(request, raw(path, [payment()], { source: OTHER })), 'FOREIGN_PATH', 8)
  refused(
    await sign(
      request,
      raw(path, [payment()], { edit: (builder) => builder.addMemo(Memo.text('x')) }),
    ),
    'TAG_MISMATCH',
    7,
  )
})

test('limits fees, expiries and sequences', async () => {
  const { caller, path } = await fresh()
  refused(
    await sign(pay(await wants(caller)), built(path, { fee: BigInt(XLM.fee_cap) + 1n })),
    'FEE_CAP',
    9,
  )
  refused(
    await sign(pay(await wants(caller, { fee_rate: 150 })), built(path, { fee: 151n })),
    'FEE_RATE',
    9,
  )
  refused(
    await sign(pay(await wants(caller)), built(path, { validUntil: now() + 7200 })),
    'EXPIRY',
    10,
  )
  const request = pay(await wants(caller))
  assert.equal((await sign(request, built(path, { sequence: 50n }))).status, 200)
  refused(await sign(request, built(path, { sequence: 51n })), 'NOT_EXCLUSIVE', 6)
  assert.equal(
    (await sign(request, built(path, { sequence: 50n, validUntil: now() + 400 }))).status,
    200,
    'the same sequence again',
  )
  refused(await sign(pay(await wants(caller)), built(path, { sequence: 52n })), 'NONCE_GAP', 10)
  assert.equal((await sign(pay(await wants(caller)), built(path, { sequence: 51n }))).status, 200)
})
