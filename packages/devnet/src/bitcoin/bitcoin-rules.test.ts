import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { schnorr } from '@noble/curves/secp256k1.js'
import { Transaction, payments, networks, script as scripts } from 'bitcoinjs-lib'
import { addressOf } from './address.ts'
import { BitcoinChain } from './chain.ts'
import { bitcoinRpc } from './rpc.ts'
import { Faults } from '../faults.ts'
import { manualTime } from '../timing.ts'
import {
  key,
  payment,
  type Key,
  type Output,
  type Shape,
  type Spend,
} from '../../testing/bitcoin-keys.ts'
import { removeHome, tempHome } from '../../testing/support.ts'

const home = tempHome()
const [alice, bob] = [key(11), key(12)]
const COIN = 100_000_000n
const FEE = 1000n
let chain: BitcoinChain

before(() => {
  chain = BitcoinChain.open(home, { timing: manualTime() })
})
after(() => {
  chain.close()
  removeHome(home)
})

type Answer = { result: unknown; error: { code: number; message: string } | null }

function call(method: string, ...params: unknown[]): Answer {
  return JSON.parse(
    bitcoinRpc(chain, new Faults(), JSON.stringify({ id: 1, method, params }))!.body,
  ) as Answer
}

function ok<T>(method: string, ...params: unknown[]): T {
  const { result, error } = call(method, ...params)
  assert.equal(error, null)
  return result as T
}

function send(tx: Transaction): Answer {
  return call('sendrawtransaction', tx.toHex())
}

/** Checks that `sendrawtransaction` and `testmempoolaccept` return the same reason. */
function refused(tx: Transaction, code: number, reason: RegExp, tested = reason): void {
  const [verdict] = ok<{ allowed: boolean; 'reject-reason': string }[]>('testmempoolaccept', [
    tx.toHex(),
  ])
  assert.equal(verdict!.allowed, false)
  assert.match(verdict!['reject-reason'], tested)
  const { error } = send(tx)
  assert.equal(error?.code, code, error?.message)
  assert.match(error!.message, reason)
}

function coin(owner: Key, amount = '1'): Spend {
  const txid = chain.fund(owner.address, amount)
  const { vout } = ok<{ vout: { n: number; scriptPubKey: { address: string } }[] }>(
    'getrawtransaction',
    txid,
    1,
  )
  return {
    txid,
    vout: vout.find(({ scriptPubKey }) => scriptPubKey.address === owner.address)!.n,
    value: BigInt(Math.round(Number(amount) * 1e8)),
  }
}

function pay(
  spends: Spend[],
  outputs: Output[] = [
    { script: bob.script, value: spends.reduce((sum, { value }) => sum + value, 0n) - FEE },
  ],
  shape: Shape = {},
) {
  return payment(alice, spends, outputs, shape)
}

test('testmempoolaccept and broadcast accept a segwit payment, which is mined and reported', async () => {
  const spend = coin(alice)
  const tx = await pay([spend])
  const [verdict] = ok<{ allowed: boolean; txid: string; vsize: number; fees: { base: number } }[]>(
    'testmempoolaccept',
    [tx.toHex()],
  )
  assert.deepEqual(
    [verdict!.allowed, verdict!.txid, verdict!.vsize, verdict!.fees.base],
    [true, tx.getId(), tx.virtualSize(), 0.00001],
  )
  assert.deepEqual(ok('getrawmempool'), [], 'a test leaves nothing behind')
  assert.equal(send(tx).result, tx.getId())
  assert.equal(send(tx).result, tx.getId(), 'the same bytes may be sent again')
  const entry = ok<{ vsize: number; 'bip125-replaceable': boolean; fees: { base: number } }>(
    'getmempoolentry',
    tx.getId(),
  )
  assert.deepEqual(
    [entry.vsize, entry['bip125-replaceable'], entry.fees.base],
    [tx.virtualSize(), true, 0.00001],
  )
  assert.deepEqual(ok('gettxspendingprevout', [{ txid: spend.txid, vout: spend.vout }]), [
    { txid: spend.txid, vout: spend.vout, spendingtxid: tx.getId() },
  ])
  assert.equal(ok('gettxout', spend.txid, spend.vout), null)
  const block = chain.mine(1)
  const mined = ok<{
    tx: { txid: string; fee?: number; vin: { prevout?: { value: number } }[] }[]
  }>('getblock', block.hash, 3)
  const matches = mined.tx.find(({ txid }) => txid === tx.getId())!
  assert.deepEqual([matches.fee, matches.vin[0]!.prevout!.value], [0.00001, 1])
  assert.equal(
    ok<{ confirmations: number }>('getrawtransaction', tx.getId(), true).confirmations,
    1,
  )
  assert.deepEqual(send(tx).error, {
    code: -27,
    message: 'Transaction outputs already in utxo set',
  })
  const [rejection] = ok<{ 'reject-reason': string }[]>('testmempoolaccept', [tx.toHex()])
  assert.equal(rejection!['reject-reason'], 'txn-already-known')
})

