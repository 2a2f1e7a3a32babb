import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { waitFor } from '../../../../testing/wait-for.ts'
import { CHEATS, roundOf, tamper, type Switch } from '../../../threshold/testing/cheating.ts'
import { Store } from '../store/index.ts'
import {
  CheatingNode,
  type Answer,
  type Change,
  type Order,
  type Session,
} from '../../testing/cheating-node.ts'
import {
  BTC,
  btc,
  ETH,
  eth,
  funding,
  SignerCluster,
  pay,
  SINK_BTC,
  SINK_ETH,
  transfer,
  type Caller,
  type Json,
  type Workspace,
} from '../../testing/signer-cluster.ts'

/**
 * Node 1 cheats in signing, with its real share and engine. Nodes 2 and 3 are honest. At most 256
 * sessions can be open.
 */
const SESSIONS = 250
const PATH = [1, ETH.chain_index, 0]

class Scene {
  cluster!: SignerCluster
  workspace!: Workspace
  caller!: Caller
  node!: CheatingNode
  /** The last payment that was ordered. */
  last!: Order
  #orders = 0
  /** The nonce that follows those that nodes 2 and 3 have signed. */
  #nonce = 0

  /** @param meanwhile called while node 1 still runs unchanged */
  static async begin(
    where: 'apart' | 'here',
    meanwhile: (scene: Scene) => Promise<unknown> = async () => {},
  ): Promise<Scene> {
    const scene = new Scene()
    scene.cluster = await SignerCluster.start({ where })
    scene.workspace = await scene.cluster.workspace()
    scene.caller = await scene.workspace.caller()
    await meanwhile(scene)
    scene.node = await CheatingNode.takeOver(scene.cluster, scene.workspace, (node) =>
      where === 'apart' ? scene.cluster.kill(node) : scene.cluster.stopHere(node),
    )
    return scene
  }

  async end(): Promise<void> {
    this.node.close()
    await this.cluster.stop()
  }

