import { signRequest, transactionId, type SignedRequest } from '@custody/request-auth'
import assert from 'node:assert/strict'
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { signBytes } from '../../canonical.ts'
import type { Refusal } from '../../errors.ts'
import type { ForwardIntent } from '../../intent/forward.ts'
import type { Proven } from '../../intent/request.ts'
import { DAY_S, receiptBytes } from '../age.ts'
import { assertBudget } from '../budget.ts'
import { assertStands, standingRule } from '../forward.ts'
import type { Verdict } from '../order.ts'
import { importable } from '../../store/imported.ts'
import { Store } from '../../store/index.ts'
import {
  BTC,
  btc,
  callerKey,
  ETH,
  eth,
  funding,
  SignerCluster,
  now,
  pay,
  SINK_BTC,
  SINK_BTC_SCRIPT,
  SINK_ETH,
  usdt,
  type Answer,
  type Caller,
  type Json,
  type Workspace,
} from '../../../testing/signer-cluster.ts'

/**
 * Rule 13: a hostile platform has a caller's standing rule, and can move nothing that the rule does
 * not allow.
 */
let cluster: SignerCluster
let workspace: Workspace
const ONE = 10n ** 18n
const OTHER = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'
/** Fee of a payment in ether at the gas price of these tests. */
const FEE = 21_000n * 2_000_000_000n
const GWEI = 1_000_000_000n

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
const signed = (answer: Answer) => assert.equal(answer.status, 200, JSON.stringify(answer.body))
const iso = (seconds: number) => new Date(seconds * 1000).toISOString()

type More = Partial<Parameters<typeof signRequest>[0]>
const ruleOf = (caller: Caller, body: Record<string, unknown> | string, more: More = {}) =>
  signRequest({
    apiKey: caller.api_key,
    privateKey: callerKey,
    method: 'POST',
    uri: '/dac/v1/auto-forwarding',
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...more,
  })
const ETH_RULE = { asset: 'ETH', min_amount: 1, destination_address: SINK_ETH, daily_cap: 5 }
const forward = (rule: SignedRequest, id = randomUUID() as string, receipts?: unknown[]) => ({
  kind: 'forward',
  id,
  rule,
  ...(receipts ? { receipts } : {}),
})
const ending = (caller: Caller, id: string, more: More = {}) =>
  signRequest({
    apiKey: caller.api_key,
    privateKey: callerKey,
    method: 'DELETE',
    uri: `/dac/v1/auto-forwarding/${id}`,
    body: '{}',
    ...more,
  })

let next = 500
/** Creates a caller with a rule, which all nodes have received unless the test says otherwise. */
async function standing(
  body: Record<string, unknown> = {},
  nodes = [1, 2, 3],
  more: More = {},
): Promise<{ mine: Caller; path: number[]; rule: SignedRequest; id: string; receipts: Json[] }> {
  const sub = next++
  const mine = await workspace.caller(sub)
  const nonce = randomUUID()
  const rule = await ruleOf(
    mine,
    { ...ETH_RULE, expires_at: iso(now() + 3600), ...body },
    { nonce, ...more },
  )
  const receipts: Json[] = []
  for (const node of nodes) {
    const { status, body: receipt } = await cluster.post(node, '/receipt', { request: rule })
    assert.equal(status, 200, JSON.stringify(receipt))
    receipts.push(receipt)
  }
  return {
    mine,
    path: [sub, ETH.chain_index, 0],
    rule,
    id: transactionId(mine.api_key, nonce),
    receipts,
  }
}

