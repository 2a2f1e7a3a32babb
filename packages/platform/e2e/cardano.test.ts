// Tests of ADA end to end on a local chain that applies Cardano's ledger rules. Two other libraries
// verify the transactions that the platform broadcasts.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { check_block_or_tx_signatures } from '@cardananium/cquisitor-lib'
import {
  BigNum,
  DataCost,
  LinearFee,
  min_ada_for_output,
  min_fee,
  Transaction,
} from '@emurgo/cardano-serialization-lib-nodejs'
import {
  balance,
  call,
  fundedWallet,
  terminal,
  TestPlatform,
  transferBody,
  waitFor,
  type Transfer,
  type User,
} from '../testing/harness.ts'

const platform = new TestPlatform()
let user: User
let customer: User
let source = ''
let devnetUrl = ''
/** Addresses of CIP-19's test vectors: an enterprise address and a base address. */
const STRANGER = 'addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz'
const BASE =
  'addr_test1qz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer3n0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgs68faae'

interface Utxo {
  tx_hash: string
  output_index: number
  amount: { unit: string; quantity: string }[]
}
interface Utxos {
  inputs: { address: string; tx_hash: string; output_index: number }[]
  outputs: { address: string; amount: Utxo['amount']; consumed_by_tx: string | null }[]
}
const ask = (path: string) => fetch(`${devnetUrl}/ada/${path}`)
const get = async <T>(path: string): Promise<T> => {
  const answer = await ask(path)
  assert.equal(answer.status, 200, `${path}: ${await answer.clone().text()}`)
  return (await answer.json()) as T
}
const lovelaceAt = async (address: string): Promise<bigint> =>
  (await get<Utxo[]>(`addresses/${address}/utxos`)).reduce(
    (sum, { amount }) =>
      sum + BigInt(amount.find(({ unit }) => unit === 'lovelace')?.quantity ?? 0),
    0n,
  )
const send = (amount: string, to: string, more: Record<string, unknown> = {}, from = user) =>
  call<Transfer & { code: string; message: string }>(
    from,
    'POST',
    '/dac/v1/transaction',
    transferBody('ADA', amount, to, more),
  )
async function sent(
  amount: string,
  to: string,
  more: Record<string, unknown> = {},
  from = user,
): Promise<Transfer> {
  const answer = await send(amount, to, more, from)
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}
async function done(id: string, from = user): Promise<Transfer> {
  const transfer = await terminal(from, id)
  assert.equal(transfer.status, 'confirmed', `${transfer.failure_reason ?? ''}\n${platform.output}`)
  return transfer
}
const confirmed = async (...o: Parameters<typeof sent>): Promise<Transfer> =>
  done((await sent(...o)).id, o[3])
const shown = async (id: string) =>
  (await call<Transfer>(user, 'GET', `/dac/v1/transaction/${id}`)).body
const devnet = (command: Record<string, unknown>) =>
  platform.operator('devnet', { network: 'ADA', ...command })
const fund = async (address: string, amount: string, more: Record<string, unknown> = {}) =>
  (await platform.operator('devnet', { command: 'fund', asset: 'ADA', address, amount, ...more }))[
    'hash'
  ] as string
const holds = (amount: string, who = user) =>
  waitFor(
    `a balance of ${amount}`,
    async () => (await balance(who, 'ADA')).omnibus_balance === amount,
  )
const audited = async () => {
  const { ok, differences } = await platform.operator('audit')
  assert.ok(ok, JSON.stringify(differences))
}

/**
 * Verifies a broadcast transaction with two libraries that the builder does not use: signatures,
 * minimum fee and minimum outputs.
 */
