import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ETH, eth, usdt } from '../../testing/signer-cluster.ts'
import {
  addressOf,
  ask,
  asksAbout,
  asksPay,
  asksRule,
  Bench,
  keyOf,
  names,
  pay,
  SESSION,
  staked,
  TRX,
} from '../../testing/judging.ts'

/** The entries of a step in a node's record before anything is signed. */
const ONE = 10n ** 18n
const GWEI = 1_000_000_000n
const FEE = 21_000n * 2n * GWEI
const FRIEND = 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY'
const ID = '11111111-1111-4111-8111-111111111111'
const tank = [0, ETH.chain_index, 0]

test('stores the seen request, the rule and the void once, and the step as judged', async (t) => {
  const own = new Bench()
  t.after(() => {
    own.close()
  })
  const by = own.caller(3)
  const path = [3, ETH.chain_index, 0]
  const rule = await asksRule(by)
  const of = { kind: 'forward', id: ID, rule: rule.request }
  const admitted = async (purpose: object, unsigned: ReturnType<typeof eth>, session = SESSION) => {
    const from = own.store.record.height + 1
    own.judge.admit(await own.verdict(purpose, unsigned), session)
    return own.store.record
      .page(from, 100)
      .map(({ kind, body }) => ({ kind, body: JSON.parse(body) }))
  }
  const first = await admitted(of, eth(path, { value: ONE }), {
    ...SESSION,
    sessions: ['a'] as never[],
  })
  assert.deepEqual(
    first.map(({ kind }) => kind),
    ['seen', 'rule', 'step'],
  )
  const { body } = first[2]!
  const unsigned = eth(path, { value: ONE })
  const verdict = await own.verdict(of, unsigned)
  const key = names('forward', 'nonce', by.api_key, rule.nonce)
  assert.equal(first[0]!.body.intent, key)
  assert.deepEqual(first[1]!.body, verdict.rule)
  const account = names('ETH', addressOf(ETH, path))
  assert.deepEqual(body, {
    step: verdict.step,
    purpose: 'forward',
    workspace: 'w',
    key_id: 'key of secp256k1',
    intent: verdict.step,
    content: verdict.intent!.content,
    transaction_id: ID,
    unsigned_hash: verdict.unsignedHash,
    unsigned: { network: 'ETH', bytes: unsigned.bytes, inputs: [{ path }] },
    decoded: body.decoded,
    consumes: verdict.decoded.consumes,
    account,
    nonce: '0',
    rule: rule.id,
    fuelled: null,
    charges: [
      { budget: names('forward', rule.id), amount: (ONE + FEE).toString() },
      { budget: names('w', 'ETH', '3'), amount: FEE.toString() },
    ],
    sessions: ['a'],
    partner: 2,
    peer_head: null,
  })
  const again = await admitted(of, unsigned, { ...SESSION, sessions: ['b'] as never[] })
  assert.deepEqual(again, [
    {
      kind: 'session',
      body: {
        step_height: own.store.record.height - 1,
        sessions: ['b'],
        partner: 2,
        peer_head: null,
      },
    },
  ])
  const dearer = await admitted(of, eth(path, { value: ONE, maxFeePerGas: 3n * GWEI }))
  assert.deepEqual(
    dearer.map(({ kind }) => kind),
    ['step'],
  )

  const cancel = async (maxFeePerGas: bigint) =>
    admitted(
      { kind: 'cancel', of, request: (await asksAbout(by, ID, 'cancel')).request },
      eth(path, { to: addressOf(ETH, path), maxFeePerGas }),
    )
  const voided = await cancel(4n * GWEI)
  assert.deepEqual(
    voided.map(({ kind }) => kind),
    ['seen', 'void', 'step'],
  )
  assert.deepEqual(voided[1]!.body, { keys: [verdict.step], transaction_id: ID, signed_hashes: [] })
  assert.deepEqual([voided[2]!.body.purpose, voided[2]!.body.rule], ['cancel', null])
  assert.deepEqual(
    (await cancel(5n * GWEI)).map(({ kind }) => kind),
    ['seen', 'step'],
  )

  const requests = [await asksPay(by), await asksPay(by)]
  const cost = { gas: '21000', max_fee_per_gas: '1' }
  const [one, two] = requests.map((request) => pay(request))
  const shared = await admitted(
    { kind: 'fuel', for: one, ...cost, beside: [{ for: two, ...cost }] },
    eth(tank, { to: addressOf(ETH, path), value: 1n }),
  )
  const { beside } = shared.at(-1)!.body
  assert.deepEqual(
    shared.map(({ kind }) => kind),
    ['seen', 'seen', 'step'],
  )
  assert.deepEqual(beside, [
    {
      step: names('fuel', keyOf(requests[1]!)),
      intent: keyOf(requests[1]!),
      content: (await own.judge.understand(requests[1]!.request)).want.content,
      transaction_id: requests[1]!.id,
    },
  ])
  const sweep = { kind: 'sweep', sub_account: 3, asset: 'USDT_ETH', address_index: 7 }
  const [swept] = await admitted(
    sweep,
    usdt([3, ETH.chain_index, 7], addressOf(ETH, path), 5_000_000n),
  )
  assert.deepEqual(swept!.body.fuelled, {
    kind: 'fees',
    address: addressOf(ETH, [3, ETH.chain_index, 7]),
    amount: (130_000n * GWEI).toString(),
    network: 'ETH',
  })
  assert.deepEqual(
    [swept!.body.intent, swept!.body.content, swept!.body.transaction_id, swept!.body.rule],
    [null, null, null, null],
  )
  const order = await ask(by, '/dav/v1/stake', {
    asset: 'TRX',
    address: FRIEND,
    resource: 'ENERGY',
    amount: 100,
  })
  const unnumbered = await admitted(
    { kind: 'stake', step: 'freeze', request: order.request },
    staked([3, TRX.chain_index, 0], { kind: 'freeze' }),
  )
  assert.deepEqual([unnumbered.at(-1)!.body.account, unnumbered.at(-1)!.body.nonce], [null, null])
})