describe('rule 13: limits what a forward may move', () => {
  test('refuses another destination, asset, token contract or tag', async () => {
    const { path, rule } = await standing()
    refused(
      await workspace.sign(forward(rule), eth(path, { value: ONE, to: OTHER })),
      'DESTINATION_MISMATCH',
      7,
    )
    refused(
      await workspace.sign(forward(rule), usdt(path, SINK_ETH, 5_000_000n)),
      'ASSET_MISMATCH',
      7,
    )
    const { path: tokens, rule: token } = await standing({
      asset: 'USDT_ETH',
      min_amount: 1,
      daily_cap: 100,
    })
    refused(
      await workspace.sign(forward(token), usdt(tokens, OTHER, 5_000_000n)),
      'DESTINATION_MISMATCH',
      7,
    )
    refused(await workspace.sign(forward(token), eth(tokens, { value: ONE })), 'ASSET_MISMATCH', 7)
    refused(
      await workspace.sign(forward(token), usdt(tokens, SINK_ETH, 5_000_000n, { to: OTHER })),
      'CONTRACT_MISMATCH',
      5,
    )
    signed(await workspace.sign(forward(token), usdt(tokens, SINK_ETH, 5_000_000n)))
  })
  test('refuses more than the daily cap, in one forward or in several, at each pair', async () => {
    const { path, rule } = await standing()
    refused(
      await workspace.sign(forward(rule), eth(path, { value: 5n * ONE + 1n })),
      'FORWARD_CAP',
      13,
    )
    signed(await workspace.sign(forward(rule), eth(path, { value: 3n * ONE, nonce: 0 })))
    // The network fees of both transactions count, regardless of the wallet that pays them.
    const rest = 2n * ONE - 2n * FEE
    refused(
      await workspace.sign(forward(rule), eth(path, { value: rest + 1n, nonce: 1 })),
      'FORWARD_CAP',
      13,
    )
    // The partner has its own record of the payments in which it took part.
    refused(
      await workspace.sign(forward(rule), eth(path, { value: rest + 1n, nonce: 1 }), [3, 2]),
      'FORWARD_CAP',
      13,
    )
    signed(await workspace.sign(forward(rule), eth(path, { value: rest, nonce: 1 })))
    refused(
      await workspace.sign(forward(rule), eth(path, { value: ONE, nonce: 2 })),
      'FORWARD_CAP',
      13,
    )
  })
  test('refuses less than the minimum amount, and an amount of zero', async () => {
    const { path, rule } = await standing()
    refused(
      await workspace.sign(forward(rule), eth(path, { value: ONE - 1n })),
      'FORWARD_TOO_SMALL',
      13,
    )
    refused(await workspace.sign(forward(rule), eth(path, { value: 0n })), 'FORWARD_TOO_SMALL', 13)
  })
  test('refuses another wallet, the gas tank, and a high fee', async () => {
    const { path, rule } = await standing()
    for (const foreign of [
      [path[0]! + 1000, 60, 0],
      [0, 60, 0],
      [path[0]!, 60, 1],
    ])
      refused(await workspace.sign(forward(rule), eth(foreign, { value: ONE })), 'FOREIGN_PATH', 8)
    refused(
      await workspace.sign(
        forward(rule),
        eth(path, { value: ONE, gas: 1_000_000n, maxFeePerGas: 200n * GWEI }),
      ),
      'FEE_CAP',
      9,
    )
  })
  test('a fee that the wallet pays in the same coin counts against the cap', async () => {
    const { mine, rule } = await standing({
      asset: 'BTC',
      min_amount: 0.001,
      daily_cap: 0.0025,
      destination_address: SINK_BTC,
    })
    const path = (index: number) => [mine.sub_account, BTC.chain_index, index]
    const source = funding(workspace, [
      { path: path(0), value: 150_000n },
      { path: path(1), value: 120_000n },
      { path: path(2), value: 200_000n },
    ])
    const spend = (output: number, amount: bigint, more: Partial<Parameters<typeof btc>[1]> = {}) =>
      btc(workspace, {
        inputs: [{ funding: source, output, path: path(output) }],
        amount,
        payTo: SINK_BTC_SCRIPT,
        ...more,
      })
    refused(
      await workspace.sign(
        forward(rule),
        spend(0, 149_000n, { payTo: Buffer.from(`0014${'77'.repeat(20)}`, 'hex') }),
      ),
      'DESTINATION_MISMATCH',
      7,
    )
    refused(
      await workspace.sign(
        forward(rule),
        btc(workspace, {
          inputs: [{ funding: source, output: 2, path: path(2) }],
          amount: 90_000n,
          change: { path: path(0x7fffffff), value: 109_000n },
        }),
      ),
      'FORWARD_TOO_SMALL',
      13,
    )
    signed(await workspace.sign(forward(rule), spend(0, 149_000n)))
    // The fee has used 0.0015; 0.00099 and a fee of 0.00001 are the rest of the cap, and one more
    // satoshi exceeds it.
    refused(
      await workspace.sign(
        forward(rule),
        btc(workspace, {
          inputs: [{ funding: source, output: 1, path: path(1) }],
          amount: 99_001n,
          change: { path: path(0x7fffffff), value: 19_999n },
        }),
      ),
      'FORWARD_CAP',
      13,
    )
    signed(
      await workspace.sign(
        forward(rule),
        btc(workspace, {
          inputs: [{ funding: source, output: 1, path: path(1) }],
          amount: 99_000n,
          change: { path: path(0x7fffffff), value: 20_000n },
        }),
      ),
    )
  })
  test('one forward is one payment, and a more expensive replacement counts once', async () => {
    const { path, rule } = await standing()
    const id = randomUUID()
    signed(await workspace.sign(forward(rule, id), eth(path, { value: 3n * ONE, nonce: 0 })))
    refused(
      await workspace.sign(forward(rule, id), eth(path, { value: ONE, nonce: 1 })),
      'NOT_EXCLUSIVE',
      6,
    )
    signed(
      await workspace.sign(
        forward(rule, id),
        eth(path, { value: 3n * ONE, nonce: 0, maxFeePerGas: 3n * GWEI }),
      ),
    )
    signed(
      await workspace.sign(
        forward(rule),
        eth(path, { value: 2n * ONE - (FEE * 3n) / 2n - FEE, nonce: 1 }),
      ),
    )
  })
  test('allows one fuel transaction per forward, to its source, within the usual limits', async () => {
    const { path, rule } = await standing()
    const source = workspace.address(ETH, path)
    const tank = [0, ETH.chain_index, 0]
    const fuel = (of: unknown) => ({
      kind: 'fuel',
      for: of,
      gas: '21000',
      max_fee_per_gas: String(2n * GWEI),
    })
    const amount = 21_000n * 2n * GWEI
    const one = forward(rule)
    refused(
      await workspace.sign(fuel(one), eth(tank, { to: OTHER, value: amount, nonce: 0 })),
      'DESTINATION_MISMATCH',
      7,
    )
    refused(
      await workspace.sign(fuel(one), eth(tank, { to: source, value: amount * 2n, nonce: 0 })),
      'FUEL_TOO_LARGE',
      11,
    )
    signed(await workspace.sign(fuel(one), eth(tank, { to: source, value: amount, nonce: 0 })))
    refused(
      await workspace.sign(fuel(one), eth(tank, { to: source, value: amount, nonce: 1 })),
      'NOT_EXCLUSIVE',
      6,
    )
    signed(await workspace.sign(one, eth(path, { value: ONE })))
    const { rule: bitcoin } = await standing({
      asset: 'BTC',
      min_amount: 0.001,
      daily_cap: 1,
      destination_address: SINK_BTC,
    })
    refused(
      await workspace.sign(
        fuel(forward(bitcoin)),
        eth(tank, { to: source, value: amount, nonce: 1 }),
      ),
      'FUEL_WITHOUT_INTENT',
      11,
    )
  })
})

