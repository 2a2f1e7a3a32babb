import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { UnsignedTransaction } from '@custody/chains'
import type { SignedRequest } from '@custody/request-auth'
import { parseTransaction, recoverTransactionAddress } from 'viem'
import type { Refusal } from '../errors.ts'
import { Judge } from './judge.ts'
import { orderSchema, type Order } from './order.ts'
import { Store } from '../store/index.ts'
import {
  BTC,
  btc,
  callerPem,
  ETH,
  eth,
  funding,
  SignerCluster,
  pay,
  registry,
  SINK_BTC,
  SINK_ETH,
  transfer,
  type Answer,
  type Caller,
  type Workspace,
} from '../../testing/signer-cluster.ts'

/**
 * One session signs several payments of one account with sequential nonces: each is judged as if it
 * were alone, and either all or none are signed.
 */
const ONE = 10n ** 18n
let cluster: SignerCluster
let workspace: Workspace
before(async () => {
  cluster = await SignerCluster.start({
    engine: 'double',
    edit: (config) => {
      config.budget_fee_caps = 4
    },
  })
  workspace = await cluster.workspace()
})
after(async () => {
  await cluster.stop()
})

interface Item {
  purpose: unknown
  unsigned: UnsignedTransaction
}
const signRun = (
  run: readonly Item[],
  pair: readonly [number, number] = [1, 2],
  of = workspace,
): Promise<Answer> =>
  cluster.post(pair[0], '/sign-run', { workspace: of.name, partner: pair[1], run })
const refused = (answer: Answer, code: string, at?: number): void => {
  assert.equal(answer.body?.error, code, JSON.stringify(answer.body))
  if (at !== undefined) assert.equal(answer.body.at, at)
}

let next = 1
async function place() {
  const caller = await workspace.caller(next++)
  const path = [caller.sub_account, ETH.chain_index, 0]
  const ask = () => transfer(caller, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })
  const item = (request: SignedRequest, nonce: number, more: object = {}): Item => ({
    purpose: pay(request),
    unsigned: eth(path, { value: ONE, nonce, ...more }),
  })
  const run = async (count: number, from = 0) =>
    Promise.all(Array.from({ length: count }, async (_, at) => item(await ask(), from + at)))
  return { caller, path, ask, item, run }
}
/**
 * Checks that a payment has not entered signing: otherwise a void without force would be refused.
 */
const isUntouched = async ({ purpose }: Item): Promise<boolean> => {
  const { request } = purpose as { request: SignedRequest }
  const answers = await Promise.all(
    [1, 2, 3].map((node) => cluster.post(node, '/void', { request })),
  )
  return answers.every(({ status }) => status === 200)
}

test('signs ten payments in one session, and repeats their signatures from the record', async () => {
  const { path, run } = await place()
  const items = await run(10)
  const { status, body } = await signRun(items)
  assert.equal(status, 200, JSON.stringify(body))
  const raws = (body.run as { signed: { raw: string } }[]).map(
    ({ signed }) => `0x${signed.raw}` as `0x02${string}`,
  )
  assert.deepEqual(
    raws.map((raw) => Number(parseTransaction(raw).nonce ?? 0)),
    items.map((_, at) => at),
  )
  for (const serializedTransaction of raws)
    assert.equal(
      await recoverTransactionAddress({ serializedTransaction }),
      workspace.address(ETH, path),
    )
  assert.deepEqual((await signRun(items)).body, body)
  for (const at of [0, 9])
    assert.deepEqual(
      (await workspace.sign(items[at]!.purpose, items[at]!.unsigned)).body,
      body.run[at],
    )
  // The third node took no part: its partner answers for both from its record.
  assert.deepEqual((await signRun(items, [3, 1])).body, body)
})

