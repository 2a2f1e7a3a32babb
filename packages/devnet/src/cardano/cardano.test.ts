// The local Cardano network: transactions that its ledger accepts and refuses, Blockfrost
// responses, and blocks that remain after a restart.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, test } from 'node:test'
import {
  Address,
  BigNum,
  Credential,
  EnterpriseAddress,
  FixedTransaction,
  LinearFee,
  min_fee,
  PrivateKey,
  Transaction,
  TransactionBody,
  TransactionHash,
  TransactionInput,
  TransactionInputs,
  TransactionOutput,
  TransactionOutputs,
  Value,
} from '@emurgo/cardano-serialization-lib-nodejs'
import { removeHome, startDevnet, tempHome, type Running } from '../../testing/support.ts'

let devnet: Running
const home = tempHome()
const KEY = PrivateKey.from_normal_bytes(
  createHash('sha256').update('alice of the cardano tests').digest(),
)
const addressOf = (key: PrivateKey, network = 0) =>
  EnterpriseAddress.new(network, Credential.from_keyhash(key.to_public().hash())).to_address()
const ALICE = addressOf(KEY).to_bech32()
const BOB = addressOf(PrivateKey.from_normal_bytes(createHash('sha256').update('bob').digest()))
const RULES = LinearFee.new(BigNum.from_str('44'), BigNum.from_str('155381'))

interface Utxo {
  tx_hash: string
  output_index: number
  amount: { unit: string; quantity: string }[]
}
interface Head {
  hash: string
  height: number
  slot: number
  tx_count: number
  previous_block: string | null
}
const ask = (path: string, init?: RequestInit) => fetch(`${devnet.url}/ada/${path}`, init)
const get = async <T>(path: string): Promise<T> => {
  const answer = await ask(path)
  assert.equal(answer.status, 200, `${path}: ${await answer.clone().text()}`)
  return (await answer.json()) as T
}
const submit = async (raw: string) => {
  const answer = await ask('tx/submit', {
    method: 'POST',
    headers: { 'content-type': 'application/cbor' },
    body: Buffer.from(raw, 'hex'),
  })
  return {
    status: answer.status,
    body: (await answer.json()) as string | { status_code: number; message: string },
  }
}
const refused = async (raw: string, reason: RegExp) => {
  const { status, body } = await submit(raw)
  assert.equal(status, 400, JSON.stringify(body))
  assert.match((body as { message: string }).message, reason)
}
const control = <T = { hash: string; height: number }>(command: Record<string, unknown>) =>
  devnet.control<T>({ network: 'ADA', ...command })
const fund = (amount: string, more: Record<string, unknown> = {}) =>
  devnet.control<{ hash: string }>({
    command: 'fund',
    asset: 'ADA',
    address: ALICE,
    amount,
    ...more,
  })
const latest = () => get<Head>('blocks/latest')

/** Creates a payment from one plain coin of Alice. */
async function pay(
  o: {
    coin?: Utxo
    amount?: bigint
    fee?: bigint
    ttl?: number
    to?: Address
    key?: PrivateKey
  } = {},
): Promise<{ raw: string; hash: string }> {
  const coin =
    o.coin ??
    ((await get<Utxo[]>(`addresses/${ALICE}/utxos`)).find(
      ({ amount }) => amount.length === 1,
    ) as Utxo)
  const value = BigInt(coin.amount[0]?.quantity as string)
  const ttl = o.ttl ?? (await latest()).slot + 1000
  const make = (fee: bigint): FixedTransaction => {
    const inputs = TransactionInputs.new()
    inputs.add(TransactionInput.new(TransactionHash.from_hex(coin.tx_hash), coin.output_index))
    const outputs = TransactionOutputs.new()
    const amount = o.amount ?? 2_000_000n
    outputs.add(TransactionOutput.new(o.to ?? BOB, Value.new(BigNum.from_str(amount.toString()))))
    outputs.add(
      TransactionOutput.new(
        Address.from_bech32(ALICE),
        Value.new(BigNum.from_str((value - amount - fee).toString())),
      ),
    )
    const body = TransactionBody.new_tx_body(inputs, outputs, BigNum.from_str(fee.toString()))
    body.set_ttl(BigNum.from_str(String(ttl)))
    const made = FixedTransaction.new_from_body_bytes(body.to_bytes())
    made.sign_and_add_vkey_signature(o.key ?? KEY)
    return made
  }
  const least = BigInt(min_fee(Transaction.from_bytes(make(200_000n).to_bytes()), RULES).to_str())
  const made = make(o.fee ?? least)
  return { raw: made.to_hex(), hash: made.transaction_hash().to_hex() }
}
/** Checks that the next block contains a transaction that is waiting. */
const included = async (hash: string) => {
  await control({ command: 'mine', blocks: 1 })
  assert.equal((await ask(`txs/${hash}`)).status, 200)
}

