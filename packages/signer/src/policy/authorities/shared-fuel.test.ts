import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { SignedRequest } from '@custody/request-auth'
import type { Refusal } from '../../errors.ts'
import { Judge } from '../judge.ts'
import { orderSchema, type GovernedVerdict, type Order } from '../order.ts'
import { takenFrom } from '../../store/imported.ts'
import { Store } from '../../store/index.ts'
import {
  callerPem,
  ETH,
  eth,
  SignerCluster,
  pay,
  registry,
  SINK_ETH,
  transfer,
  type Answer,
  type Caller,
  type Workspace,
} from '../../../testing/signer-cluster.ts'

/**
 * One fuel transaction for several payments: what a hostile platform can gain by it, and
 * what remains when a node is killed (rules 6, 10 and 11).
 */
const TANK = [0, ETH.chain_index, 0]
const COST = { gas: '21000', max_fee_per_gas: '2000000000' }
/** Maximum fuel of each payment alone. */
const MOST = (21_000n * 2_000_000_000n * 12n) / 10n
let cluster: SignerCluster
let workspace: Workspace
before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
  workspace = await cluster.workspace()
})
after(async () => {
  await cluster.stop()
})

const refused = (answer: Answer, code: string): void => {
  assert.equal(answer.body?.error, code, JSON.stringify(answer.body))
}
const signed = (answer: Answer): void => {
  assert.equal(answer.status, 200, JSON.stringify(answer.body))
}
const shared = ([first, ...others]: readonly SignedRequest[], costs: readonly object[] = []) => ({
  kind: 'fuel',
  for: pay(first as SignedRequest),
  ...COST,
  ...costs[0],
  ...(others.length === 0
    ? {}
    : { beside: others.map((each, at) => ({ for: pay(each), ...COST, ...costs[at + 1] })) }),
})

let next = 1
/** Creates a new sub-account, for which no other test has signed anything. */
async function place(
  of = workspace,
): Promise<{ caller: Caller; address: string; ask: (more?: object) => Promise<SignedRequest> }> {
  const caller = await of.caller(next++)
  const address = of.address(ETH, [caller.sub_account, ETH.chain_index, 0])
  return {
    caller,
    address,
    ask: (more = {}) =>
      transfer(caller, { asset: 'ETH', amount: 1, destination_address: SINK_ETH, ...more }),
  }
}

let nonce = 0
/** Signs a transfer with the tank's next nonce, which is used up once the transfer is signed. */
const give = async (
  requests: readonly SignedRequest[],
  to: string,
  value: bigint,
  costs: readonly object[] = [],
): Promise<Answer> => {
  const answer = await workspace.sign(shared(requests, costs), eth(TANK, { to, value, nonce }))
  if (answer.status === 200) nonce++
  return answer
}