async function judged(hash: string): Promise<Utxos> {
  const { cbor } = await get<{ cbor: string }>(`txs/${hash}/cbor`)
  const checked = check_block_or_tx_signatures(cbor) as unknown as { valid: boolean }
  assert.ok(checked.valid, JSON.stringify(checked))
  const transaction = Transaction.from_hex(cbor)
  const body = transaction.body()
  assert.ok(
    BigInt(body.fee().to_str()) >=
      BigInt(
        min_fee(
          transaction,
          LinearFee.new(BigNum.from_str('44'), BigNum.from_str('155381')),
        ).to_str(),
      ),
  )
  for (let at = 0; at < body.outputs().len(); at++) {
    const output = body.outputs().get(at)
    assert.ok(
      BigInt(output.amount().coin().to_str()) >=
        BigInt(
          min_ada_for_output(output, DataCost.new_coins_per_byte(BigNum.from_str('4310'))).to_str(),
        ),
    )
  }
  return get<Utxos>(`txs/${hash}/utxos`)
}

before(
  async () => {
    await platform.start()
    devnetUrl = `http://127.0.0.1:${(JSON.parse(readFileSync(join(platform.home, 'ports.json'), 'utf8')) as { devnet: number }).devnet}`
    user = await platform.user('cardano')
    customer = await platform.user('cardano-customer')
    source = await fundedWallet(platform, user, 'ADA', '100')
  },
  { timeout: 240_000 },
)
after(async () => platform.remove())

test('credits a deposit after enough confirmations, at an enterprise address with a payment URI', async () => {
  assert.match(source, /^addr_test1v/)
  assert.deepEqual(
    await balance(user, 'ADA').then(({ balance: free, omnibus_balance: held }) => [free, held]),
    ['100', '100'],
  )
  assert.equal(await lovelaceAt(source), 100_000_000n)
  const {
    body: {
      data: [deposit],
    },
  } = await call<{ data: { source_id: string | null }[] }>(
    user,
    'GET',
    '/dac/v1/transactions?asset=ADA&type=Deposit',
  )
  assert.match(
    deposit?.source_id ?? '',
    /^addr_test1v/,
    'who paid is named, of the very first deposit too',
  )
  const { body } = await call<{ valid: boolean; reason?: string }>(
    user,
    'POST',
    '/dac/v1/validate-address',
    { asset: 'ADA', address: 'stake_test1uqehkck0lajq8gr28t9uxnuvgcqrc6070x3k9r8048z8y5gssrtvn' },
  )
  assert.match(JSON.stringify(body), /stake address/)
})

test('ADA is sent with the exact estimated fee, and the customer receives the whole amount', async () => {
  await call(customer, 'POST', '/dac/v1/create-wallet', { asset: 'ADA' })
  const { address } = (
    await call<{ address: string }>(customer, 'POST', '/dac/v1/address', { asset: 'ADA' })
  ).body
  const rates = (await call<Record<string, unknown>>(user, 'GET', '/dac/v1/network-fee-rates/ADA'))
    .body
  assert.match(JSON.stringify(rates), /"?44"?/)
  const estimate = (
    await call<{ fee: unknown; basis: string }>(user, 'POST', '/dac/v1/estimate-fee', {
      asset: 'ADA',
      fee_rate: 44,
      amount: 30,
    })
  ).body
  const transfer = await confirmed('30', address)
  assert.equal(String(estimate.fee), transfer.fee)
  await holds('30', customer)
  const { outputs } = await judged(transfer.hash as string)
  assert.deepEqual(
    [outputs[0]?.address, outputs[0]?.amount],
    [address, [{ unit: 'lovelace', quantity: '30000000' }]],
  )
  const left = 70_000_000n - BigInt(Math.round(Number(transfer.fee) * 1e6))
  assert.equal(outputs[1]?.amount[0]?.quantity, left.toString())
  assert.equal(
    (await balance(user, 'ADA')).omnibus_balance,
    `${left / 1_000_000n}.${(left % 1_000_000n).toString().padStart(6, '0')}`.replace(/0+$/, ''),
  )
  await audited()
})

