import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { ThresholdError } from '@custody/threshold'
import { Refusal } from '../errors.ts'
import { Bans, fingerprintOf } from './bans.ts'
import { Store } from '../store/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'signer-bans-'))
after(() => {
  rmSync(folder, { recursive: true, force: true })
})

const identity = () => generateKeyPairSync('ed25519').publicKey
const [second, third, replacement] = [identity(), identity(), identity()]
const cheat = (node: number) => new ThresholdError('CHEAT', 'the check failed', node)
const BANNED = { code: 'BANNED' }

let files = 0
const path = () => join(folder, `${files++}.sqlite`)
function banned(store: Store, of2 = second): { bans: Bans; alerts: string[] } {
  const alerts: string[] = []
  const log = (level: string, message: string) => {
    if (level === 'alert') alerts.push(message)
  }
  const config = {
    peerList: [
      { node: 2, identity: of2 },
      { node: 3, identity: third },
    ],
  }
  const bans = new Bans({ config, store, log } as unknown as ConstructorParameters<typeof Bans>[0])
  return { bans, alerts }
}
const open = (at = path()) => new Store(at, () => 1)
/** A step of the engine that ends when the test calls `pass` or `fail`. */
function step(): { run: () => Promise<string>; pass: () => void; fail: (error: unknown) => void } {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  return {
    run: () => promise,
    pass: () => {
      resolve('answer')
    },
    fail: reject,
  }
}

test('threshold rule 7: a node is banned only for proven misbehaviour', () => {
  const store = open()
  const { bans } = banned(store)
  for (const error of [
    new ThresholdError('ABORT', 'x', 2),
    new ThresholdError('MALFORMED', 'x', 2),
    new Refusal('PEER_UNAVAILABLE', 'x'),
    new Error('timeout'),
  ])
    bans.consider(error)
  bans.assertNot(2)
  bans.consider(cheat(2))
  assert.throws(() => {
    bans.assertNot(2)
  }, BANNED)
  assert.throws(() => {
    bans.assertNone()
  }, BANNED)
  bans.assertNot(3)
  assert.deepEqual(bans.nodes, [2])
  store.close()
})

test('a ban follows the identity key: it survives a restart and does not apply to a replacement', () => {
  const at = path()
  let store = open(at)
  banned(store).bans.consider(cheat(2))
  store.close()
  store = open(at)
  assert.deepEqual(
    store.state.bans.map(({ node, identity: key }) => [node, key]),
    [[2, fingerprintOf(second)]],
  )
  assert.deepEqual(banned(store, replacement).bans.nodes, [])
  banned(store, replacement).bans.consider(cheat(2))
  assert.deepEqual(
    [
      banned(store, replacement).bans.nodes,
      banned(store).bans.nodes,
      banned(store, identity()).bans.nodes,
    ],
    [[2], [2], []],
  )
  store.close()
})

test("a ban of an earlier version, stored by node number, applies to that number's current key", () => {
  const at = path()
  const store = open(at)
  store.append('ban', { node: 2, reason: 'drill' })
  assert.deepEqual(banned(store).bans.nodes, [2])
  assert.deepEqual(banned(store, replacement).bans.nodes, [])
  assert.equal(store.state.bans.length, 1)
  store.close()
})

test('a ban ends open work with that node before it is stored, and no work with other nodes', () => {
  const store = open()
  const { bans } = banned(store)
  const ended: string[] = []
  bans.endsWith(2, () => {
    ended.push(`two, on disk: ${store.state.bans.length}`)
  })
  bans.endsWith(2, () => {
    ended.push('taken back')
  })()
  bans.endsWith(3, () => {
    ended.push('three')
  })
  bans.consider(cheat(2))
  assert.deepEqual(ended, ['two, on disk: 0'])
  assert.equal(store.state.bans.length, 1)
  assert.throws(() => bans.endsWith(2, () => {}), BANNED)
  store.close()
})

test('a ban takes effect immediately on a full disk, and is stored once there is space', () => {
  const store = open()
  const { bans, alerts } = banned(store)
  const append = store.append.bind(store)
  store.append = () => {
    throw new Error('disk full')
  }
  bans.consider(cheat(2))
  assert.throws(() => {
    bans.assertNot(2)
  }, BANNED)
  bans.write()
  assert.deepEqual(
    [store.state.bans.length, alerts.filter((each) => /could not be stored/.test(each)).length],
    [0, 2],
  )
  store.append = append
  bans.write()
  bans.write()
  assert.deepEqual([store.state.bans.length, bans.nodes], [1, [2]])
  store.close()
})