describe('rule 13: limits when a rule is valid', () => {
  test('refuses forwards after a signed end of the rule at every node that received it', async () => {
    const { mine, path, rule, id } = await standing()
    signed(await workspace.sign(forward(rule), eth(path, { value: ONE, nonce: 0 })))
    for (const node of [1, 2]) {
      const request = await ending(mine, id, node === 2 ? { body: '{}' } : {})
      const { status, body } = await cluster.post(node, '/void', { request })
      assert.equal(status, 200, JSON.stringify(body))
      assert.equal(body.voided, true)
      assert.ok(body.record.intent.includes(id))
    }
    for (const pair of [
      [1, 2],
      [2, 3],
      [3, 1],
      [3, 2],
    ] as const)
      refused(
        await workspace.sign(forward(rule), eth(path, { value: ONE, nonce: 1 }), pair),
        'VOIDED',
        14,
      )
    // A rule that has ended remains ended when it is sent as a new one.
    await cluster.post(1, '/receipt', { request: rule })
    refused(await workspace.sign(forward(rule), eth(path, { value: ONE, nonce: 1 })), 'VOIDED', 14)
  })
  test('the end of a rule also stops it at a node that never received the rule', async () => {
    const { mine, path, rule, id, receipts } = await standing({}, [1, 2])
    assert.equal((await cluster.post(3, '/void', { request: await ending(mine, id) })).status, 200)
    refused(
      await workspace.sign(
        forward(rule, randomUUID(), receipts),
        eth(path, { value: ONE }),
        [3, 1],
      ),
      'VOIDED',
      14,
    )
  })
  test('ignores an end by another sub-account, by a read-only key, or of another rule', async () => {
    const { mine, path, rule, id } = await standing()
    await cluster.post(1, '/void', { request: await ending(await workspace.caller(next++), id) })
    await cluster.post(1, '/void', {
      request: await ending(await workspace.caller(mine.sub_account, 'read-only'), id),
    })
    await cluster.post(1, '/void', { request: await ending(mine, randomUUID()) })
    await cluster.post(1, '/void', { request: await ending(mine, id, { body: '{"x":1}' }) })
    assert.equal(
      (
        await cluster.post(1, '/void', {
          request: { ...(await ending(mine, randomUUID())), uri: `/dac/v1/auto-forwarding/${id}` },
        })
      ).status,
      403,
    )
    signed(await workspace.sign(forward(rule), eth(path, { value: ONE })))
  })
  test('attack: a signed GET request does not delete the rule', async () => {
    const { mine, path, rule, id } = await standing()
    const requests = [
      await ending(mine, id, { method: 'GET', body: '' }),
      await ending(mine, id, { method: 'GET', body: '', claims: { method: undefined } }),
      // A body is signed, but for another method.
      await ending(mine, id, { method: 'PATCH' }),
    ]
    for (const node of [1, 2, 3]) {
      for (const get of requests)
        await cluster.post(node, '/void', { request: { ...get, method: 'DELETE' } })
    }
    signed(await workspace.sign(forward(rule), eth(path, { value: ONE })))
  })
  test('attack: the end of a rule lists its signed forwards, to its own sub-account only', async () => {
    const { mine, path, rule, id } = await standing()
    const one = await workspace.sign(forward(rule), eth(path, { value: ONE, nonce: 0 }), [1, 2])
    const two = await workspace.sign(forward(rule), eth(path, { value: ONE, nonce: 1 }), [1, 3])
    signed(one)
    signed(two)
    const stranger = await cluster.post(1, '/void', {
      request: await ending(await workspace.caller(next++), id),
    })
    assert.deepEqual([stranger.body.record.signed, stranger.body.signed_hashes], [[], []])
    const answers = await Promise.all(
      [1, 2, 3].map(
        async (node) =>
          (await cluster.post(node, '/void', { request: await ending(mine, id) })).body,
      ),
    )
    const hashes = [one.body.signed.hash, two.body.signed.hash]
    assert.deepEqual(answers[0].record.signed, hashes)
    assert.deepEqual(new Set(answers.flatMap((each) => each.record.signed)), new Set(hashes))
    assert.deepEqual(
      answers.map((each) => each.record.rule),
      [id, id, id],
    )
    // A repeated request returns the same answer.
    await cluster.restartHere(1)
    assert.deepEqual(
      (await cluster.post(1, '/void', { request: await ending(mine, id) })).body.record.signed,
      hashes,
    )
  })
  test('the owner’s deletion replaces a signed forward by a payment to itself', async () => {
    const { mine, path, rule, id } = await standing()
    const own = workspace.address(ETH, path)
    const of = forward(rule)
    signed(await workspace.sign(of, eth(path, { value: ONE, nonce: 0 })))
    const cancel = (request: SignedRequest) => ({ kind: 'cancel', of, request })
    const instead = eth(path, { value: 0n, to: own, nonce: 0, maxFeePerGas: 3n * GWEI })
    refused(
      await workspace.sign(cancel(await ending(await workspace.caller(next++), id)), instead),
      'ACTION_NOT_ALLOWED',
      2,
    )
    refused(
      await workspace.sign(cancel(await ending(mine, randomUUID())), instead),
      'ACTION_NOT_ALLOWED',
      2,
    )
    const mineEnds = await ending(mine, id)
    refused(
      await workspace.sign(
        cancel(mineEnds),
        eth(path, { value: 1n, to: own, nonce: 0, maxFeePerGas: 3n * GWEI }),
      ),
      'AMOUNT_MISMATCH',
      7,
    )
    refused(
      await workspace.sign(
        cancel(mineEnds),
        eth(path, { value: 0n, to: OTHER, nonce: 0, maxFeePerGas: 3n * GWEI }),
      ),
      'DESTINATION_MISMATCH',
      7,
    )
    refused(
      await workspace.sign(
        cancel(mineEnds),
        eth(path, { value: 0n, to: own, nonce: 1, maxFeePerGas: 3n * GWEI }),
      ),
      'NOT_EXCLUSIVE',
      6,
    )
    signed(await workspace.sign(cancel(mineEnds), instead))
    // The forward is never signed again, with a higher fee or with the same one.
    refused(
      await workspace.sign(of, eth(path, { value: ONE, nonce: 0, maxFeePerGas: 4n * GWEI })),
      'VOIDED',
      14,
    )
  })
  test('refuses forwards after the key of the caller was revoked', async () => {
    const { mine, path, rule } = await standing()
    await cluster.everywhere('revoke', { api_key: mine.api_key })
    refused(await workspace.sign(forward(rule), eth(path, { value: ONE })), 'NOT_ENROLLED', 1)
  })
  test('one forward can be voided by its id before it is signed', async () => {
    const { path, rule, id } = await standing()
    const [gone, other] = [randomUUID() as string, randomUUID() as string]
    for (const node of [1, 2])
      assert.equal(
        (await cluster.post(node, '/void', { forward: { rule: id, id: gone } })).status,
        200,
      )
    refused(await workspace.sign(forward(rule, gone), eth(path, { value: ONE })), 'VOIDED', 14)
    refused(
      await workspace.sign(forward(rule, gone), eth(path, { value: ONE }), [3, 1]),
      'VOIDED',
      14,
    )
    signed(await workspace.sign(forward(rule, other), eth(path, { value: ONE })))
    const late = await cluster.post(1, '/void', { forward: { rule: id, id: other } })
    assert.equal(late.body.error, 'ALREADY_SIGNED')
    assert.equal(late.body.signed_hashes.length, 1)
  })
  test('a node that never received the rule live needs a receipt signed by a peer', async () => {
    const old = now() - 2 * 86_400
    const unseen = await standing({ expires_at: iso(now() + 3600) }, [], { now: old })
    refused(
      await workspace.sign(forward(unseen.rule), eth(unseen.path, { value: ONE })),
      'RULE_UNKNOWN',
      13,
    )
    assert.equal(
      (await cluster.post(1, '/receipt', { request: unseen.rule })).body.error,
      'TOO_OLD',
    )
    const { path, rule, receipts } = await standing({}, [1])
    const forged = receipts.map((each) => ({ ...each, receipt: { ...each.receipt, node: 2 } }))
    // The rule is still valid, so node 3 accepts it without a receipt; the forgery below is of a
    // rule that is not.
    signed(await workspace.sign(forward(rule), eth(path, { value: ONE, nonce: 0 }), [3, 2]))
    const late = receipts.map((each) => ({
      ...each,
      receipt: { ...each.receipt, api_key: unseen.mine.api_key, nonce: 'x' },
    }))
    refused(
      await workspace.sign(
        forward(unseen.rule, randomUUID(), [...forged, ...late]),
        eth(unseen.path, { value: ONE }),
      ),
      'RULE_UNKNOWN',
      13,
    )
  })
  test('a recorded rule stays valid after its request expires and after a restart', async () => {
    const { path, rule } = await standing()
    for (const node of [1, 2]) await cluster.restartHere(node)
    signed(await workspace.sign(forward(rule), eth(path, { value: ONE })))
  })
})