test('executes a legacy payment and refuses a tampered one', async () => {
  const txid = chain.fund(alice.legacy, '0.5')
  const previous = Transaction.fromHex(ok<string>('getrawtransaction', txid))
  const vout = previous.outs.findIndex(({ script }) =>
    Buffer.from(script).equals(Buffer.from(alice.legacyScript)),
  )
  const spend = { txid, vout, value: COIN / 2n, legacy: previous }
  refused(await pay([spend], undefined, { tamper: true }), -26, /script-verify-flag/)
  const tx = await pay([spend])
  assert.equal(send(tx).result, tx.getId())
})

test('verifies both scripts of a P2SH-wrapped segwit payment', async () => {
  const nested = payments.p2sh({
    redeem: payments.p2wpkh({ pubkey: alice.publicKey, network: networks.regtest }),
    network: networks.regtest,
  })
  const txid = chain.fund(nested.address, '0.5')
  const previous = Transaction.fromHex(ok<string>('getrawtransaction', txid))
  const vout = previous.outs.findIndex(({ script }) =>
    Buffer.from(script).equals(Buffer.from(nested.output!)),
  )
  const tx = await pay([{ txid, vout, value: COIN / 2n }])
  refused(tx, -26, /mandatory-script-verify-flag-failed/)
  tx.setInputScript(0, scripts.compile([nested.redeem!.output!]))
  assert.equal(send(tx).result, tx.getId())
})

test('refuses a tampered signature', async () => {
  refused(await pay([coin(alice)], undefined, { tamper: true }), -26, /script-verify-flag.*\(.+\)/)
})

test('refuses signatures by another key, of another amount, with a high s or unknown hash type', async () => {
  const spend = coin(alice)
  refused(
    await payment(bob, [spend], [{ script: bob.script, value: spend.value - FEE }]),
    -26,
    /script-verify-flag/,
  )
  refused(
    await pay(
      [{ ...spend, value: spend.value + 1n }],
      [{ script: bob.script, value: spend.value - FEE }],
    ),
    -26,
    /script-verify-flag/,
  )
  refused(await pay([spend], undefined, { highS: true }), -26, /S value is unnecessarily high/)
  refused(await pay([spend], undefined, { hashType: 0x41 }), -26, /script-verify-flag/)
})

test('executes a taproot key-path spend', async () => {
  const script = Buffer.concat([Buffer.from([0x51, 32]), alice.publicKey.subarray(1)])
  const txid = chain.fund(addressOf(script), '0.5')
  const vout = chain.ledger.txIndex
    .get(txid)!
    .block.txs[1]!.outs.findIndex((output) => output.script.equals(script))
  const tx = await pay([{ txid, vout, value: COIN / 2n }])
  const digest = tx.hashForWitnessV1(0, [script], [COIN / 2n], Transaction.SIGHASH_DEFAULT)
  const signature = schnorr.sign(digest, Buffer.from(alice.privateKey.slice(2), 'hex'))
  signature[5]! ^= 1
  tx.setWitness(0, [signature])
  refused(tx, -26, /script-verify-flag/)
  signature[5]! ^= 1
  tx.setWitness(0, [signature])
  assert.equal(send(tx).result, tx.getId())
})

test('refuses inputs that do not exist or are spent', async () => {
  const spend = coin(alice)
  refused(
    await pay([{ ...spend, txid: 'ab'.repeat(32) }]),
    -25,
    /^bad-txns-inputs-missingorspent$/,
    /^missing-inputs$/,
  )
  assert.equal(send(await pay([spend])).error, null)
  chain.mine(1)
  refused(
    await pay([spend], [{ script: alice.script, value: spend.value - 2n * FEE }]),
    -25,
    /^bad-txns-inputs-missingorspent$/,
    /^missing-inputs$/,
  )
})