describe('one fuel transaction for several payments', () => {
  test('pays at most the sum of what each payment alone could get', async () => {
    const { address, ask } = await place()
    const requests = [await ask(), await ask({ asset: 'USDT_ETH', amount: 2 }), await ask()]
    refused(await give(requests, address, 3n * MOST + 1n), 'FUEL_TOO_LARGE')
    signed(await give(requests, address, 3n * MOST))
  })

  test('attack: refuses the same gas funding twice, except as a replacement of the same nonce', async () => {
    const { address, ask } = await place()
    const requests = [await ask(), await ask()]
    const at = nonce
    signed(await give(requests, address, MOST))
    for (const pair of [
      [1, 2],
      [2, 3],
      [3, 1],
    ] as const) {
      refused(
        await workspace.sign(
          shared(requests),
          eth(TANK, { to: address, value: MOST, nonce }),
          pair,
        ),
        'NOT_EXCLUSIVE',
      )
    }
    signed(
      await workspace.sign(
        shared(requests),
        eth(TANK, { to: address, value: MOST, nonce: at, maxFeePerGas: 3_000_000_000n }),
      ),
    )
  })

  test('attack: refuses a payment that already has gas funding, at any position of the list', async () => {
    const { address, ask } = await place()
    const [alone, one, two, fresh] = [await ask(), await ask(), await ask(), await ask()]
    signed(await give([alone], address, MOST))
    signed(await give([one, two], address, 2n * MOST))
    for (const used of [alone, one, two]) {
      refused(await give([fresh, used], address, MOST), 'NOT_EXCLUSIVE')
      refused(await give([used, fresh], address, MOST), 'NOT_EXCLUSIVE')
      refused(await give([used], address, MOST), 'NOT_EXCLUSIVE')
    }
    signed(await give([fresh], address, MOST))
  })

  test('attack: refuses one payment that is listed twice, or twice under one sequence_id', async () => {
    const { address, ask } = await place()
    const [one, same] = [await ask({ sequence_id: 'a' }), await ask({ sequence_id: 'a' })]
    refused(await give([one, one], address, 2n * MOST), 'SHAPE')
    refused(await give([one, same], address, 2n * MOST), 'SHAPE')
  })

  test("attack: refuses payments of another sub-account or tenant, and another tenant's tank", async () => {
    const [mine, other] = [await place(), await place()]
    refused(
      await give([await mine.ask(), await other.ask()], mine.address, 2n * MOST),
      'DESTINATION_MISMATCH',
    )
    refused(
      await give([await mine.ask(), await other.ask()], other.address, 2n * MOST),
      'DESTINATION_MISMATCH',
    )
    const elsewhere = await cluster.workspace()
    const stranger = await place(elsewhere)
    refused(
      await give([await mine.ask(), await stranger.ask()], mine.address, 2n * MOST),
      'WORKSPACE_MISMATCH',
    )
    refused(
      await elsewhere.sign(
        shared([await mine.ask(), await mine.ask()]),
        eth(TANK, { to: mine.address, value: 1n }),
      ),
      'WORKSPACE_MISMATCH',
    )
    const path = [mine.caller.sub_account, ETH.chain_index, 0]
    refused(
      await workspace.sign(
        shared([await mine.ask(), await mine.ask()]),
        eth(path, { to: mine.address, value: 1n }),
      ),
      'FOREIGN_PATH',
    )
  })

  test("attack: refuses a part with too much gas, or a price above its caller's limit", async () => {
    const { address, ask } = await place()
    const [one, two] = [await ask(), await ask({ fee_rate: 1 })]
    refused(
      await give([one, await ask()], address, 1n, [{}, { gas: '1000000000' }]),
      'FUEL_TOO_LARGE',
    )
    refused(await give([one, await ask()], address, 1n, [{}, { l1_fee: '1' }]), 'FUEL_TOO_LARGE')
    refused(await give([one, two], address, 1n), 'FEE_RATE')
    signed(await give([one, two], address, MOST, [{}, { max_fee_per_gas: '1000000000' }]))
  })

  test('attack: refuses shared gas funding for non-payments and for payments that were sped up', async () => {
    const { caller, address, ask } = await place()
    const sweep = {
      kind: 'sweep',
      sub_account: caller.sub_account,
      asset: 'USDT_ETH',
      address_index: 1,
    }
    const beside = [{ for: pay(await ask()), ...COST }]
    refused(
      await workspace.sign(
        { kind: 'fuel', for: sweep, ...COST, beside },
        eth(TANK, { to: address, nonce }),
      ),
      'SHAPE',
    )
    const odd = [{ for: sweep, ...COST }]
    refused(
      await workspace.sign(
        { kind: 'fuel', for: pay(await ask()), ...COST, beside: odd },
        eth(TANK, { to: address, nonce }),
      ),
      'BAD_ORDER',
    )
    const fast = [
      { for: { ...(pay(await ask()) as object), speed_up: { request: await ask() } }, ...COST },
    ]
    refused(
      await workspace.sign(
        { kind: 'fuel', for: pay(await ask()), ...COST, beside: fast },
        eth(TANK, { to: address, nonce }),
      ),
      'SHAPE',
    )
  })

  test('a cancelled or revoked payment blocks only the fuel transaction that names it', async () => {
    const { caller, address, ask } = await place()
    const [good, bad] = [await ask(), await ask()]
    for (const node of [1, 2])
      assert.equal((await cluster.post(node, '/void', { request: bad })).status, 200)
    refused(await give([good, bad], address, MOST), 'VOIDED')
    const second = await workspace.caller(caller.sub_account)
    const theirs = await transfer(second, {
      asset: 'ETH',
      amount: 1,
      destination_address: SINK_ETH,
    })
    await cluster.everywhere('revoke', { api_key: second.api_key })
    refused(await give([good, theirs], address, MOST), 'NOT_ENROLLED')
    signed(await give([good], address, MOST))
  })

  test('of two pairs with overlapping payments, at most one signs', async () => {
    const { address, ask } = await place()
    const [one, two, three] = [await ask(), await ask(), await ask()]
    const at = nonce
    const answers = await Promise.all([
      workspace.sign(
        shared([one, two]),
        eth(TANK, { to: address, value: 2n * MOST, nonce: at }),
        [1, 2],
      ),
      workspace.sign(
        shared([three, two]),
        eth(TANK, { to: address, value: 2n * MOST, nonce: at + 1 }),
        [2, 3],
      ),
      workspace.sign(
        shared([one, three]),
        eth(TANK, { to: address, value: 2n * MOST, nonce: at + 1 }),
        [3, 1],
      ),
    ])
    const won = answers.filter(({ status }) => status === 200)
    assert.ok(won.length <= 1, JSON.stringify(answers))
    for (const answer of answers) {
      if (answer.status !== 200)
        assert.ok(
          ['NOT_EXCLUSIVE', 'TOO_BUSY', 'NONCE_GAP'].includes(answer.body.error),
          JSON.stringify(answer.body),
        )
    }
  })
})

