// Previous transactions as large as blocks allow: the displayed data, and the cost of reading them.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { Transaction } from 'bitcoinjs-lib'
import { addressAt, familyOf, utxo, type Network, type UnsignedTransaction } from '../index.ts'
import {
  BTC,
  BTC_ASSETS,
  P2PKH,
  publicKeyAt,
  refuses,
  sign,
  workspaceKey,
} from '../../testing/support.ts'

const PATH = [1, 0, 0]
const CHANGE = [1, 0, 0x7fffffff]
const { decode, signing, assemble } = familyOf(BTC)
const ownScript = (network: Network) =>
  utxo.scriptOf(network, addressAt(network, workspaceKey, PATH))
const VALUE = 100_000n

/**
 * Returns a previous transaction with witnesses of this size, and this number of outputs besides
 * ours.
 */
function parent(o: {
  witness?: number
  outputs?: number
  network?: Network
  own?: number
}): Transaction {
  const transaction = new Transaction()
  transaction.version = 2
  transaction.addInput(randomBytes(32), 0)
  if (o.witness)
    transaction.setWitness(0, [new Uint8Array(o.witness).fill(7), Buffer.from('51', 'hex')])
  for (let count = 0; count < (o.own ?? 1); count++)
    transaction.addOutput(ownScript(o.network ?? BTC), VALUE)
  for (let count = 0; count < (o.outputs ?? 0); count++)
    transaction.addOutput(Buffer.from(`0014${'11'.repeat(20)}`, 'hex'), 1n)
  return transaction
}

function spend(
  parents: readonly Transaction[],
  o: { network?: Network; each?: number } = {},
): UnsignedTransaction {
  const network = o.network ?? BTC
  // Computed once each, because an id is a hash of a megabyte.
  const ids = parents.map((each) => each.getId())
  const address = addressAt(network, workspaceKey, PATH)
  const utxos = ids.flatMap((txid) =>
    Array.from({ length: o.each ?? 1 }, (_, vout) => ({
      txid,
      vout,
      value: VALUE,
      path: PATH,
      address,
    })),
  )
  const fee = 10_000n
  const amount = VALUE * BigInt(utxos.length) - fee - 50_000n
  return utxo.buildTransfer(network, {
    selection: { utxos, fee, change: 50_000n, vsize: 0 },
    to: addressAt(network, workspaceKey, [1, 0, 9]),
    amount,
    changeAddress: addressAt(network, workspaceKey, CHANGE),
    changePath: CHANGE,
    previous: new Map(parents.map((each, at) => [ids[at] as string, each.toHex()])),
  })
}
const sizeOf = (unsigned: UnsignedTransaction) => JSON.stringify(unsigned).length

/** Decodes, signs and assembles as a node does. */
function whole(unsigned: UnsignedTransaction, inputs: number, network = BTC): void {
  const decoded = decode(network, unsigned, BTC_ASSETS, publicKeyAt)
  assert.equal(decoded.from.length, inputs)
  assert.equal(decoded.fee_max, 10_000n)
  const signed = assemble(
    network,
    unsigned,
    sign(signing(network, unsigned, publicKeyAt)),
    publicKeyAt,
  )
  assert.equal(Transaction.fromHex(signed.raw).ins.length, inputs)
}

test('includes previous transactions without their witnesses', () => {
  const parents = Array.from({ length: 22 }, () => parent({ witness: 3_999_000 }))
  const unsigned = spend(parents)
  assert.ok(sizeOf(unsigned) < 20_000, String(sizeOf(unsigned)))
  whole(unsigned, 22)
})

test('accepts a previous transaction of 4 MB with witnesses by its id', () => {
  const parents = [1, 2].map(() => parent({ witness: 3_999_000 }))
  const unsigned = spend(parents)
  const full = {
    ...unsigned,
    inputs: unsigned.inputs.map(({ path }, at) => ({
      path,
      previous: (parents[at] as Transaction).toHex(),
    })),
  }
  assert.ok(sizeOf(full) > 15_000_000)
  whole(full, 2)
})

test('decodes, signs and assembles 22 inputs with previous transactions of 1 MB each', () => {
  for (const network of [BTC, P2PKH]) {
    const parents = Array.from({ length: 22 }, () => parent({ outputs: 32_000, network }))
    const unsigned = spend(parents, { network })
    assert.ok(sizeOf(unsigned) > 40_000_000, String(sizeOf(unsigned)))
    whole(unsigned, 22, network)
  }
})

test('includes the previous transaction of several inputs once', () => {
  const unsigned = spend([parent({ outputs: 30_000, own: 200 })], { each: 200 })
  assert.equal(unsigned.inputs.filter(({ previous }) => previous !== undefined).length, 1)
  whole(unsigned, 200)
})

test('refuses a previous transaction that is missing, truncated or does not match its id', () => {
  const [first, second] = [parent({ own: 2 }), parent({})]
  const unsigned = spend([first, second])
  const shown = (previous: (string | undefined)[]): UnsignedTransaction => ({
    ...unsigned,
    inputs: unsigned.inputs.map(({ path }, at) => ({
      path,
      ...(previous[at] === undefined ? {} : { previous: previous[at] }),
    })),
  })
  const [one, two] = [first, second].map((each) => each.toHex()) as [string, string]
  const refused = (previous: (string | undefined)[], code: string) =>
    refuses(() => decode(BTC, shown(previous), BTC_ASSETS, publicKeyAt), code)
  assert.equal(decode(BTC, shown([one, two]), BTC_ASSETS, publicKeyAt).from.length, 2)
  refused([two, one], 'PREVIOUS_TRANSACTION')
  refused([one, undefined], 'PREVIOUS_TRANSACTION')
  refused([undefined, two], 'PREVIOUS_TRANSACTION')
  refused([one, `${two}00`], 'TRANSACTION')
  refused([one, two.slice(0, -2)], 'TRANSACTION')
  refused([one, two.slice(0, -8)], 'TRANSACTION')
  refused([one, 'zz'.repeat(40)], 'TRANSACTION')
  refused([one, '00'.repeat(4 * 1024 * 1024 + 1)], 'TRANSACTION')
  // More outputs than there are bytes, and lengths beyond the end of the data.
  refused([one, `02000000${'fe'}ffffffff${'00'.repeat(40)}`], 'TRANSACTION')
  refused([one, `0200000001${'11'.repeat(36)}ff${'ff'.repeat(8)}${'00'.repeat(40)}`], 'TRANSACTION')
})