let firstFunding = ''
before(async () => {
  devnet = await startDevnet(home)
  firstFunding = (await fund('100')).hash
})
after(async () => {
  await devnet.stop()
  removeHome(home)
})

test('the faucet’s first payment has a sender address, like every other payment', async () => {
  const { inputs, outputs } = await get<{
    inputs: { address: string; amount: { quantity: string }[] }[]
    outputs: { address: string }[]
  }>(`txs/${firstFunding}/utxos`)
  assert.deepEqual(
    inputs.map(({ address }) => address),
    [outputs[1]?.address],
    'the change goes back to where it came from',
  )
  assert.match(inputs[0]?.amount[0]?.quantity ?? '', /^\d{10,}$/)
})

test('a submitted payment is included in a block, creates its outputs and spends its input', async () => {
  const [coin] = await get<[Utxo]>(`addresses/${ALICE}/utxos`)
  const { raw, hash } = await pay()
  assert.deepEqual(await submit(raw), { status: 200, body: hash })
  await included(hash)
  const transaction = await get<{
    block: string
    block_height: number
    fees: string
    valid_contract: boolean
  }>(`txs/${hash}`)
  assert.ok(transaction.valid_contract && BigInt(transaction.fees) > 160_000n)
  const block = await get<Head>(`blocks/${transaction.block_height}`)
  assert.equal(block.hash, transaction.block)
  assert.deepEqual(await get(`blocks/${block.hash}/txs`), [hash])
  assert.deepEqual(await get(`blocks/${block.height}/txs/cbor`), [{ tx_hash: hash, cbor: raw }])
  assert.deepEqual(await get(`txs/${hash}/cbor`), { cbor: raw })
  const before = await get<{ outputs: { consumed_by_tx: string | null }[] }>(
    `txs/${coin.tx_hash}/utxos`,
  )
  assert.equal(before.outputs[coin.output_index]?.consumed_by_tx, hash)
  const after = await get<{
    inputs: { address: string }[]
    outputs: { address: string; amount: unknown }[]
  }>(`txs/${hash}/utxos`)
  assert.deepEqual(
    [after.inputs[0]?.address, after.outputs[0]?.amount],
    [ALICE, [{ unit: 'lovelace', quantity: '2000000' }]],
  )
})

test('enforces the ledger’s rules: signature, fee, expiry, minimum, balance, double spending', async () => {
  const [first] = await get<[Utxo]>(`addresses/${ALICE}/utxos`)
  await refused(
    (await pay({ key: PrivateKey.from_normal_bytes(Buffer.alloc(32, 7)) })).raw,
    /missing|witness/i,
  )
  const good = await pay()
  const tampered = `${good.raw.slice(0, -30)}${good.raw.at(-30) === '0' ? '1' : '0'}${good.raw.slice(-29)}`
  await refused(tampered, /Invalid verified signatures|vkey/i)
  const fee = BigInt(min_fee(Transaction.from_hex(good.raw), RULES).to_str())
  // The validity flag does not count for the size that the fee pays for.
  await refused((await pay({ fee: fee - 45n })).raw, /less than minimum required/)
  await refused((await pay({ ttl: (await latest()).slot })).raw, /validity interval/)
  await refused((await pay({ amount: 849_069n })).raw, /too small/)
  await refused((await pay({ to: addressOf(KEY, 1) })).raw, /[Nn]etwork/)
  await refused(
    (await pay({ coin: { ...first, amount: [{ unit: 'lovelace', quantity: '900000000' }] } })).raw,
    /[Vv]alue/,
  )
  await refused('ff00', /Decoder/)
  const other = await pay({ amount: 3_000_000n })
  assert.equal((await submit((await pay({ fee: fee - 44n, amount: 849_070n })).raw)).status, 200)
  await refused(other.raw, /[Mm]issing inputs/)
  await control({ command: 'mine', blocks: 1 })
})

