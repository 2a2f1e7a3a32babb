import {
  addressAt,
  cardano,
  CHANGE_INDEX,
  type Network,
  type UnsignedTransaction,
} from '@custody/chains'
import {
  Address,
  BigNum,
  FixedTransaction,
  FixedTransactionBody,
  TransactionBody,
  TransactionHash,
  TransactionInput,
  TransactionInputs,
  TransactionOutput,
  TransactionOutputs,
  Value,
} from '@emurgo/cardano-serialization-lib-nodejs'
import { ed25519 } from '@noble/curves/ed25519.js'
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  SignerCluster,
  pay,
  registry,
  transfer,
  type Answer,
  type Caller,
} from '../../testing/signer-cluster.ts'

/**
 * Cardano: a hostile platform requests another payment than the caller signed; both nodes refuse
 * it.
 */
const ADA = registry.network('ADA') as Network
const SINK = 'addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz'
const OTHER = 'addr_test1wrphkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcl6szpr'
const WORKSPACE = 'cardano'
const HEAD = 200_000_000
let cluster: SignerCluster
let key: { publicKey: Uint8Array; chainCode: Uint8Array }
let next = 1

before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
  const { status, body } = await cluster.key(1, WORKSPACE, 'ed25519')
  assert.equal(status, 200, JSON.stringify(body))
  key = {
    publicKey: new Uint8Array(Buffer.from(body.public_key, 'hex')),
    chainCode: new Uint8Array(Buffer.from(body.chain_code, 'hex')),
  }
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
async function fresh(): Promise<{ caller: Caller; sub: number }> {
  const api_key = crypto.randomUUID()
  const sub_account = next++
  for (const node of [1, 2, 3])
    await cluster.enrol(node, { api_key, workspace: WORKSPACE, sub_account })
  return { caller: { api_key, sub_account }, sub: sub_account }
}
const wants = (caller: Caller, more: Record<string, unknown> = {}) =>
  transfer(caller, { asset: 'ADA', amount: '2.5', destination_address: SINK, ...more })

let salt = 1
/** Creates coins at addresses, in a transaction that another library encoded. */
function coinsAt(
  paths: number[][],
  each = 2_000_000n,
): { coins: cardano.Coin[]; previous: Map<string, string> } {
  const inputs = TransactionInputs.new()
  inputs.add(
    TransactionInput.new(TransactionHash.from_hex((salt++).toString(16).padStart(64, '0')), 0),
  )
  const outputs = TransactionOutputs.new()
  const addresses = paths.map((path) => addressAt(ADA, key, path))
  for (const address of addresses)
    outputs.add(
      TransactionOutput.new(
        Address.from_bech32(address),
        Value.new(BigNum.from_str(each.toString())),
      ),
    )
  const body = TransactionBody.new_tx_body(inputs, outputs, BigNum.from_str('200000')).to_bytes()
  const txid = FixedTransactionBody.from_bytes(body).tx_hash().to_hex()
  return {
    coins: paths.map((path, vout) => ({
      txid,
      vout,
      value: each,
      path,
      address: addresses[vout] as string,
      riders: null,
    })),
    previous: new Map([[txid, Buffer.from(body).toString('hex')]]),
  }
}
interface Options {
  to?: string
  amount?: bigint
  rate?: bigint
  ttl?: number
  changePath?: number[]
  paths?: number[][]
  from?: ReturnType<typeof coinsAt>
}
function built(sub: number, o: Options = {}): UnsignedTransaction {
  const path = (index: number) => [sub, ADA.chain_index, index]
  const { coins, previous } = o.from ?? coinsAt(o.paths ?? [path(0), path(3), path(0)])
  const changePath = o.changePath ?? path(CHANGE_INDEX)
  const order = {
    to: o.to ?? SINK,
    amount: o.amount ?? 2_500_000n,
    changeAddress: addressAt(ADA, key, changePath),
    ttl: BigInt(o.ttl ?? HEAD),
  }
  const selection = cardano.selectCoins(ADA, {
    ...order,
    coins,
    required: coins,
    rate: o.rate ?? 44n,
    parameters: cardano.PARAMETERS,
  })
  return cardano.buildTransfer(ADA, { ...order, selection, changePath, previous })
}

test("every pair signs the caller's request with three inputs of two keys", async () => {
  for (const pair of [
    [1, 2],
    [2, 3],
    [3, 1],
  ] as const) {
    const { caller, sub } = await fresh()
    const answer = await sign(pay(await wants(caller)), built(sub), pair)
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
    const fixed = FixedTransaction.from_hex(answer.body.signed.raw)
    assert.equal(fixed.transaction_hash().to_hex(), answer.body.signed.hash)
    const witnesses = fixed.witness_set().vkeys()
    assert.equal(witnesses?.len(), 2)
    for (let index = 0; index < 2; index++) {
      const witness = witnesses!.get(index)
      assert.ok(
        ed25519.verify(
          witness.signature().to_bytes(),
          fixed.transaction_hash().to_bytes(),
          witness.vkey().public_key().as_bytes(),
        ),
      )
    }
  }
})