test('attack: refuses batches with nonce gaps, other accounts or purposes, and repeats', async () => {
  const [mine, other] = [await place(), await place()]
  const [a, b, c] = (await mine.run(3)) as [Item, Item, Item]
  refused(await signRun([a, c]), 'BAD_ORDER', 1)
  refused(await signRun([b, a]), 'BAD_ORDER', 1)
  refused(await signRun([b, c]), 'NONCE_GAP', 0)
  refused(await signRun([a, ...(await other.run(1, 1))]), 'BAD_ORDER', 1)
  refused(
    await signRun([a, mine.item((a.purpose as { request: SignedRequest }).request, 1)]),
    'BAD_ORDER',
  )
  refused(await signRun(await mine.run(17)), 'BAD_ORDER')
  const tank = [0, ETH.chain_index, 0]
  const sweep = {
    kind: 'sweep',
    sub_account: mine.caller.sub_account,
    asset: 'USDT_ETH',
    address_index: 1,
  }
  const deposit = workspace.address(ETH, [mine.caller.sub_account, ETH.chain_index, 1])
  const fuel = { kind: 'fuel', for: sweep, gas: '65000', max_fee_per_gas: '2000000000' }
  refused(
    await signRun(
      [0, 1].map((nonce) => ({
        purpose: fuel,
        unsigned: eth(tank, { to: deposit, value: 1n, nonce }),
      })),
    ),
    'BAD_ORDER',
    0,
  )
  const coins = funding(workspace, [
    { path: [mine.caller.sub_account, BTC.chain_index, 1], value: 100_000n },
  ])
  const inBitcoin = async () => ({
    purpose: pay(
      await transfer(mine.caller, { asset: 'BTC', amount: 0.0009, destination_address: SINK_BTC }),
    ),
    unsigned: btc(workspace, {
      inputs: [{ funding: coins, output: 0, path: [mine.caller.sub_account, BTC.chain_index, 1] }],
      amount: 90_000n,
    }),
  })
  refused(await signRun([await inBitcoin(), await inBitcoin()]), 'BAD_ORDER')
  for (const item of [a, b, c]) assert.ok(await isUntouched(item))
})

test('attack: refuses one nonce for two payments in a batch or in shared gas funding', async () => {
  const { caller, path, item } = await place()
  const nonce = randomUUID()
  const [one, two] = (await Promise.all(
    ['one', 'two'].map((sequence_id) =>
      transfer(
        caller,
        { asset: 'ETH', amount: 1, destination_address: SINK_ETH, sequence_id },
        { nonce },
      ),
    ),
  )) as [SignedRequest, SignedRequest]
  const run = [item(one, 0), item(two, 1)]
  refused(await signRun(run), 'INTENT_CONFLICT')
  const cost = { gas: '21000', max_fee_per_gas: '2000000000' }
  const purpose = { kind: 'fuel', for: pay(one), ...cost, beside: [{ for: pay(two), ...cost }] }
  const unsigned = eth([0, ETH.chain_index, 0], {
    to: workspace.address(ETH, path),
    value: 1n,
    nonce: 0,
  })
  refused(await workspace.sign(purpose, unsigned), 'INTENT_CONFLICT')
  // Alone, the first payment is signed and the second is not.
  assert.equal((await workspace.sign(run[0]!.purpose, run[0]!.unsigned)).status, 200)
  refused(await workspace.sign(run[1]!.purpose, run[1]!.unsigned), 'INTENT_CONFLICT')
})

test('attack: one false, voided or foreign payment is named and none of the batch is signed', async () => {
  const { run, item, ask, caller } = await place()
  const [a, b] = (await run(2)) as [Item, Item]
  const bad = item(await ask(), 2, { value: ONE + 1n })
  refused(await signRun([a, b, bad]), 'AMOUNT_MISMATCH', 2)
  refused(await signRun([a, b, item(await ask(), 2, { maxFeePerGas: 10n ** 16n })]), 'FEE_CAP', 2)
  const voided = await run(1, 2)
  // The void is recorded at the partner alone: the coordinator has not received it.
  assert.equal(
    (
      await cluster.post(2, '/void', {
        request: (voided[0]!.purpose as { request: SignedRequest }).request,
      })
    ).status,
    200,
  )
  refused(await signRun([a, b, ...voided]), 'VOIDED', 2)
  const elsewhere = await (await cluster.workspace()).caller(caller.sub_account)
  const theirs = await transfer(elsewhere, {
    asset: 'ETH',
    amount: 1,
    destination_address: SINK_ETH,
  })
  refused(await signRun([a, b, item(theirs, 2)]), 'WORKSPACE_MISMATCH', 2)
  for (const each of [a, b]) assert.ok(await isUntouched(each))
})

test('attack: overlapping batches exclude each other, and a payment keeps its nonce', async () => {
  const { run, item, ask } = await place()
  const items = await run(4)
  const requestOf = ({ purpose }: Item) => (purpose as { request: SignedRequest }).request
  // Two pairs concurrently assign one nonce to different payments, and different nonces to one
  // payment.
  const [one, two, three] = [await ask(), await ask(), await ask()]
  const answers = await Promise.all([
    signRun([item(one, 0), item(two, 1)], [1, 2]),
    signRun([item(three, 0), item(one, 1)], [2, 3]),
  ])
  assert.ok(answers.filter(({ status }) => status === 200).length <= 1, JSON.stringify(answers))
  assert.equal((await signRun([...items])).status, 200)
  for (const pair of [
    [1, 2],
    [2, 3],
    [3, 1],
  ] as const) {
    refused(
      await signRun([item(await ask(), 4), item(requestOf(items[1]!), 5)], pair),
      'NOT_EXCLUSIVE',
      1,
    )
    refused(
      await workspace.sign(pay(requestOf(items[3]!)), item(requestOf(items[3]!), 4).unsigned, pair),
      'NOT_EXCLUSIVE',
    )
  }
})