describe('rule 2: checks who can create a rule', () => {
  test('validates the fields of a rule strictly', async () => {
    const mine = await workspace.caller(next++)
    const base = { ...ETH_RULE, expires_at: iso(now() + 3600) }
    const answer = async (body: Record<string, unknown> | string, more: More = {}) =>
      cluster.post(1, '/receipt', { request: await ruleOf(mine, body, more) })
    const cases: [Record<string, unknown> | string, string][] = [
      [{ ...base, memo: 'x' }, 'BAD_REQUEST_FIELD'],
      [{ ...base, daily_cap: 0.5 }, 'BAD_REQUEST_FIELD'],
      [{ ...base, min_amount: 0 }, 'BAD_REQUEST_FIELD'],
      [{ ...base, min_amount: -1 }, 'BAD_REQUEST_FIELD'],
      [{ ...base, asset: 'NOPE' }, 'UNKNOWN_ASSET'],
      [{ ...base, destination_address: SINK_BTC }, 'BAD_REQUEST_FIELD'],
      [{ ...base, address_tag: '7' }, 'BAD_REQUEST_FIELD'],
      [{ ...base, expires_at: '2030-02-30T00:00:00Z' }, 'BAD_REQUEST_FIELD'],
      [{ ...base, expires_at: '2030-01-01T00:00:00+02:00' }, 'BAD_REQUEST_FIELD'],
      [{ ...base, expires_at: 1_900_000_000 }, 'BAD_REQUEST_FIELD'],
      [{ ...base, expires_at: undefined }, 'BAD_REQUEST_FIELD'],
      [`${JSON.stringify(base).slice(0, -1)},"daily_cap":500}`, 'BAD_REQUEST_FIELD'],
    ]
    for (const [body, code] of cases)
      assert.equal((await answer(body)).body.error, code, JSON.stringify(body))
    assert.equal(
      (await answer(base, { uri: '/dac/v1/auto-forwarding?x=1' })).body.error,
      'ACTION_NOT_ALLOWED',
    )
    assert.equal((await answer(base, { method: 'PUT' })).body.error, 'ACTION_NOT_ALLOWED')
  })
  test('refuses a payment as a rule, a rule as a payment, and rules by read-only keys', async () => {
    const { mine, path, rule } = await standing()
    refused(await workspace.sign(pay(rule), eth(path, { value: ONE })), 'ACTION_NOT_ALLOWED', 2)
    const payment = await signRequest({
      apiKey: mine.api_key,
      privateKey: callerKey,
      method: 'POST',
      uri: '/dac/v1/transaction',
      body: JSON.stringify({
        asset: 'ETH',
        amount: 1,
        destination_address: SINK_ETH,
        destination_type: 'EXTERNAL',
        source_type: 'INTERNAL',
      }),
    })
    refused(
      await workspace.sign(forward(payment), eth(path, { value: ONE })),
      'ACTION_NOT_ALLOWED',
      2,
    )
    const reader = await workspace.caller(mine.sub_account, 'read-only')
    const theirs = await ruleOf(reader, { ...ETH_RULE, expires_at: iso(now() + 3600) })
    refused(await workspace.sign(forward(theirs), eth(path, { value: ONE })), 'READ_ONLY', 2)
    const elsewhere = {
      workspace: 'another',
      purpose: forward(rule),
      unsigned: eth(path, { value: ONE }),
      partner: 2,
    }
    refused(await cluster.post(1, '/sign', elsewhere), 'WORKSPACE_MISMATCH', 2)
  })
})