test('invalid amounts, addresses, tags and fee rates get 400 with the reason', async () => {
  const cases: [string, string, Record<string, unknown>, RegExp][] = [
    ['0.9', STRANGER, {}, /must be at least 1 ADA/],
    ['5', 'stake_test1uqehkck0lajq8gr28t9uxnuvgcqrc6070x3k9r8048z8y5gssrtvn', {}, /stake address/],
    ['5', 'addr1vx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzers66hrl8', {}, /another network/],
    ['5', STRANGER, { address_tag: '7' }, /no address tags/],
    ['5', STRANGER, { fee_rate: 43 }, /at least 44 Lovelace, the minimum/],
    ['5', STRANGER, { fee_rate: 44.5 }, /decimals/],
    ['500', STRANGER, {}, /spendable balance/],
  ]
  for (const [amount, to, more, reason] of cases) {
    const answer = await send(amount, to, more)
    assert.equal(answer.status, 400, `${amount} ${to}: ${answer.text}`)
    assert.match(answer.text, reason)
  }
})

test('spends from every address of the wallet with one signature per key, at the given fee rate', async () => {
  const further = (
    await call<{ address: string }>(user, 'POST', '/dac/v1/address', { asset: 'ADA' })
  ).body.address
  assert.notEqual(further, source)
  const before = Number((await balance(user, 'ADA')).omnibus_balance)
  await Promise.all([fund(further, '40'), fund(further, '41'), fund(source, '42')])
  await waitFor(
    'three deposits',
    async () => Number((await balance(user, 'ADA')).omnibus_balance) > before + 122,
  )
  const transfer = await confirmed('190', BASE, { fee_rate: 50 })
  const { inputs } = await judged(transfer.hash as string)
  assert.equal(inputs.length, 4)
  const witnesses = Transaction.from_hex(
    (await get<{ cbor: string }>(`txs/${transfer.hash}/cbor`)).cbor,
  )
    .witness_set()
    .vkeys()
  assert.equal(witnesses?.len(), 3)
  assert.equal(await lovelaceAt(BASE), 190_000_000n)
  await audited()
})

test('pays concurrent transfers once each, and spends the change of one transfer in another', async () => {
  await fund(source, '30')
  await waitFor('the deposit', async () => Number((await balance(user, 'ADA')).balance) > 31)
  const before = await lovelaceAt(STRANGER)
  const ids = await Promise.all(['2', '3', '2'].map((amount) => sent(amount, STRANGER)))
  const all = await Promise.all(ids.map(({ id }) => done(id)))
  assert.equal(new Set(all.map(({ hash }) => hash)).size, 3)
  assert.equal((await lovelaceAt(STRANGER)) - before, 7_000_000n)
  await audited()
})

test('credits the ADA of an output with native tokens, and keeps the tokens in the wallet', async () => {
  const other = await platform.user('cardano-tokens')
  const address = await fundedWallet(platform, other, 'ADA', '4')
  const hash = await fund(address, '3', { tokens: { GOLD: '1000', silver: '7' } })
  await holds('7', other)
  const unit = async (txid: string) =>
    (await get<Utxos>(`txs/${txid}/utxos`)).outputs.flatMap(({ amount }, index) =>
      amount.filter((each) => each.unit !== 'lovelace').map((each) => ({ ...each, index })),
    )
  const tokens = await unit(hash)
  assert.equal(tokens.length, 2)
  // The ADA that must stay with the tokens is not spendable.
  const free = (await balance(other, 'ADA')).balance
  assert.ok(Number(free) > 5 && Number(free) < 6, free)
  const refused = await send('5.9', STRANGER, {}, other)
  assert.match(refused.text, /must stay on the account/)
  // The output without tokens is enough for the first transfer. The second one must also spend the
  // output with tokens.
  const first = await confirmed('1', STRANGER, {}, other)
  assert.deepEqual(await unit(first.hash as string), [])
  const second = await confirmed('4', STRANGER, {}, other)
  await judged(second.hash as string)
  const change = await unit(second.hash as string)
  assert.deepEqual(
    change.map((each) => [each.unit, each.quantity]).toSorted(),
    tokens.map((each) => [each.unit, each.quantity]).toSorted(),
  )
  assert.deepEqual(
    change.map(({ index }) => index),
    [1, 1],
  )
  await audited()
})