test('a coinbase output can be spent after 100 blocks', async () => {
  const at = (height: number): Spend => {
    const block = chain.ledger.blocks[height]!
    return { txid: block.txs[0]!.txid, vout: 0, value: block.txs[0]!.outs[0]!.value }
  }
  const { height } = chain.head
  refused(
    await pay([at(height - 98)]),
    -26,
    /^bad-txns-premature-spend-of-coinbase, tried to spend coinbase at depth 99$/,
    /^bad-txns-premature-spend-of-coinbase$/,
  )
  // The coinbase is mature: validation reaches the script, which this key cannot satisfy.
  refused(await pay([at(height - 99)]), -26, /script-verify-flag/)
})

test('enforces the rules for dust, fees and values', async () => {
  const spend = coin(alice)
  const rest = spend.value - FEE - 293n
  refused(
    await pay(
      [spend],
      [
        { script: bob.script, value: 293n },
        { script: bob.script, value: rest },
      ],
    ),
    -26,
    /^dust$/,
  )
  refused(
    await pay(
      [spend],
      [
        { script: bob.legacyScript, value: 545n },
        { script: bob.script, value: rest - 252n },
      ],
    ),
    -26,
    /^dust$/,
  )
  refused(
    await pay([spend], [{ script: bob.script, value: spend.value - 100n }]),
    -26,
    /^min relay fee not met, 100 < 110$/,
    /^min relay fee not met$/,
  )
  refused(
    await pay([spend], [{ script: bob.script, value: spend.value + 1n }]),
    -26,
    /^bad-txns-in-belowout/,
  )
  refused(
    await pay([spend], [{ script: bob.script, value: 21_000_001n * COIN }]),
    -26,
    /^bad-txns-vout-toolarge$/,
  )
  const most = { script: bob.script, value: 20_000_000n * COIN }
  refused(await pay([spend], [most, most]), -26, /^bad-txns-txouttotal-toolarge$/)
  const dear = await pay([spend], [{ script: bob.script, value: spend.value / 2n }])
  assert.deepEqual(send(dear).error, {
    code: -25,
    message: 'Fee exceeds maximum configured by user (e.g. -maxtxfee, maxfeerate)',
  })
  assert.equal(
    ok<{ 'reject-reason': string }[]>('testmempoolaccept', [dear.toHex()])[0]!['reject-reason'],
    'max-fee-exceeded',
  )
  const edge = await pay(
    [spend],
    [
      { script: bob.script, value: 294n },
      { script: bob.script, value: spend.value - 294n - 141n },
    ],
  )
  assert.equal(edge.virtualSize(), 141)
  assert.equal(send(edge).result, edge.getId(), '294 satoshi and 1 sat/vB are enough')
})

test('enforces the format of a transaction', async () => {
  const spend = coin(alice)
  const value = spend.value - FEE
  refused(await pay([spend], undefined, { version: 4 }), -26, /^version$/)
  refused(await pay([spend, spend]), -26, /^bad-txns-inputs-duplicate$/)
  refused(await pay([spend], []), -26, /^bad-txns-vout-empty$/)
  refused(await pay([spend], [{ script: Buffer.from([0x51]), value }]), -26, /^scriptpubkey$/)
  const data = (text: string): Output => ({
    script: scripts.compile([0x6a, Buffer.from(text)]),
    value: 0n,
  })
  refused(
    await pay([spend], [{ script: bob.script, value }, data('x'.repeat(81))]),
    -26,
    /^scriptpubkey$/,
  )
  refused(
    await pay([spend], [{ script: bob.script, value }, data('a'), data('b')]),
    -26,
    /^multi-op-return$/,
  )
  const heavy = await pay(
    [spend],
    Array.from({ length: 3300 }, () => ({ script: bob.script, value: 1000n })),
  )
  refused(heavy, -26, /^tx-size$/)
  assert.equal(call('sendrawtransaction', 'beef').error?.code, -22)
  assert.equal(call('sendrawtransaction', '02000000000000000000').error?.code, -26, 'no inputs')
  refused(
    await pay([{ ...spend, txid: '0'.repeat(64), vout: 0xffffffff }]),
    -26,
    /^coinbase$|^bad-cb-length$/,
  )
})