test("rule 13: the cap covers any 24 hours, and a peer's records count at their own time", () => {
  const folder = mkdtempSync(join(tmpdir(), 'forward-'))
  let clock = 1_000_000_000_000
  const store = new Store(join(folder, 'record.sqlite'), () => clock)
  const decoded = {
    network: 'ETH',
    asset: 'ETH',
    payments: [],
    change: null,
    from: [],
    fee_max: '1',
    fee_rate: '1',
    consumes: [],
    nonce: null,
    gas_limit: null,
    max_fee_per_gas: null,
    vsize: null,
  }
  // A charge as earlier versions wrote it.
  const charged = (step: string, amount: string) => ({
    step,
    unsigned_hash: `${step}${amount}`,
    consumes: [],
    intent: null,
    content: null,
    transaction_id: null,
    account: null,
    nonce: null,
    charge: { budget: 'rule', amount },
    sessions: [],
    decoded,
  })
  const own = {
    purpose: 'forward',
    workspace: 'w',
    key_id: 'k',
    unsigned: { network: 'ETH', bytes: '02', inputs: [{ path: [1] }] },
    partner: 2,
    peer_head: null,
  }
  const allows = (step: string, amount: bigint): boolean => {
    try {
      assertBudget(
        store.state,
        {
          step,
          charges: [{ budget: 'rule', amount, limit: 10n, largest: true, rule: true }],
        } as unknown as Verdict,
        store.clock(),
      )
      return true
    } catch {
      return false
    }
  }
  store.append('step', { ...charged('a', '4'), ...own })
  store.append('step', { ...charged('a', '5'), ...own })
  assert.ok(allows('b', 5n) && !allows('b', 6n))
  // In its own step the charge counts once, and never as less than the signed amount.
  assert.ok(allows('a', 10n) && allows('a', 1n))
  clock += 12 * 3_600_000
  store.append('imported', {
    at: clock - 13 * 3_600_000,
    kind: 'step',
    body: charged('c', '3'),
    from: 2,
  })
  assert.ok(allows('b', 2n) && !allows('b', 3n))
  clock += 11 * 3_600_000 + 1
  assert.ok(allows('b', 5n) && !allows('b', 6n))
  clock += 3_600_000
  assert.ok(allows('b', 10n) && !allows('b', 11n))
  store.close()
  rmSync(folder, { recursive: true })
})