test('signs a batch of gas funding, and refuses a batch that exceeds the budget in total', async () => {
  const CAP = BigInt(ETH.fee_cap)
  const tank = [0, ETH.chain_index, 0]
  const rich = await cluster.workspace()
  const caller = await rich.caller(1)
  const address = rich.address(ETH, [1, ETH.chain_index, 0])
  const dear = { gas: '1', max_fee_per_gas: CAP.toString() }
  const fuel = async (nonce: number, value: bigint): Promise<Item> => ({
    purpose: {
      kind: 'fuel',
      for: pay(await transfer(caller, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })),
      ...dear,
    },
    unsigned: eth(tank, { to: address, value, nonce }),
  })
  const runOf = (from: number, count: number, value: bigint) =>
    Promise.all(Array.from({ length: count }, (_, at) => fuel(from + at, value)))
  // Four caps are allowed per day: the fourth full one leaves no room for the fees of the
  // fuel transactions themselves.
  const greedy = await runOf(0, 5, CAP)
  refused(await signRun(greedy, [1, 2], rich), 'BUDGET', 3)
  const good = greedy.slice(0, 3)
  assert.equal((await signRun(good, [1, 2], rich)).status, 200)
  assert.equal(
    (await signRun(good, [1, 2], rich)).status,
    200,
    'what is on record is not counted again',
  )
  refused(await signRun(await runOf(3, 2, CAP), [1, 2], rich), 'BUDGET', 0)
  assert.equal((await signRun(await runOf(3, 2, CAP / 10n), [1, 2], rich)).status, 200)
})

test('a node killed before signing can sign only the recorded batch or a part of it', async () => {
  const home = mkdtempSync(join(tmpdir(), 'runs-'))
  const caller: Caller = { api_key: randomUUID(), sub_account: 9000 }
  const path = [9000, ETH.chain_index, 0]
  const ask = () => transfer(caller, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })
  const orderOf = (request: SignedRequest, nonce: number): Order =>
    orderSchema.parse({
      workspace: workspace.name,
      purpose: pay(request),
      unsigned: eth(path, { value: ONE, nonce }),
    })
  const judged = () => {
    const store = new Store(join(home, 'record.sqlite'), () => Date.now())
    const keyOf = async () =>
      ({
        key_id: 'k',
        curve: 'secp256k1',
        ...workspace.key,
        publicKeyAt: workspace.publicKeyAt,
      }) as never
    return {
      store,
      judge: new Judge({ registry, store, identities: new Map(), budgetFeeCaps: 100, keyOf }),
    }
  }
  const session = { sessions: ['s'], partner: 2, peer_head: null }
  const requests = await Promise.all([ask(), ask(), ask()])
  const orders = requests.map(orderOf)
  const first = judged()
  first.store.append('enrol', {
    api_key: caller.api_key,
    public_key_pem: callerPem,
    role: 'full',
    workspace: workspace.name,
    sub_account: 9000,
    sub_account_name: 'sub-9000',
  })
  const before = first.store.record.height
  const steps = first.judge.admitAll(
    first.judge.govern(await first.judge.judgeAll(orders)),
    orders.map(() => session),
  )
  assert.deepEqual(
    steps.map(({ height }) => height),
    [before + 2, before + 4, before + 6],
    'each with its request, under one flush',
  )
  first.store.close()

  const { store, judge } = judged()
  const codeOf = async (list: Order[]): Promise<string> => {
    const verdicts = judge.govern(await judge.judgeAll(list))
    try {
      judge.assertAllAllowed(verdicts)
      return 'allowed'
    } catch (error) {
      return (error as Refusal).code
    }
  }
  assert.equal(await codeOf(orders), 'allowed')
  assert.equal(await codeOf(orders.slice(1)), 'allowed')
  assert.equal(await codeOf([orders[2]!, orderOf(await ask(), 3)]), 'allowed')
  assert.equal(await codeOf([orderOf(requests[1]!, 3)]), 'NOT_EXCLUSIVE')
  assert.equal(await codeOf([orderOf(await ask(), 4)]), 'NONCE_GAP')
  // Entries that cannot all be written are not written at all.
  const height = store.record.height
  const [good, gap] = [orderOf(await ask(), 3), orderOf(await ask(), 5)]
  const verdicts = judge.govern([
    ...(await judge.judgeAll([good])),
    ...(await judge.judgeAll([gap])),
  ])
  assert.throws(() => judge.admitAll(verdicts, [session, session]), { code: 'NONCE_GAP' })
  assert.equal(store.record.height, height)
  assert.equal(await codeOf([good]), 'allowed')
  store.close()
  rmSync(home, { recursive: true, force: true })
})
