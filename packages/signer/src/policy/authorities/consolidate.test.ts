import { CHANGE_INDEX, pathOf } from '@custody/chains'
import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { ask, Bench, IAT, pay, WALLET, type JudgedRequest } from '../../../testing/judging.ts'
import {
  BTC,
  btc,
  funding,
  SINK_BTC_SCRIPT,
  type BtcOptions,
  type Caller,
} from '../../../testing/signer-cluster.ts'

/**
 * A hostile platform holds a caller's signed request to merge coins, and tries to use it for anything
 * else.
 */
const WALLET_ID = '0b9d4f6e-6a55-4a5c-9b5e-2d5f2f1f7c11'
const uri = (id = WALLET_ID) => `/dac/v1/wallets/${id}/consolidate`
const VALUE = 10_000n
const path = (index: number, subAccount = 1) => pathOf(BTC, subAccount, index)
const CHANGE = path(CHANGE_INDEX)
/** Size in vbytes: 41 bytes, the marker of two weight units, and 68 vbytes for each input. */
const vsize = (inputs: number) => BigInt(Math.ceil((41 * 4 + 2 + inputs * 272) / 4))

let bench: Bench
let mine: Caller
beforeEach(() => {
  bench = new Bench()
  mine = bench.caller(1)
})
afterEach(() => {
  bench.close()
})

const body = (more: object = {}) => ({
  asset: 'BTC',
  max_fee_rate: '2',
  target_coins: 1,
  sequence_id: 'merge-1',
  ...more,
})
const asks = (more: object = {}, caller = mine, at = uri()): Promise<JudgedRequest> =>
  ask(caller, at, body(more))
const merge = ({ request }: JudgedRequest, more: object = {}) => ({
  kind: 'consolidate',
  request,
  ...more,
})

/** Script of the output that pays a path of the workspace. */
const scriptAt = (to: number[]): Buffer =>
  Buffer.from(funding(WALLET, [{ path: to, value: 1n }]).outs[0]!.script)

interface Merged {
  inputs?: number
  fee?: bigint
  to?: Buffer
  /** Sub-account and index of the last input. */
  last?: number[]
  change?: BtcOptions['change']
  from?: ReturnType<typeof funding>
}
/** Returns a transaction that merges coins of one funding transaction. */
function merged({ inputs = 10, fee = vsize(inputs), to, last, change, from }: Merged = {}) {
  const paths = Array.from({ length: inputs }, (_, at) => path(at % 5))
  if (last) paths[inputs - 1] = last
  const source =
    from ??
    funding(
      WALLET,
      paths.map((each) => ({ path: each, value: VALUE })),
    )
  return btc(WALLET, {
    inputs: paths.map((each, output) => ({ funding: source, output, path: each })),
    payTo: to ?? scriptAt(CHANGE),
    amount: BigInt(inputs) * VALUE - fee - (change?.value ?? 0n),
    ...(change ? { change } : {}),
  })
}

test('permits 10 to 200 inputs of the wallet that pay its change address', async () => {
  for (const inputs of [10, 200]) {
    const request = await asks({ sequence_id: `n-${inputs}` })
    assert.equal(await bench.codeOf(merge(request), merged({ inputs })), null)
  }
})

test('attack: refuses every transaction that does anything else', async () => {
  const request = await asks()
  const cases: [string, Merged, RegExp][] = [
    ['output elsewhere', { to: SINK_BTC_SCRIPT }, /^DESTINATION_MISMATCH/],
    ['output to a deposit address', { to: scriptAt(path(3)) }, /^DESTINATION_MISMATCH/],
    [
      "output to another sub-account's change",
      { to: scriptAt(path(CHANGE_INDEX, 2)) },
      /^DESTINATION_MISMATCH/,
    ],
    ['two outputs', { change: { path: CHANGE, value: 5_000n } }, /^SHAPE: A consolidation must/],
    [
      'a payment besides the change',
      { to: SINK_BTC_SCRIPT, change: { path: CHANGE, value: 5_000n } },
      /^SHAPE: A consolidation must/,
    ],
    ['input of another sub-account', { last: path(0, 2) }, /^FOREIGN_PATH/],
    ['input of the gas tank', { last: path(0, 0) }, /^FOREIGN_PATH/],
    ['9 inputs', { inputs: 9 }, /^SHAPE: .* must have 10 to 200 inputs, and has 9$/],
    ['201 inputs', { inputs: 201 }, /^SHAPE: .* must have 10 to 200 inputs, and has 201$/],
    ['fee above max_fee_rate', { fee: vsize(10) * 2n + 1n }, /^FEE_RATE/],
  ]
  for (const [name, change, code] of cases)
    assert.match((await bench.codeOf(merge(request), merged(change))) ?? 'signed', code, name)
  assert.equal(await bench.codeOf(merge(request), merged({ fee: vsize(10) * 2n })), null)
})

