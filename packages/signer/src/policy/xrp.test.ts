import { xrp, type Network, type UnsignedTransaction } from '@custody/chains'
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { encode } from 'ripple-binary-codec'
import { classicAddressToXAddress } from 'ripple-address-codec'
import {
  SignerCluster,
  pay,
  registry,
  transfer,
  type Answer,
  type Caller,
  type Workspace,
} from '../../testing/signer-cluster.ts'

/**
 * XRP: a hostile platform requests another payment than the caller signed; both nodes refuse it.
 */
const XRP = registry.network('XRP') as Network
const SINK = 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh'
const OTHER = 'rf1BiGeXwwQoi8Z2ueFYTEXSwuJYfV2Jpn'
let cluster: SignerCluster
let workspace: Workspace
let next = 1

before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
  workspace = await cluster.workspace()
})
after(async () => {
  await cluster.stop()
})

function refused(answer: Answer, code: string, rule: number): void {
  assert.equal(answer.body?.error, code, JSON.stringify(answer.body))
  assert.equal(answer.body.rule, rule)
}
/** Creates a sub-account for each test, because signatures change sequences and expiries. */
async function fresh(): Promise<{ caller: Caller; path: number[] }> {
  const sub = next++
  return { caller: await workspace.caller(sub), path: [sub, XRP.chain_index, 0] }
}
const wants = (caller: Caller, more: Record<string, unknown> = {}) =>
  transfer(caller, { asset: 'XRP', amount: '2.5', destination_address: SINK, ...more })
const built = (
  path: number[],
  o: Partial<Parameters<typeof xrp.buildPayment>[1]> = {},
): UnsignedTransaction =>
  xrp.buildPayment(XRP, {
    to: SINK,
    tag: null,
    amount: 2_500_000n,
    fee: 10n,
    sequence: 91n,
    validUntil: 200,
    path,
    publicKey: workspace.publicKeyAt(path),
    ...o,
  })
/** Builds a transaction with any fields that an attacker may choose. */
function raw(path: number[], fields: Record<string, unknown>): UnsignedTransaction {
  const key = workspace.publicKeyAt(path)
  const plain = {
    TransactionType: 'Payment',
    Flags: 0,
    Account: workspace.address(XRP, path),
    Destination: SINK,
    Amount: '2500000',
    Fee: '10',
    Sequence: 91,
    LastLedgerSequence: 200,
    SigningPubKey: Buffer.from(key).toString('hex').toUpperCase(),
  }
  const all = Object.fromEntries(
    Object.entries({ ...plain, ...fields }).filter(([, value]) => value !== undefined),
  )
  return {
    network: 'XRP',
    bytes: encode(all as unknown as Parameters<typeof encode>[0]).toLowerCase(),
    inputs: [{ path }],
  }
}

test("signs the caller's request, with and without a tag", async () => {
  const { caller, path } = await fresh()
  const answers = [
    await workspace.sign(pay(await wants(caller)), built(path)),
    await workspace.sign(
      pay(await wants(caller, { address_tag: '0' })),
      built(path, { tag: '0', sequence: 92n }),
      [2, 3],
    ),
    await workspace.sign(
      pay(await wants(caller, { destination_address: classicAddressToXAddress(SINK, 7, true) })),
      built(path, { tag: '7', sequence: 93n }),
      [3, 1],
    ),
  ]
  for (const answer of answers) assert.equal(answer.status, 200, JSON.stringify(answer.body))
})

test('destination, amount and tag must match exactly, and a missing tag is not 0', async () => {
  const { caller, path } = await fresh()
  refused(
    await workspace.sign(pay(await wants(caller)), built(path, { to: OTHER })),
    'DESTINATION_MISMATCH',
    7,
  )
  refused(
    await workspace.sign(pay(await wants(caller)), built(path, { amount: 2_500_001n })),
    'AMOUNT_MISMATCH',
    7,
  )
  refused(
    await workspace.sign(pay(await wants(caller)), built(path, { tag: '0' })),
    'TAG_MISMATCH',
    7,
  )
  refused(
    await workspace.sign(pay(await wants(caller, { address_tag: '0' })), built(path)),
    'TAG_MISMATCH',
    7,
  )
  refused(
    await workspace.sign(
      pay(await wants(caller, { address_tag: '12' })),
      built(path, { tag: '13' }),
    ),
    'TAG_MISMATCH',
    7,
  )
  refused(
    await workspace.sign(
      pay(await wants(caller, { destination_address: classicAddressToXAddress(SINK, 7, true) })),
      built(path),
    ),
    'TAG_MISMATCH',
    7,
  )
  refused(
    await workspace.sign(
      pay(
        await wants(caller, {
          destination_address: classicAddressToXAddress(SINK, 7, true),
          address_tag: '8',
        }),
      ),
      built(path, { tag: '8' }),
    ),
    'BAD_REQUEST_FIELD',
    2,
  )
})