test('rule 13: a standing rule outlives its request only where a node or peer received it live', () => {
  const folder = mkdtempSync(join(tmpdir(), 'forward-'))
  const IAT = 1_800_000_000
  const store = new Store(join(folder, 'record.sqlite'), () => IAT * 1000)
  const identity = generateKeyPairSync('ed25519')
  const identities = new Map([[2, identity.publicKey]])
  const proven = (nonce: string): Proven => ({
    request: { token: '', method: '', uri: '', body: '' },
    enrolment: {
      api_key: 'k',
      public_key_pem: '',
      role: 'full',
      workspace: 'w',
      sub_account: 1,
      sub_account_name: 'main',
      revoked: false,
    },
    nonce,
    iat: IAT,
    exp: IAT + 25,
    transaction_id: nonce,
  })
  const rule = (id: string, content = 'content'): ForwardIntent => ({
    action: 'forward',
    rule_id: id,
    workspace: 'w',
    sub_account: 1,
    asset: 'ETH',
    min_amount: 1n,
    daily_cap: 2n,
    destination: 'd',
    tag: null,
    expires_at: IAT + 100 * DAY_S,
    key: id,
    content,
  })
  const content = { node: 2, api_key: 'k', nonce: 'b', intent: 'content', seen_at: IAT + 20 }
  const receipt = {
    receipt: content,
    signature: signBytes(identity.privateKey, receiptBytes(content)),
  }
  const stands = (
    id: string,
    at: number,
    receipts = [receipt],
    content = 'content',
  ): string | null => {
    try {
      assertStands({
        state: store.state,
        identities,
        proven: proven(id),
        rule: rule(id, content),
        receipts,
        now: at,
      })
      return null
    } catch (error) {
      return (error as Refusal).code
    }
  }
  assert.equal(stands('a', IAT + 30, []), null)
  assert.equal(stands('a', IAT + 90 * DAY_S, []), 'RULE_UNKNOWN')
  store.append('rule', { ...standingRule(proven('a'), rule('a')) })
  assert.equal(stands('a', IAT + 90 * DAY_S, []), null)
  assert.equal(stands('a', IAT + 90 * DAY_S, [], 'another'), 'INTENT_CONFLICT')
  assert.equal(stands('a', IAT + 100 * DAY_S + 1, []), 'RULE_EXPIRED')
  assert.equal(stands('b', IAT + 90 * DAY_S), null)
  assert.equal(stands('b', IAT + 90 * DAY_S, [receipt], 'another'), 'RULE_UNKNOWN')
  assert.equal(stands('c', IAT + 90 * DAY_S), 'RULE_UNKNOWN')
  assert.equal(
    stands('b', IAT + 90 * DAY_S, [{ ...receipt, signature: '00'.repeat(64) }]),
    'RULE_UNKNOWN',
  )
  const late = { ...content, seen_at: IAT + 25 + 61 }
  assert.equal(
    stands('b', IAT + 90 * DAY_S, [
      { receipt: late, signature: signBytes(identity.privateKey, receiptBytes(late)) },
    ]),
    'RULE_UNKNOWN',
  )
  // A restored node believes its peers' records about known rules. About new rules it believes only
  // receipts of its peers and what it received itself.
  store.append('imported', {
    at: 1,
    kind: 'rule',
    body: importable('rule', { ...standingRule(proven('d'), rule('d')), more: 1 })!,
    from: 2,
  })
  store.append('restored', { generation: 1, not_before: (IAT + 1) * 1000 })
  assert.equal(stands('d', IAT + 90 * DAY_S, []), null)
  assert.equal(stands('a', IAT + 90 * DAY_S, []), null)
  assert.equal(stands('b', IAT + 30), 'RULE_UNKNOWN')
  store.close()
  rmSync(folder, { recursive: true })
})