test("attack: refuses a fee above the node's cap, whatever the caller allows", async () => {
  const request = await asks({ max_fee_rate: '100000' })
  const fee = BigInt(BTC.fee_cap) + 1n
  const source = funding(
    WALLET,
    Array.from({ length: 10 }, () => ({ path: path(0), value: 1_000_000n })),
  )
  const unsigned = btc(WALLET, {
    inputs: source.outs.map((_, output) => ({ funding: source, output, path: path(0) })),
    payTo: scriptAt(CHANGE),
    amount: 10_000_000n - fee,
  })
  assert.match((await bench.codeOf(merge(request), unsigned)) ?? 'signed', /^FEE_CAP/)
})

test('attack: a request without asset permits one transaction, of one network only', async () => {
  const request = await asks({ asset: undefined })
  // The same bytes as one of a coin that has another network's path.
  const ltc = { ...merged(), network: 'LTC' }
  assert.match(
    (await bench.codeOf(merge(request), ltc)) ?? 'signed',
    /^(?:FOREIGN_PATH|SHAPE|PATH)/,
  )
  const ether = { ...merged(), network: 'ETH' }
  assert.notEqual(await bench.codeOf(merge(request), ether), null)
  assert.notEqual(await bench.codeOf(merge(request), { ...merged(), network: 'NONE' }), null)
  assert.match(
    (await bench.codeOf(merge(request), merged({ fee: vsize(10) * 2n + 1n }))) ?? 'signed',
    /^FEE_RATE/,
  )
  const first = merged()
  assert.equal(await bench.codeOf(merge(request), first), null)
  assert.match((await bench.codeOf(merge(request), merged())) ?? 'signed', /^NOT_EXCLUSIVE/)
  // Another wallet's request with the same sequence_id is another intent; a changed one is not.
  const changed = asks({ asset: undefined, max_fee_rate: '9' })
  assert.match((await bench.codeOf(merge(await changed), merged())) ?? 'signed', /^INTENT_CONFLICT/)
})

test('attack: one request permits one transaction and its replacements', async () => {
  const source = funding(
    WALLET,
    Array.from({ length: 10 }, (_, at) => ({ path: path(at % 5), value: VALUE })),
  )
  const request = await asks()
  const first = merged({ from: source })
  assert.equal(await bench.codeOf(merge(request), first), null)
  assert.equal(await bench.codeOf(merge(request), first), null, 'the same transaction again')
  assert.match((await bench.codeOf(merge(request), merged())) ?? 'signed', /^NOT_EXCLUSIVE/)
  const bumped = merged({ from: source, fee: vsize(10) * 2n })
  assert.equal(await bench.codeOf(merge(request), bumped), null)
  // The same sequence_id in another token is the same intent.
  assert.match((await bench.codeOf(merge(await asks()), merged())) ?? 'signed', /^NOT_EXCLUSIVE/)
  assert.match(
    (await bench.codeOf(merge(await asks({ max_fee_rate: '9' })), merged())) ?? 'signed',
    /^INTENT_CONFLICT/,
  )
  assert.match(
    (await bench.codeOf(
      merge(await asks({}, mine, uri(`${WALLET_ID.slice(0, -1)}2`))),
      merged(),
    )) ?? 'signed',
    /^INTENT_CONFLICT/,
  )
})