test('refuses partial payments, paths, other assets, memos, tickets and other types', async () => {
  const { caller, path } = await fresh()
  const request = pay(await wants(caller))
  const token = { currency: 'USD', issuer: OTHER, value: '1' }
  for (const fields of [
    { Flags: 0x0002_0000 },
    { Flags: 0x0001_0000 },
    { Amount: token },
    { SendMax: token },
    { SendMax: '3000000' },
    { DeliverMin: '1' },
    { Paths: [[{ account: OTHER }]] },
    { Memos: [{ Memo: { MemoData: 'AB' } }] },
    { SourceTag: 1 },
    { TicketSequence: 5, Sequence: 0 },
    { InvoiceID: 'AB'.repeat(32) },
    { AccountTxnID: 'AB'.repeat(32) },
    { NetworkID: 1025 },
    { LastLedgerSequence: undefined },
    { LastLedgerSequence: 0 },
    { Sequence: 0 },
    { TxnSignature: '3000' },
    { TransactionType: 'AccountDelete', Amount: undefined },
    {
      TransactionType: 'SetRegularKey',
      Destination: undefined,
      Amount: undefined,
      RegularKey: OTHER,
    },
  ])
    refused(await workspace.sign(request, raw(path, fields)), 'SHAPE', 7)
  const good = built(path)
  refused(await workspace.sign(request, { ...good, bytes: `${good.bytes}00` }), 'SHAPE', 7)
  refused(await workspace.sign(request, { ...good, bytes: good.bytes.slice(0, -2) }), 'SHAPE', 7)
})

test('refuses another account, another key, and a path outside the wallet', async () => {
  const { caller, path } = await fresh()
  const request = pay(await wants(caller))
  refused(await workspace.sign(request, raw(path, { Account: OTHER })), 'FOREIGN_PATH', 8)
  refused(
    await workspace.sign(
      request,
      raw(path, {
        SigningPubKey: Buffer.from(workspace.publicKeyAt([99, 144, 0])).toString('hex'),
      }),
    ),
    'FOREIGN_PATH',
    8,
  )
  for (const foreign of [
    [98, 144, 0],
    [path[0] as number, 144, 1],
    [0, 144, 0],
  ])
    refused(await workspace.sign(request, built(foreign)), 'FOREIGN_PATH', 8)
})

test('refuses fees above the cap or the caller’s own rate', async () => {
  const { caller, path } = await fresh()
  refused(
    await workspace.sign(pay(await wants(caller)), built(path, { fee: BigInt(XRP.fee_cap) + 1n })),
    'FEE_CAP',
    9,
  )
  refused(
    await workspace.sign(pay(await wants(caller, { fee_rate: 12 })), built(path, { fee: 13n })),
    'FEE_RATE',
    9,
  )
})

test('refuses a second sequence for one payment, but accepts another expiry', async () => {
  const { caller, path } = await fresh()
  const request = pay(await wants(caller))
  assert.equal((await workspace.sign(request, built(path))).status, 200)
  refused(await workspace.sign(request, built(path, { sequence: 92n })), 'NOT_EXCLUSIVE', 6)
  const again = await workspace.sign(request, built(path, { validUntil: 300, fee: 20n }))
  assert.equal(again.status, 200, JSON.stringify(again.body))
})

test('an account’s first sequence is free, later ones are consecutive; expiries are limited', async () => {
  const { caller, path } = await fresh()
  assert.equal(
    (await workspace.sign(pay(await wants(caller)), built(path, { sequence: 5000n }))).status,
    200,
  )
  refused(
    await workspace.sign(pay(await wants(caller)), built(path, { sequence: 5002n })),
    'NONCE_GAP',
    10,
  )
  refused(
    await workspace.sign(
      pay(await wants(caller)),
      built(path, { sequence: 5001n, validUntil: 1_000_000 }),
    ),
    'EXPIRY',
    10,
  )
  assert.equal(
    (
      await workspace.sign(
        pay(await wants(caller)),
        built(path, { sequence: 5001n, validUntil: 50_000 }),
      )
    ).status,
    200,
  )
})

test('refuses a sweep, because a sub-account has one XRP address', async () => {
  const { path } = await fresh()
  const sweep = { kind: 'sweep', sub_account: path[0] as number, asset: 'XRP', address_index: 1 }
  const from = [path[0] as number, XRP.chain_index, 1]
  refused(
    await workspace.sign(sweep, built(from, { to: workspace.address(XRP, path) })),
    'SWEEP_MISMATCH',
    12,
  )
})