test('rebuilds an expired, unseen transfer with the same inputs, and pays it once', async () => {
  const target = (
    await call<{ address: string }>(customer, 'POST', '/dac/v1/address', { asset: 'ADA' })
  ).body.address
  await devnet({ command: 'fault', mode: 'reject' })
  const { id } = await sent('5', target)
  const first = await waitFor('signed', async () => {
    const transfer = await shown(id)
    return transfer.hash !== null && ['BROADCASTING', 'CONFIRMING'].includes(transfer.sub_status)
      ? transfer
      : null
  })
  // The transaction has expired, but the expiry is not yet at full depth, so the transfer does not
  // change.
  await devnet({ command: 'mine', blocks: 1, seconds: 4000 })
  await devnet({ command: 'mine', blocks: 20 })
  await devnet({ command: 'fault', mode: 'heal' })
  const second = await done(id)
  assert.notEqual(second.hash, first.hash, 'another transaction than the one that expired')
  assert.equal((await ask(`txs/${first.hash}`)).status, 404)
  await judged(second.hash as string)
  assert.equal(await lovelaceAt(target), 5_000_000n)
  await audited()
})

test('pays a transfer once if the nodes are paused past the expiry of its transaction', async () => {
  const before = await lovelaceAt(STRANGER)
  const { id } = await platform.withoutNodes(async () => {
    const made = await sent('2', STRANGER)
    await waitFor('built', async () => (await shown(made.id)).sub_status === 'SIGNING')
    await devnet({ command: 'mine', blocks: 20, seconds: 4000 })
    return made
  })
  await done(id)
  assert.equal((await lovelaceAt(STRANGER)) - before, 2_000_000n)
})

test('a reorganisation removes a deposit and a transfer, and both are then mined again', async () => {
  const before = await lovelaceAt(STRANGER)
  const id = await platform.halted('ADA', async () => {
    const transfer = await sent('2', STRANGER)
    const hash = async () => (await shown(transfer.id)).hash
    await platform.mineUntil(
      'ADA',
      'included',
      async () => (await hash()) !== null && (await ask(`txs/${await hash()}`)).status === 200,
    )
    const included = await hash()
    await devnet({ command: 'reorg', depth: 2 })
    assert.equal((await ask(`txs/${included}`)).status, 404)
    return transfer.id
  })
  await done(id)
  assert.ok((await lovelaceAt(STRANGER)) >= before)
  const height = async () => (await get<{ height: number }>('blocks/latest')).height
  const held = Number((await balance(user, 'ADA')).omnibus_balance)
  await platform.halted('ADA', async () => {
    await fund(source, '9')
    const at = await height()
    await devnet({ command: 'reorg', depth: 1 })
    assert.ok((await height()) > at)
  })
  await waitFor(
    'the deposit',
    async () => Math.abs(Number((await balance(user, 'ADA')).omnibus_balance) - held - 9) < 1e-6,
  )
  await audited()
})

test('pays each transfer once if a response is lost and the platform is killed', async () => {
  const before = await lovelaceAt(STRANGER)
  await devnet({ command: 'fault', mode: 'drop-answer' })
  const ids = await Promise.all(['2', '2', '3'].map((amount) => sent(amount, STRANGER)))
  await new Promise((resolve) => setTimeout(resolve, 150))
  await platform.kill()
  await platform.start()
  user.base = platform.base
  await devnet({ command: 'fault', mode: 'heal' })
  for (const { id } of ids) await done(id)
  assert.equal((await lovelaceAt(STRANGER)) - before, 7_000_000n)
  await audited()
})

test('while the chain is unreachable, fee rates report an error, and an accepted transfer waits', async () => {
  await devnet({ command: 'fault', mode: 'down' })
  const { id } = await sent('2', STRANGER)
  await waitFor(
    'rates refused',
    async () => (await call(user, 'GET', '/dac/v1/network-fee-rates/ADA')).status === 503,
    30_000,
  )
  assert.equal((await shown(id)).status, 'pending')
  await devnet({ command: 'fault', mode: 'heal' })
  await done(id)
  await audited()
})