/** The rules applied to a record on disk, as a killed node finds it after its restart. */
describe("the record's entries of a fuel transaction for several payments", () => {
  const home = mkdtempSync(join(tmpdir(), 'shared-fuel-'))
  after(() => {
    rmSync(home, { recursive: true, force: true })
  })
  const judged = (name: string) => {
    const store = new Store(join(home, name), () => Date.now())
    const judge = new Judge({
      registry,
      store,
      identities: new Map(),
      budgetFeeCaps: 100,
      keyOf: async () =>
        ({
          key_id: 'k',
          curve: 'secp256k1',
          ...workspace.key,
          publicKeyAt: workspace.publicKeyAt,
        }) as never,
    })
    return { store, judge }
  }
  const session = { sessions: ['s'], partner: 2, peer_head: null }
  const orderOf = (
    requests: readonly SignedRequest[],
    to: string,
    value: bigint,
    at: number,
  ): Order =>
    orderSchema.parse({
      workspace: workspace.name,
      purpose: shared(requests),
      unsigned: eth(TANK, { to, value, nonce: at }),
    })
  const codeOf = (run: () => unknown): string => {
    try {
      run()
      return 'allowed'
    } catch (error) {
      return (error as Refusal).code
    }
  }

  test('a node killed before signing has recorded each payment, and so has a restored node', async () => {
    const api_key = randomUUID()
    const enrolment = {
      api_key,
      public_key_pem: callerPem,
      role: 'full' as const,
      workspace: workspace.name,
      sub_account: 9000,
      sub_account_name: 'sub-9000',
    }
    const address = workspace.address(ETH, [9000, ETH.chain_index, 0])
    const ask = () =>
      transfer(
        { api_key, sub_account: 9000 },
        { asset: 'ETH', amount: 1, destination_address: SINK_ETH },
      )
    const [one, two, three] = [await ask(), await ask(), await ask()]
    const order = orderOf([one, two], address, 2n * MOST, 0)
    const first = judged('died.sqlite')
    first.store.append('enrol', enrolment)
    first.judge.admit(first.judge.govern([await first.judge.judge(order)])[0]!, session)
    first.store.close()

    const again = judged('died.sqlite')
    const restored = judged('restored.sqlite')
    restored.store.append('enrol', enrolment)
    for (const row of again.store.record.page(1, 100)) {
      const taken = takenFrom(2, row)
      if (taken) restored.store.append('imported', taken)
    }
    for (const { store, judge } of [again, restored]) {
      const allows = async (requests: SignedRequest[], at: number, value = MOST) => {
        const order = orderOf(requests, address, value, at)
        const [verdict] = judge.govern([await judge.judge(order)]) as [GovernedVerdict]
        return codeOf(() => judge.assertAllowed(verdict))
      }
      assert.equal(
        await allows([one, two], 0, 2n * MOST),
        'allowed',
        'the very same transaction is signed again',
      )
      for (const requests of [[one], [two], [three, two], [three, one]])
        assert.equal(await allows(requests, 1), 'NOT_EXCLUSIVE')
      assert.equal(
        await allows([two], 0),
        'allowed',
        'of the same number: the other can then never be mined',
      )
      assert.equal(await allows([three], 1), 'allowed')
      store.close()
    }
  })
})