  /** Creates a payment that was not ordered before. */
  async order(): Promise<Order> {
    const amount = ++this.#orders
    const request = await transfer(this.caller, {
      asset: 'ETH',
      amount,
      destination_address: SINK_ETH,
    })
    const unsigned = eth(PATH, { value: BigInt(amount) * 10n ** 18n, nonce: this.#nonce })
    this.last = { workspace: this.workspace.name, purpose: pay(request), unsigned }
    return this.last
  }

  async bansOf(node: number): Promise<number[]> {
    return (await this.cluster.get(node, '/status')).body.bans
  }

  /**
   * Returns the height of the first ban in a node's record. The node is restarted, because only the
   * node itself reads its record while it runs.
   */
  async banAt(node: number): Promise<number> {
    await this.cluster.kill(node)
    const store = new Store(join(this.cluster.peers.nodes[node - 1]!.home, 'record.sqlite'), () =>
      Date.now(),
    )
    const result = store.record.database
      .prepare(`SELECT min(height) AS height FROM record WHERE kind = 'ban'`)
      .get()
    store.close()
    await this.cluster.run(node)
    return Number(result?.['height'] ?? Infinity)
  }

  /** Checks that nodes 2 and 3 can sign without node 1. */
  async signsOn(): Promise<void> {
    const { purpose, unsigned } = await this.order()
    const { status, body } = await this.workspace.sign(purpose, unsigned, [2, 3])
    assert.equal(status, 200, JSON.stringify(body))
    this.#nonce++
  }

  /** Opens sessions at node 2 for one order, all at the same time. */
  async opened(
    count: number,
    change?: (at: number) => Change,
  ): Promise<{ session: Session | null; answer: Answer }[]> {
    const order = await this.order()
    return Promise.all(
      Array.from({ length: count }, (_, at) =>
        this.node.open(order, change ? { change: change(at) } : {}),
      ),
    )
  }
}

/**
 * Flips one bit of this column in the first message: the response depends on a bit of the honest
 * node's secret.
 */
const column =
  (at: number): Change =>
  ({ round, payload, signing }) =>
    round === 1
      ? tamper(payload, { message: 'secp256k1/sign/1', kind: 'ot-column', column: at, signing })
      : payload

/**
 * Returns the part of an answer that concerns the session: the code with which its engine ended,
 * otherwise the answer's code, or that the session continues.
 */
function wordsOf({ status, body }: { status: number; body: Json }): string {
  return status === 200
    ? 'goes on'
    : (/ended: ([A-Z]+)/.exec(String(body?.message))?.[1] ?? String(body?.error))
}
const countOf = (all: readonly string[]): Record<string, number> =>
  all.reduce<Record<string, number>>((sum, each) => ({ ...sum, [each]: (sum[each] ?? 0) + 1 }), {})

/**
 * Counts the answers that continue a session and were sent after the ban was recorded. The cheating
 * node receives them in any order.
 */
function answeredLate(answers: readonly Answer[]): { earlier: number; later: number } {
  const ban = Math.min(...answers.filter(isFound).map(({ height }) => height))
  const answered = answers.filter(isAnswered)
  const later = answered.filter(({ height }) => height >= ban).length
  return { earlier: answered.length - later, later }
}

/** Returns whether an answer reveals to the cheating node that it was detected. */
const isFound = ({ body }: { body: Json }): boolean =>
  body?.error === 'BANNED' || /CHEAT/.test(String(body?.message))
const isAnswered = ({ status, body }: Answer): boolean =>
  status === 200 && body.messages?.length > 0

describe('node 1 leads and probes one column of the OT extension in each of many sessions', () => {
  let scene: Scene
  let idle: { session: Session | null }[]
  const arrived: Answer[] = []

  before(async () => {
    scene = await Scene.begin('apart')
    idle = await scene.opened(4)
    const sessions = await scene.opened(SESSIONS, column)
    assert.ok(
      sessions.every(({ session }) => session),
      JSON.stringify(sessions.find(({ session }) => !session)?.answer),
    )
    const said = sessions.map(({ session }) => scene.node.said(session!, 1))
    await Promise.all(
      sessions.map(async ({ session }, at) => {
        arrived.push(await scene.node.round(session!, [said[at]!]))
      }),
    )
  })
  after(() => scene.end())

  test('after the first detected cheat, no session of node 1 gets a response', (t) => {
    const { earlier, later } = answeredLate(arrived)
    t.diagnostic(
      `of ${SESSIONS}: ${earlier} answered before the first that was found, ${later} after it`,
    )
    assert.ok(arrived.some(isFound), 'none was found')
    assert.equal(
      later,
      0,
      `${later} of ${SESSIONS} were answered after the first that was found, ${earlier} before it`,
    )
  })

  // A session that failed after the ban must be indistinguishable from one that passed. Otherwise
  // the answer would reveal the secret bit anyway.
  test('responses after the ban do not reveal whether the cheat was detected', (t) => {
    const ban = Math.min(...arrived.filter(isFound).map(({ height }) => height))
    const said = countOf(arrived.filter(({ height }) => height >= ban).map(wordsOf))
    t.diagnostic(JSON.stringify(said))
    const others = Object.entries(said)
      .filter(([words]) => words !== 'BANNED')
      .reduce((sum, [, count]) => sum + count, 0)
    assert.ok(others <= 1, `beside the first: ${JSON.stringify(said)}`)
  })

  test('node 2 has banned node 1', async () => {
    assert.deepEqual(await scene.bansOf(2), [1])
  })

  test('refuses every later call of node 1 because node 1 is banned', async () => {
    const { node, workspace } = scene
    const run = randomBytes(32).toString('hex')
    const { answer } = await node.open(scene.last)
    const name = { key_id: workspace.set.key_id, epoch: 1, session: run }
    const codes = {
      open: answer.body.error,
      'test/open': (await node.say(2, '/peer/test/open', { ...name, fresh: run })).body.error,
      'test/round': (await node.say(2, '/peer/test/round', { messages: [[]] })).body.error,
      'refresh/commit': (await node.say(2, '/peer/refresh/commit', name)).body.error,
      'ceremony/open': (
        await node.say(2, '/peer/ceremony/open', {
          run,
          kind: 'keygen',
          curve: 'secp256k1',
          key_id: 's-0',
          epoch: 0,
        })
      ).body.error,
      'ceremony/message': (await node.say(2, '/peer/ceremony/message', { run, payloads: [] })).body
        .error,
    }
    assert.deepEqual(codes, Object.fromEntries(Object.keys(codes).map((call) => [call, 'BANNED'])))
  })

  test('the open sessions of node 1 are deleted', async () => {
    const codes = await Promise.all(
      idle.map(async ({ session }) => {
        const { body } = await scene.node.round(session!, [scene.node.said(session!, 1)])
        return body.error ?? `${body.messages.length} rounds`
      }),
    )
    assert.deepEqual(
      codes,
      idle.map(() => 'BANNED'),
    )
  })

  test('nodes 2 and 3 continue to sign, and the ban survives a restart', async () => {
    await scene.signsOn()
    await scene.cluster.restart(2)
    assert.deepEqual(await scene.bansOf(2), [1])
    await scene.signsOn()
  })
})

describe('node 1 probes columns of the OT extension in the test signatures after a refresh', () => {
  const TESTS = 8
  let scene: Scene
  let tests: Awaited<ReturnType<CheatingNode['openTest']>>[]
  before(async () => {
    scene = await Scene.begin('apart', async ({ cluster, workspace }) => {
      const { body } = await cluster.operator(1, 'refresh', { key_ids: [workspace.set.key_id] })
      assert.equal(body.refreshed?.length, 1, JSON.stringify(body))
    })
    tests = await Promise.all(
      Array.from({ length: TESTS }, (_, at) => scene.node.openTest(column(at))),
    )
  })
  after(() => scene.end())

  test('a cheat causes a ban even if node 1 requests no response', async () => {
    // It is also correct if no test signature is possible after the refresh.
    if (tests.every(({ answer }) => answer.status !== 200)) return
    await Promise.all(tests.map(({ say }) => say()))
    await waitFor(
      `a ban, because ${TESTS} tests heard a flipped bit`,
      async () => (await scene.bansOf(2)).length > 0,
    )
    assert.deepEqual(await scene.bansOf(2), [1])
  })

  test('after the first detected cheat, no session of node 1 gets a response', async (t) => {
    const arrived: Answer[] = []
    await Promise.all(
      tests.map(async ({ say }) => {
        arrived.push(await say())
      }),
    )
    const { earlier, later } = answeredLate(arrived)
    t.diagnostic(
      `of ${TESTS}: ${earlier} answered before the first that was found, ${later} after it`,
    )
    assert.equal(later, 0, `${later} of ${TESTS} were answered after the first that was found`)
  })

  test('nodes 2 and 3 continue to sign', () => scene.signsOn())
})

describe('node 2 leads, and its partner node 1 probes one column of the OT extension per session', () => {
  let scene: Scene
  let answers: { status: number; body: Json }[] = []
  before(async () => {
    scene = await Scene.begin('apart')
  })
  after(() => scene.end())

  test('after the first detected cheat, no session of node 1 gets a response', async (t) => {
    let next = 0
    const columns = new Map<Uint8Array, number>()
    scene.node.answers = (said) => {
      if (said.round === 1) columns.set(said.payload, next++)
      return column(columns.get(said.payload) ?? 0)(said)
    }
    const order = await scene.order()
    answers = await Promise.all(Array.from({ length: SESSIONS }, () => scene.node.lead(order)))
    const ban = await scene.banAt(2)
    // The call that follows the opening contains the second round: the cheating node then knows
    // that its first round passed.
    const passed = scene.node.rounds.filter(({ rounds }) => rounds > 1)
    const later = passed.filter(({ height }) => height >= ban).length
    t.diagnostic(
      `of ${SESSIONS}: ${passed.length} passed, ${later} of them after the first that was found`,
    )
    assert.ok(answers.some(isFound), 'none was found')
    assert.equal(
      later,
      0,
      `${later} of ${SESSIONS} were answered after the first that was found, ${passed.length - later} before it`,
    )
  })

  // The platform receives these answers and may cooperate with node 1.
  test("at most one session reports a cheat; others report the ban or the partner's error", (t) => {
    const said = countOf(answers.map(wordsOf))
    t.diagnostic(JSON.stringify(said))
    assert.ok((said['CHEAT'] ?? 0) <= 1, JSON.stringify(said))
  })

  test('node 2 has banned node 1 and refuses it as a partner', async () => {
    assert.deepEqual(await scene.bansOf(2), [1])
    assert.equal((await scene.node.lead(scene.last)).body.error, 'BANNED')
  })

  test('nodes 2 and 3 continue to sign', () => scene.signsOn())
})

const SWITCHES: readonly Switch[] = CHEATS['secp256k1/sign']
const isBanned = ({ expected }: Switch): boolean => expected === 'CHEAT'

/** Tampers with the message of the switch's round. */
const switched =
  (each: Switch, others: readonly Uint8Array[]): Change =>
  ({ round, payload, received }) =>
    round === roundOf(each)
      ? tamper(payload, each.cheat({ received: received[round - 1]!, other: others[round - 1]! }))
      : payload

describe('node 1 cheats without leaving proof: nothing is signed, and no node is banned', () => {
  let scene: Scene
  let others: readonly Uint8Array[]
  before(async () => {
    scene = await Scene.begin('here')
    others = await scene.node.archive(await scene.order())
  })
  after(() => scene.end())

  async function asking(change: Change): Promise<string> {
    const { session, answer } = await scene.node.open(await scene.order(), { change })
    return session ? wordsOf(await scene.node.converse(session)) : wordsOf(answer)
  }
  async function answering(change: Change): Promise<string> {
    scene.node.answers = change
    return wordsOf(await scene.node.lead(await scene.order()))
  }

  for (const [role, end] of [
    ['asks', asking],
    ['answers', answering],
  ] as const) {
    test(`a false message of each kind ends the session without a ban (node 1 ${role})`, async () => {
      const wrong: string[] = []
      for (const each of SWITCHES.filter((one) => !isBanned(one))) {
        const code = await end(switched(each, others))
        if (code !== each.expected) wrong.push(`${each.name}: ${code} instead of ${each.expected}`)
      }
      scene.node.hasOtherShare = true
      const other = await end(({ payload }) => payload)
      scene.node.hasOtherShare = false
      if (other !== 'ABORT') wrong.push(`another share: ${other}`)
      assert.deepEqual(wrong, [])
      assert.deepEqual([await scene.bansOf(2), await scene.bansOf(3)], [[], []])
      await scene.signsOn()
    })
  }

  test('repeated, late, foreign and missing messages do not lead to a signature or a ban', async () => {
    const { node } = scene
    const ends: Record<string, string> = {}
    for (const [name, messages] of [
      ['twice', (own: Uint8Array) => [own, own]],
      ['missing', () => []],
      ['another session', () => [others[0]!]],
    ] as const) {
      const { session } = await node.open(await scene.order())
      ends[name] = wordsOf(await node.round(session!, messages(session!.mine[0]!)))
    }
    const { session } = await node.open(await scene.order())
    await node.round(session!, [session!.mine[0]!])
    ends['late'] = wordsOf(await node.round(session!, [session!.mine[0]!]))
    // A node that receives nothing sends nothing: the session continues to wait.
    assert.deepEqual(ends, {
      twice: 'MALFORMED',
      missing: 'goes on',
      'another session': 'MALFORMED',
      late: 'MALFORMED',
    })
    assert.deepEqual(await scene.bansOf(2), [])
    await scene.signsOn()
  })

  test('an opening message with an unknown epoch does not lead to a ban', async () => {
    const { answer, session } = await scene.node.open(await scene.order(), { epoch: 7 })
    assert.ok(
      session ? answer.body.epoch === 0 : answer.status !== 200,
      JSON.stringify(answer.body),
    )
  })
})

// In one cluster, node 2 bans the node that leads the session; in the other, node 3 bans its
// partner.
describe('node 1 cheats in a provable way and is banned', () => {
  for (const each of SWITCHES.filter(isBanned)) {
    test(each.name, async () => {
      const scene = await Scene.begin('here')
      try {
        const others = await scene.node.archive(await scene.order())
        const { session } = await scene.node.open(await scene.order(), {
          change: switched(each, others),
        })
        assert.ok(isFound(await scene.node.converse(session!)))
        assert.deepEqual([await scene.bansOf(2), await scene.bansOf(3)], [[1], []])
        scene.node.answers = switched(each, others)
        assert.ok(isFound(await scene.node.lead(await scene.order(), 3)))
        assert.deepEqual([await scene.bansOf(2), await scene.bansOf(3)], [[1], [1]])
        await scene.signsOn()
      } finally {
        await scene.end()
      }
    })
  }
})

describe('node 1 opens more sessions than one partner may have', () => {
  const LIMIT = 256
  const ASKED = 600
  let scene: Scene
  let other: Caller
  before(async () => {
    scene = await Scene.begin('apart', async ({ workspace }) => {
      other = await workspace.caller(2)
    })
  })
  after(() => scene.end())

  test('refuses sessions above the limit, while node 2 signs with node 3', async (t) => {
    // The order uses another account: node 2 can receive either order first, and nonces of one
    // account are sequential.
    const request = await transfer(other, {
      asset: 'ETH',
      amount: 1,
      destination_address: SINK_ETH,
    })
    const opening = scene.opened(ASKED)
    const { status, body } = await scene.workspace.sign(
      pay(request),
      eth([2, ETH.chain_index, 0], { value: 10n ** 18n }),
      [2, 3],
    )
    assert.equal(status, 200, JSON.stringify(body))
    const codes = new Map<string, number>()
    for (const { session, answer } of await opening) {
      const code = session ? 'open' : String(answer.body.error)
      codes.set(code, (codes.get(code) ?? 0) + 1)
    }
    t.diagnostic(JSON.stringify(Object.fromEntries(codes)))
    const open = codes.get('open') ?? 0
    assert.ok(open > 0 && open <= LIMIT, `${open} of ${ASKED} are open`)
    assert.equal(
      codes.get('TOO_BUSY') ?? 0,
      ASKED - open,
      JSON.stringify(Object.fromEntries(codes)),
    )
    await scene.signsOn()
  })
})

describe('node 1 opens sessions with many inputs', () => {
  const INPUTS = 8
  const ASKED = 80
  const LIMIT = 256
  let scene: Scene
  before(async () => {
    scene = await Scene.begin('apart')
  })
  after(() => scene.end())

  test('the session limit counts the engine session of each input', async (t) => {
    const paths = Array.from({ length: INPUTS }, (_, index) => [1, BTC.chain_index, index])
    const source = funding(
      scene.workspace,
      paths.map((path) => ({ path, value: 20_000n })),
    )
    const request = await transfer(scene.caller, {
      asset: 'BTC',
      amount: 0.001,
      destination_address: SINK_BTC,
    })
    const unsigned = btc(scene.workspace, {
      inputs: paths.map((path, output) => ({ funding: source, output, path })),
      amount: 100_000n,
      change: { path: [1, BTC.chain_index, 0x7fffffff], value: 58_000n },
    })
    const order: Order = { workspace: scene.workspace.name, purpose: pay(request), unsigned }
    const opened = await Promise.all(Array.from({ length: ASKED }, () => scene.node.open(order)))
    const open = opened.filter(({ session }) => session).length
    const refusals = new Set(
      opened.flatMap(({ session, answer }) => (session ? [] : [String(answer.body.error)])),
    )
    t.diagnostic(
      `${open} of ${ASKED} are open, with ${INPUTS} engine sessions each; ${[...refusals].join()}`,
    )
    assert.ok(open > 0, JSON.stringify(opened[0]?.answer.body))
    assert.ok(open * INPUTS <= LIMIT, `${open * INPUTS} engine sessions are open`)
    assert.deepEqual([...refusals], ['TOO_BUSY'])
    await scene.signsOn()
  })
})

describe('honest nodes record a step when a signature of it can exist', () => {
  let scene: Scene
  before(async () => {
    scene = await Scene.begin('here')
  })
  after(() => scene.end())

  test('the partner records it before it sends its third message', async () => {
    const { session, answer } = await scene.node.open(await scene.order())
    const heights = [answer.height]
    for (const round of [1, 2]) {
      const said = await scene.node.next(session!, round)
      heights.push(said.height)
    }
    assert.equal(heights[1], heights[0], 'after its first message')
    assert.ok(heights[2]! > heights[0]!, 'with its third message')
  })

  test('the leader records it before it sends its third message', async () => {
    await scene.node.lead(await scene.order())
    const [first, second] = scene.node.rounds.slice(-2)
    assert.ok(second!.height > first!.height, JSON.stringify(scene.node.rounds))
  })

  test('attack (K3): a peer begins refreshes at the rate of key generations', async () => {
    const opening = () => ({
      run: randomBytes(32).toString('hex'),
      kind: 'refresh',
      curve: 'secp256k1',
      key_id: scene.workspace.set.key_id,
      epoch: 0,
    })
    let begun = 0
    let answer: Json
    do {
      answer = (await scene.node.say(2, '/peer/ceremony/open', opening())).body
      begun++
    } while (answer.error === undefined && begun < 1000)
    assert.equal(answer.error, 'TOO_BUSY', JSON.stringify(answer))
    assert.match(answer.message, /generates or refreshes keys too often/)
  })
})