test('enforces lock times', async () => {
  const spend = coin(alice)
  const next = chain.head.height + 1
  refused(
    await pay([{ ...spend, sequence: 0xfffffffe }], undefined, { locktime: next }),
    -26,
    /^non-final$/,
  )
  refused(await pay([{ ...spend, sequence: 2 }]), -26, /^non-BIP68-final$/)
  chain.mine(1)
  assert.equal(send(await pay([{ ...spend, sequence: 2 }])).error, null)
  const other = coin(alice)
  assert.equal(
    send(
      await pay([{ ...other, sequence: 0xfffffffe }], undefined, { locktime: chain.head.height }),
    ).error,
    null,
  )
})

test('a replacement needs a higher fee rate, a higher fee, and the relay fee of its own size', async () => {
  const spend = coin(alice)
  const paying = (fee: bigint, to = bob) =>
    pay([spend], [{ script: to.script, value: spend.value - fee }])
  const first = await paying(1000n)
  assert.equal(send(first).error, null)
  const child = await payment(
    bob,
    [{ txid: first.getId(), vout: 0, value: spend.value - 1000n }],
    [{ script: bob.script, value: spend.value - 3000n }],
  )
  assert.equal(send(child).error, null)
  refused(
    await paying(900n, alice),
    -26,
    /^insufficient fee, rejecting replacement .*; new feerate/,
    /^insufficient fee$/,
  )
  refused(await paying(2900n, alice), -26, /less fees than conflicting txs/, /^insufficient fee$/)
  const cheap = await paying(3050n, alice)
  // A signature may be a byte shorter.
  const relay = `0\\.00000${String(cheap.virtualSize()).padStart(3, '0')}`
  refused(
    cheap,
    -26,
    new RegExp(`not enough additional fees to relay; 0\\.00000050 < ${relay}`),
    /^insufficient fee$/,
  )
  const spending = await pay(
    [spend, { txid: child.getId(), vout: 0, value: 1n }],
    [{ script: bob.script, value: spend.value }],
  )
  refused(spending, -26, /script-verify-flag|bad-txns-spends-conflicting-tx/)
  const better = await paying(3110n, alice)
  assert.equal(send(better).result, better.getId())
  assert.deepEqual(ok('getrawmempool'), [better.getId()], 'the child went with its parent')
  const block = chain.mine(1)
  assert.deepEqual(ok<{ tx: string[] }>('getblock', block.hash).tx.slice(1), [better.getId()])
})

test('refuses a chain of more than 25 unconfirmed transactions', async () => {
  let spend = coin(alice)
  for (let length = 1; length <= 25; length += 1) {
    const tx = await pay([spend], [{ script: alice.script, value: spend.value - FEE }])
    assert.equal(send(tx).error, null)
    spend = { txid: tx.getId(), vout: 0, value: spend.value - FEE }
  }
  refused(await pay([spend]), -26, /^too-long-mempool-chain/)
  chain.mine(1)
  assert.deepEqual(ok('getrawmempool'), [])
})

test('testmempoolaccept accepts transactions that spend each other’s outputs', async () => {
  const spend = coin(alice)
  const parent = await pay([spend], [{ script: alice.script, value: spend.value - FEE }])
  const child = await pay([{ txid: parent.getId(), vout: 0, value: spend.value - FEE }])
  const verdicts = ok<{ allowed: boolean }[]>('testmempoolaccept', [parent.toHex(), child.toHex()])
  assert.deepEqual(
    verdicts.map(({ allowed }) => allowed),
    [true, true],
  )
})

test('without full replacement, refuses to replace a transaction that does not signal it', async () => {
  const place = tempHome()
  const strict = BitcoinChain.open(place, { fullRbf: false, timing: manualTime() })
  try {
    const txid = strict.fund(alice.address, '1')
    const vout = strict.ledger.txIndex
      .get(txid)!
      .block.txs[1]!.outs.findIndex(({ script }) => script.equals(Buffer.from(alice.script)))
    const outcome = async (sequence: number, fee: bigint) => {
      const tx = await pay(
        [{ txid, vout, value: COIN, sequence }],
        [{ script: bob.script, value: COIN - fee }],
      )
      const { parseTx } = await import('./transaction.ts')
      const result = strict.submit(parseTx(Buffer.from(tx.toBuffer()), strict.network))
      return 'rejection' in result ? result.rejection.reason : 'accepted'
    }
    assert.equal(await outcome(0xffffffff, 1000n), 'accepted')
    assert.equal(await outcome(0xfffffffd, 5000n), 'txn-mempool-conflict')
  } finally {
    strict.close()
    removeHome(place)
  }
})