test('destination, amount and asset must match exactly', async () => {
  const { caller, sub } = await fresh()
  const request = pay(await wants(caller))
  refused(await sign(request, built(sub, { to: OTHER })), 'DESTINATION_MISMATCH', 7)
  refused(await sign(request, built(sub, { amount: 2_500_001n })), 'AMOUNT_MISMATCH', 7)
  refused(
    await sign(
      pay(
        await wants(caller, {
          asset: 'XLM',
          destination_address: 'GAAZI4TCR3TY5OJHCTJC2A4QSY6CJWJH5IAJTGKIN2ER7LBNVKOCCWN7',
        }),
      ),
      built(sub),
    ),
    'NETWORK_MISMATCH',
    7,
  )
})

test('refuses additional fields, a false previous transaction, and trailing bytes', async () => {
  const { caller, sub } = await fresh()
  const request = pay(await wants(caller))
  const unsigned = built(sub)
  refused(
    await sign(request, { ...unsigned, bytes: `a5${unsigned.bytes.slice(2)}0f00` }),
    'SHAPE',
    7,
  )
  refused(
    await sign(request, {
      ...unsigned,
      bytes: `a5${unsigned.bytes.slice(2)}075820${'00'.repeat(32)}`,
    }),
    'SHAPE',
    7,
  )
  refused(await sign(request, { ...unsigned, bytes: `${unsigned.bytes}00` }), 'SHAPE', 7)
  const richer = [
    ...coinsAt([[sub, ADA.chain_index, 0]], 90_000_000n).previous.values(),
  ][0] as string
  refused(
    await sign(request, {
      ...unsigned,
      inputs: unsigned.inputs.map(({ path }) => ({ path, previous: richer })),
    }),
    'PREVIOUS_TRANSACTION',
    8,
  )
  refused(
    await sign(request, { ...unsigned, inputs: unsigned.inputs.map(({ path }) => ({ path })) }),
    'PREVIOUS_TRANSACTION',
    8,
  )
})

test('accepts only inputs of the payer’s wallet, and change on its change path', async () => {
  const { caller, sub } = await fresh()
  const request = pay(await wants(caller))
  refused(
    await sign(
      request,
      built(sub, {
        paths: [
          [sub + 1000, ADA.chain_index, 0],
          [sub, ADA.chain_index, 0],
        ],
      }),
    ),
    'FOREIGN_PATH',
    8,
  )
  refused(
    await sign(
      request,
      built(sub, {
        paths: [
          [sub, 0, 0],
          [sub, ADA.chain_index, 0],
        ],
      }),
    ),
    'FOREIGN_PATH',
    8,
  )
  refused(
    await sign(request, built(sub, { changePath: [sub, ADA.chain_index, 0] })),
    'CHANGE_MISMATCH',
    8,
  )
  refused(
    await sign(request, built(sub, { changePath: [sub + 1, ADA.chain_index, CHANGE_INDEX] })),
    'CHANGE_MISMATCH',
    8,
  )
})

test('refuses fees above the cap or the caller’s own rate', async () => {
  const { caller, sub } = await fresh()
  const rich = () => coinsAt([[sub, ADA.chain_index, 0]], 50_000_000n)
  refused(
    await sign(pay(await wants(caller)), built(sub, { from: rich(), rate: 30_000n })),
    'FEE_CAP',
    9,
  )
  refused(
    await sign(pay(await wants(caller, { fee_rate: 44 })), built(sub, { rate: 45n })),
    'FEE_RATE',
    9,
  )
  assert.equal(
    (await sign(pay(await wants(caller, { fee_rate: 45 })), built(sub, { rate: 45n }))).status,
    200,
  )
  // A remainder that is too small for a change output goes to the fee, and the fee contains nothing
  // else.
  assert.equal(
    (
      await sign(
        pay(await wants(caller, { fee_rate: 44 })),
        built(sub, { from: coinsAt([[sub, ADA.chain_index, 0]], 3_400_000n) }),
      )
    ).status,
    200,
  )
})

test('another transaction for the same transfer must spend an input of the first', async () => {
  const { caller, sub } = await fresh()
  const request = pay(await wants(caller))
  const from = coinsAt([[sub, ADA.chain_index, 0]], 9_000_000n)
  assert.equal((await sign(request, built(sub, { from }))).status, 200)
  refused(await sign(request, built(sub, { ttl: HEAD + 4000 })), 'NOT_EXCLUSIVE', 6)
  assert.equal((await sign(request, built(sub, { from, ttl: HEAD + 4000 }), [2, 3])).status, 200)
})

test('refuses an expiry that is too far above the highest expiry on record', async () => {
  const { caller, sub } = await fresh()
  refused(await sign(pay(await wants(caller)), built(sub, { ttl: HEAD + 95_000 })), 'EXPIRY', 10)
  const answer = await sign(pay(await wants(caller)), built(sub, { ttl: HEAD + 86_000 }), [2, 3])
  assert.equal(answer.status, 200, JSON.stringify(answer.body))
})