test('the faucet mints native tokens and adds them to an output', async () => {
  const { hash } = await fund('3', { tokens: { GOLD: '1000', silver: '9223372036854775807' } })
  const { outputs } = await get<{ outputs: { amount: { unit: string; quantity: string }[] }[] }>(
    `txs/${hash}/utxos`,
  )
  const [output] = outputs
  assert.deepEqual(
    output?.amount
      .map(({ unit, quantity }) => [Buffer.from(unit.slice(56), 'hex').toString(), quantity])
      .slice(1),
    [
      ['GOLD', '1000'],
      ['silver', '9223372036854775807'],
    ],
  )
  assert.match(
    JSON.stringify(
      await devnet.rawControl(
        JSON.stringify({ command: 'fund', asset: 'ADA', address: ALICE, amount: '0.5' }),
      ),
    ),
    /too small/,
  )
  assert.equal(
    (
      await devnet.rawControl(
        JSON.stringify({
          command: 'fund',
          asset: 'ADA',
          address: addressOf(KEY, 1).to_bech32(),
          amount: '5',
        }),
      )
    ).status,
    400,
  )
  assert.equal(
    (
      await devnet.rawControl(
        JSON.stringify({
          command: 'fund',
          asset: 'BTC',
          address: ALICE,
          amount: '5',
          tokens: { A: '1' },
        }),
      )
    ).status,
    400,
  )
})

test('never includes a transaction past its expiry, and can advance slots', async () => {
  const { slot } = await latest()
  const { raw, hash } = await pay({ ttl: slot + 30 })
  await control({ command: 'mine', blocks: 1, seconds: 100 })
  assert.ok((await latest()).slot >= slot + 100)
  await refused(raw, /validity interval/)
  assert.equal((await ask(`txs/${hash}`)).status, 404)
})

test('the faucet can pay while a reorganisation has returned one of its payments to the pool', async () => {
  await control({ command: 'mine', blocks: 2 })
  const first = await fund('3', { address: BOB.to_bech32() })
  await control({ command: 'reorg', depth: 1 })
  const second = await fund('4', { address: BOB.to_bech32() })
  for (const { hash } of [first, second]) await get(`txs/${hash}`)
})

test('a reorganisation returns transactions to the pool or drops them', async () => {
  const one = await pay()
  await submit(one.raw)
  await control({ command: 'mine', blocks: 1 })
  const before = await get<Head>(`blocks/${(await latest()).height}`)
  await control({ command: 'reorg', depth: 1 })
  assert.notEqual((await get<Head>(`blocks/${before.height}`)).hash, before.hash)
  assert.equal((await ask(`blocks/${before.hash}`)).status, 404)
  await included(one.hash)
  const two = await pay()
  await submit(two.raw)
  await control({ command: 'mine', blocks: 1 })
  await control({ command: 'reorg', depth: 1, drop: true })
  await control({ command: 'mine', blocks: 2 })
  assert.equal((await ask(`txs/${two.hash}`)).status, 404)
})

test('simulates faults: a refused submission and a lost response', async () => {
  const { raw, hash } = await pay()
  await control({ command: 'fault', mode: 'reject' })
  assert.equal((await submit(raw)).status, 425)
  await control({ command: 'fault', mode: 'drop-answer' })
  await assert.rejects(submit(raw))
  await control({ command: 'fault', mode: 'heal' })
  await included(hash)
})

test('after kill -9 every block has the same hash, and the faucet works', async () => {
  await fund('5')
  const head = await latest()
  const hashes = await Promise.all(
    [1, 2, 3, head.height].map(async (height) => (await get<Head>(`blocks/${height}`)).hash),
  )
  const owned = await get<Utxo[]>(`addresses/${ALICE}/utxos`)
  await devnet.killAll()
  devnet = await startDevnet(home)
  assert.deepEqual(
    await Promise.all(
      [1, 2, 3, head.height].map(async (height) => (await get<Head>(`blocks/${height}`)).hash),
    ),
    hashes,
  )
  assert.deepEqual(await get<Utxo[]>(`addresses/${ALICE}/utxos`), owned)
  await fund('7')
  const { raw, hash } = await pay()
  assert.equal((await submit(raw)).status, 200)
  await included(hash)
})

test('genesis and protocol parameters return the network magic and the fee parameters', async () => {
  assert.equal((await get<{ network_magic: number }>('genesis')).network_magic, 42)
  const {
    min_fee_a: a,
    min_fee_b: b,
    coins_per_utxo_size: c,
  } = await get<Record<string, unknown>>('epochs/latest/parameters')
  assert.deepEqual([a, b, c], [44, 155_381, '4310'])
  assert.deepEqual(await (await ask('txs/00')).json(), {
    status_code: 404,
    error: 'Not Found',
    message: 'The requested component has not been found.',
  })
})