test('runs the checks of a node one at a time; after a detected cheat no other check starts', async () => {
  const store = open()
  const { bans } = banned(store)
  const steps = Array.from({ length: 500 }, step)
  const begun: number[] = []
  const messages: string[] = []
  const answers = steps.map(({ run }, at) =>
    bans.check(2, () => {
      begun.push(at)
      return run()
    }),
  )
  for (const answer of answers)
    answer.then(
      (text) => {
        messages.push(text)
      },
      (error: { code: string }) => {
        messages.push(error.code)
      },
    )
  const other = step()
  const elsewhere = bans.check(3, other.run)
  // The result does not depend on the order in which the engine would have ended the steps.
  steps.forEach(({ pass }, at) => {
    if (at !== 123) pass()
  })
  steps[123]!.fail(cheat(2))
  await Promise.allSettled(answers)
  assert.deepEqual(
    [
      begun.length,
      messages.slice(0, 123).every((each) => each === 'answer'),
      messages[123],
      messages.slice(124).every((each) => each === 'BANNED'),
    ],
    [124, true, 'CHEAT', true],
  )
  assert.equal(messages.length, 500)
  other.pass()
  assert.equal(await elsewhere, 'answer')
  await assert.rejects(
    bans.check(2, async () => 'late'),
    BANNED,
  )
  store.close()
})

test('after a check fails without proof of cheating, the next check starts', async () => {
  const store = open()
  const { bans } = banned(store)
  const failed = bans.check(2, async () => {
    throw new ThresholdError('ABORT', 'x', 2)
  })
  const next = bans.check(2, async () => 'answer')
  await assert.rejects(failed, { code: 'ABORT' })
  assert.equal(await next, 'answer')
  store.close()
})

test("an operator's ban has the effects of proof, is recorded as theirs, and can be repeated", () => {
  const at = path()
  let store = open(at)
  const { bans, alerts } = banned(store)
  let ended = 0
  bans.endsWith(2, () => {
    ended++
  })
  assert.throws(() => bans.order(1, 'own number'), { code: 'BAD_ORDER' })
  const append = store.append.bind(store)
  store.append = () => {
    throw new Error('disk full')
  }
  assert.throws(() => bans.order(2, 'confirmed'), {
    code: 'INTERNAL',
    message: /only until this node stops/,
  })
  assert.throws(
    () => {
      bans.assertNot(2)
    },
    {
      code: 'BANNED',
      message: "Node 2 was banned by this node's operator; it is banned permanently",
    },
  )
  store.append = append
  const first = bans.order(2, 'again')
  assert.deepEqual(
    [first.reason, first.cause, first.height, ended],
    ['confirmed', 'operator', store.record.height, 1],
  )
  assert.equal(bans.order(2, 'third'), first)
  bans.consider(cheat(2))
  assert.deepEqual(
    [
      store.state.bans.length,
      alerts.filter((each) => /by the order of the operator/.test(each)).length,
    ],
    [1, 1],
  )
  store.close()
  store = open(at)
  assert.deepEqual([store.state.bans[0], banned(store).bans.nodes], [first, [2]])
  store.close()
})

test('a key is unusable if it was recorded before a ban of any identity', () => {
  const store = open()
  const key = (key_id: string) =>
    store.append('key', {
      curve: 'secp256k1',
      key_id,
      public_key: '02ab',
      chain_code: 'cd',
      mode: 'local',
      epoch: 0,
      signatures: [],
    })
  const isLost = (key_id: string) => store.state.isLost(key_id)
  key('older')
  assert.equal(isLost('older'), false)
  store.append('ban', { node: 3, reason: 'x', identity: fingerprintOf(replacement) })
  key('newer')
  assert.deepEqual([isLost('older'), isLost('newer')], [true, false])
  // A refresh does not make the key trusted: the cheating node may have known its old shares.
  store.append('refreshed', { key_id: 'older', epoch: 1 })
  assert.equal(isLost('older'), true)
  store.close()
})

test("a key's age is the start of its generation; with a ban, keys of unknown age are unusable", () => {
  const at = path()
  let store = open(at)
  const begin = (key_id: string) =>
    store.append('session', { kind: 'keygen', key_id, sessions: [key_id] })
  const key = (key_id: string) =>
    store.append('key', {
      curve: 'secp256k1',
      key_id,
      public_key: '02ab',
      chain_code: 'cd',
      mode: 'local',
      epoch: 0,
      signatures: [],
    })
  assert.equal(store.state.isLost('unknown'), false)
  begin('before')
  store.append('ban', { node: 3, reason: 'x', identity: fingerprintOf(replacement) })
  begin('after')
  // The last message of the key's generation was lost: the node receives it from a peer.
  key('before')
  const lost = () => ['before', 'after', 'unknown'].map((each) => store.state.isLost(each))
  assert.deepEqual(lost(), [true, false, true])
  key('after')
  store.close()
  store = open(at)
  assert.deepEqual(lost(), [true, false, true])
  store.close()
})