test('attack: only the own signed request of this route permits a consolidation', async () => {
  const code = async (request: JudgedRequest, more: object = {}, workspace?: string) =>
    (await bench.codeOf(merge(request, more), merged(), workspace)) ?? 'signed'
  const refusals: [string, Promise<JudgedRequest>, RegExp][] = [
    ['another sub-account', asks({}, bench.caller(2)), /^FOREIGN_PATH/],
    ['another workspace', asks({}, bench.caller(1, { workspace: 'x' })), /^WORKSPACE_MISMATCH/],
    ['a read-only key', asks({}, bench.caller(1, { role: 'read-only' })), /^READ_ONLY/],
    ['a key that is not enrolled', asks({}, { ...mine, api_key: 'x' }), /^NOT_ENROLLED/],
    ['a query', asks({}, mine, `${uri()}?x=1`), /^ACTION_NOT_ALLOWED/],
    ['another path', asks({}, mine, `/dac/v1/wallets/${WALLET_ID}`), /^ACTION_NOT_ALLOWED/],
    ['another asset', asks({ asset: 'LTC' }), /^FOREIGN_PATH|^NETWORK_MISMATCH/],
    ['a coin that cannot be merged', asks({ asset: 'ADA' }), /^BAD_REQUEST_FIELD: asset/],
    ['a token', asks({ asset: 'USDT_ETH' }), /^BAD_REQUEST_FIELD: asset/],
    ['an unknown asset', asks({ asset: 'XYZ' }), /^UNKNOWN_ASSET/],
    ['no max_fee_rate', asks({ max_fee_rate: undefined }), /^BAD_REQUEST_FIELD: max_fee_rate/],
    ['a max_fee_rate of 0', asks({ max_fee_rate: '0' }), /^BAD_REQUEST_FIELD: max_fee_rate/],
    ['target_coins 0', asks({ target_coins: 0 }), /^BAD_REQUEST_FIELD: target_coins/],
    ['target_coins as text', asks({ target_coins: '1' }), /^BAD_REQUEST_FIELD: target_coins/],
    ['min_value 0', asks({ min_value: 0 }), /^BAD_REQUEST_FIELD: min_value/],
    ['no sequence_id', asks({ sequence_id: undefined }), /^BAD_REQUEST_FIELD: sequence_id/],
    ['another field', asks({ fee_rate: 1 }), /^BAD_REQUEST_FIELD: fee_rate/],
  ]
  for (const [name, request, expected] of refusals)
    assert.match(await code(await request), expected, name)
  const request = await asks()
  const forged = {
    ...request,
    request: { ...request.request, body: JSON.stringify(body({ max_fee_rate: '9' })) },
  }
  assert.match(await code(forged), /^NOT_AUTHENTIC/)
  await assert.rejects(async () => bench.order({ kind: 'consolidate' }, merged()))
  assert.match(
    (await bench.codeOf(pay(request), merged())) ?? 'signed',
    /^ACTION_NOT_ALLOWED: The signed request is not for a payment/,
  )
  bench.now = IAT + 100_000
  assert.match(await code(request), /^TOO_OLD/)
})

test('charges the fee to the budget of the sub-account, and only the largest of one request', async () => {
  const small = new Bench(1)
  try {
    const caller = small.caller(1)
    const rate = BigInt(BTC.fee_cap) / vsize(10)
    const values = Array.from({ length: 10 }, () => ({ path: path(0), value: 1_000_000n }))
    const order = async (sequence_id: string, part: bigint, source = funding(WALLET, values)) =>
      small.codeOf(
        merge(await asks({ max_fee_rate: '100000', sequence_id }, caller)),
        btc(WALLET, {
          inputs: source.outs.map((_, output) => ({ funding: source, output, path: path(0) })),
          payTo: scriptAt(CHANGE),
          amount: 10_000_000n - (vsize(10) * rate * part) / 4n,
        }),
      )
    const source = funding(WALLET, values)
    assert.equal(await order('a', 2n, source), null)
    assert.equal(await order('a', 3n, source), null)
    assert.match((await order('b', 2n)) ?? 'signed', /^BUDGET/)
    assert.equal(await order('c', 1n), null)
  } finally {
    small.close()
  }
})

test('no policy judges it, and a stop of its sub-account holds it', async () => {
  const verdict = await bench.verdict(merge(await asks()), merged())
  assert.deepEqual([verdict.acts(), verdict.isAct, verdict.serves], [[], false, [1]])
})

test('refuses a request that was voided, and one of a revoked key', async () => {
  const request = await asks()
  const key = (await bench.verdict(merge(request), merged())).intent!.key
  bench.store.append('void', { keys: [key], transaction_id: null, signed_hashes: [] })
  assert.match((await bench.codeOf(merge(request), merged())) ?? 'signed', /^VOIDED/)
  bench.store.append('revoke', { api_key: mine.api_key } as never)
  assert.match((await bench.codeOf(merge(request), merged())) ?? 'signed', /^NOT_ENROLLED/)
})
