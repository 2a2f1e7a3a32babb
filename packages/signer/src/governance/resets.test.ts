// Resets of policies at three nodes with the real record, policies and exchange; the clocks are moved.
import assert from 'node:assert/strict'
import { createPublicKey } from 'node:crypto'
import { afterEach, beforeEach, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import {
  canonicalText,
  documentHash,
  PolicyError,
  readDocument,
  type Governance,
  type SignedStatement,
} from '@custody/policy'
import { policyWith } from '../../../policy/testing/documents.ts'
import {
  DAY_S,
  possessionsOf,
  proposalOf,
  signedBy,
  successorOf,
} from '../../../policy/testing/governance.ts'
import { identityOf, PolicyNodes } from '../../testing/policy-nodes.ts'
import { Refusal } from '../errors.ts'
import type { Item, ItemOf } from './items.ts'
import type { ResetBody } from './reset-rules.ts'
import type { ResetView } from './resets.ts'
import { policyVersions } from './versions.ts'
import { isResetWord, signReset, type SignedResetWord } from './word.ts'

const workspace = 'acme'
const WEEK_S = 7 * DAY_S
const NODES = [1, 2, 3] as const
const RESETS = '/peer/policy/resets'
/** The people whom a reset puts in charge. */
const OTHERS = { admins: ['dan', 'erin', 'frank'], treasury: ['dan'], compliance: ['compliance'] }

let nodes: PolicyNodes
beforeEach(() => {
  nodes = new PolicyNodes()
})
afterEach(() => {
  nodes.stop()
})

async function installed(): Promise<Governance> {
  const { document } = policyWith([])
  const possessions = possessionsOf(document).map((each) => JSON.stringify(each))
  const first = {
    kind: 'first' as const,
    workspace,
    document: canonicalText(document),
    possessions,
  }
  for (const node of [1, 2]) nodes.node(node).exchange.type(first)
  await ping()
  await ping()
  assert.deepEqual(nodes.numbers, [1, 1, 1])
  return nodes.node(1).policies.current(workspace)!
}

function resetBody(governance: Governance, fields: object = { groups: OTHERS }): ResetBody {
  const document = successorOf(governance, fields)
  const possessions = possessionsOf(document).map((each) => JSON.stringify(each))
  return { workspace, document: canonicalText(document), possessions }
}
const hashOf = ({ document }: ResetBody): string => documentHash(readDocument(document))

async function ping(): Promise<void> {
  await nodes.ping()
  await setImmediate()
}

/** Enters a reset at nodes, and lets all nodes read it. */
async function enter(body: ResetBody, at: readonly number[] = NODES): Promise<void> {
  for (const node of at) nodes.node(node).exchange.resets.enter(body)
  await ping()
  await ping()
}

const viewOf = (node: number): ResetView | null => nodes.node(node).exchange.resets.of(workspace)
const stateOf = (node: number): Governance => nodes.node(node).policies.held(workspace).governance!

/** Hash of the document under which a node signs; null if it signs nothing. */
function signsUnder(node: number): string | null {
  const { policies, exchange } = nodes.node(node)
  try {
    const governance = policies.current(workspace)!
    exchange.assertCurrent(governance)
    return governance.policy.hash
  } catch (error) {
    assert.ok(error instanceof Refusal)
    return null
  }
}

function changeOf(
  governance: Governance,
  by: readonly string[] = ['alice', 'bob'],
): ItemOf<'change'> {
  const next = successorOf(governance, { stop: { group: 'treasury' } })
  const { approvals } = proposalOf(governance, next, by, { at: nodes.now })
  const texts = approvals.map((each) => JSON.stringify(each))
  const document = canonicalText(next)
  return { kind: 'change', workspace, document, possessions: [], approvals: texts }
}
const times = (): object => ({ at: nodes.now, expires: nodes.now + 3600 })
const statementOf = (signed: SignedStatement): Item => ({
  kind: 'statement',
  workspace,
  signed: JSON.stringify(signed),
})

const refusedWith = (code: PolicyError['code'], path: string) => (error: unknown) => {
  assert.ok(error instanceof PolicyError, String(error))
  assert.equal(`${error.code} ${error.path}`, `${code} ${path}`)
  return true
}

/** Passes a time in steps of a day, with messages between the nodes. */
async function pass(seconds: number): Promise<void> {
  for (let left = seconds; left > 0; left -= DAY_S) {
    nodes.now += Math.min(left, DAY_S)
    await ping()
  }
  await ping()
}

/** What a hostile node answers instead of its states. */
function lie(node: number, resets: (honest: unknown[]) => unknown[]): void {
  nodes.node(node).altered = (call, answer) =>
    call === RESETS ? { resets: resets((answer as { resets: unknown[] }).resets) } : answer
}

test('a reset that three operators have entered is in force after seven days', async () => {
  const governance = await installed()
  const change = changeOf(governance)
  const body = resetBody(governance)
  await enter(body, [1, 2])
  await pass(3 * DAY_S)
  await enter(body, [3])
  const since = nodes.now
  for (const node of NODES) {
    assert.equal(viewOf(node)!.acts_at, since + WEEK_S)
    assert.deepEqual(
      viewOf(node)!.given_by.map((each) => each.node),
      [1, 2, 3],
    )
    assert.equal(nodes.node(node).exchange.resets.count(), 1)
    assert.equal(signsUnder(node), governance.policy.hash)
  }
  await pass(WEEK_S - 1)
  assert.deepEqual(nodes.numbers, [1, 1, 1])
  for (const node of NODES) assert.equal(signsUnder(node), governance.policy.hash)
  await pass(1)
  assert.deepEqual(nodes.numbers, [2, 2, 2])
  for (const node of NODES) {
    assert.equal(viewOf(node), null)
    assert.equal(nodes.node(node).exchange.resets.count(), 0)
    assert.equal(signsUnder(node), hashOf(body))
    const [version] = policyVersions(nodes.node(node), workspace, { limit: 1 })
    assert.equal(version!.hash, hashOf(body))
    assert.equal(version!.since, since + WEEK_S)
    assert.equal(version!.kind, 'reset')
    assert.throws(
      () => nodes.node(node).exchange.present(change),
      refusedWith('OTHER_POLICY', 'previous'),
    )
  }
  nodes.node(1).exchange.present(changeOf(stateOf(1), ['dan', 'erin']))
  await ping()
  await pass(DAY_S)
  assert.deepEqual(nodes.numbers, [3, 3, 3])
  const kinds = policyVersions(nodes.node(3), workspace, { limit: 9 }).map(({ kind }) => kind)
  assert.deepEqual(kinds, ['change', 'reset', 'first'])
})

test('the history states a reset with its proofs, also if its document was vetoed as a change before', async () => {
  const governance = await installed()
  const change = changeOf(governance)
  const next = { number: 2, hash: documentHash(readDocument(change.document)) }
  nodes.node(1).exchange.present(change)
  nodes
    .node(1)
    .exchange.present(statementOf(signedBy(governance, 'carol', 'veto', { ...times(), next })))
  await ping()
  const body = resetBody(governance, { stop: { group: 'treasury' } })
  assert.equal(hashOf(body), next.hash)
  await enter(body)
  await pass(WEEK_S)
  assert.deepEqual(nodes.numbers, [2, 2, 2])
  for (const node of NODES) {
    const [version] = policyVersions(nodes.node(node), workspace, { limit: 1 })
    assert.equal(version!.kind, 'reset')
    assert.deepEqual(
      version!.signed_by.filter(({ at }) => at !== null),
      [],
      'the approvals of the vetoed change are not those of the reset',
    )
  }
})

for (const at of [[1], [2, 3]])
  test(`a reset that ${at.length} of three operators have entered never comes into force`, async () => {
    const governance = await installed()
    await enter(resetBody(governance), at)
    await pass(30 * DAY_S)
    assert.deepEqual(nodes.numbers, [1, 1, 1])
    for (const node of NODES) {
      assert.equal(viewOf(node)!.acts_at, null)
      assert.deepEqual(
        viewOf(node)!.given_by.map((each) => each.node),
        at,
      )
      assert.equal(signsUnder(node), governance.policy.hash)
    }
  })

test('different documents of a reset never come into force', async () => {
  const governance = await installed()
  const body = resetBody(governance)
  await enter(body, [1, 2])
  await enter(resetBody(governance, { groups: { ...OTHERS, treasury: ['erin'] } }), [3])
  await pass(30 * DAY_S)
  assert.deepEqual(nodes.numbers, [1, 1, 1])
  assert.equal(viewOf(2)!.acts_at, null)
  assert.equal(new Set(viewOf(2)!.given_by.map(({ hash }) => hash)).size, 2)
  // The third operator enters the same one after all.
  await enter(body, [3])
  await pass(WEEK_S)
  assert.deepEqual(nodes.numbers, [2, 2, 2])
})

test('a reset that was withdrawn and entered again waits for seven days again', async () => {
  const governance = await installed()
  const body = resetBody(governance)
  await enter(body)
  await pass(WEEK_S - 60)
  assert.equal(nodes.node(2).exchange.resets.withdraw(workspace), true)
  assert.equal(nodes.node(2).exchange.resets.withdraw(workspace), false)
  await ping()
  assert.equal(viewOf(1)!.acts_at, null)
  await pass(10 * DAY_S)
  assert.deepEqual(nodes.numbers, [1, 1, 1])
  await enter(body, [2])
  const since = nodes.now
  for (const node of NODES) assert.equal(viewOf(node)!.acts_at, since + WEEK_S)
  await pass(WEEK_S - 1)
  assert.deepEqual(nodes.numbers, [1, 1, 1])
  await pass(1)
  assert.deepEqual(nodes.numbers, [2, 2, 2])
})

test('a change that the people of the policy approve ends a reset at all nodes', async () => {
  const governance = await installed()
  await enter(resetBody(governance))
  await pass(WEEK_S - 60)
  nodes.node(2).exchange.present(changeOf(governance))
  assert.equal(nodes.node(2).exchange.resets.of(workspace)?.hash ?? null, null)
  await ping()
  for (const node of NODES) assert.equal(viewOf(node), null)
  await pass(30 * DAY_S)
  assert.deepEqual(nodes.numbers, [2, 2, 2])
  assert.deepEqual(stateOf(1).policy.document.stop, { group: 'treasury' })
})

test('a change that only one node has accepted ends a reset, also if it is vetoed', async () => {
  const governance = await installed()
  const body = resetBody(governance)
  await enter(body)
  await pass(WEEK_S - 60)
  nodes.cut(1)
  const change = changeOf(governance)
  nodes.node(1).exchange.present(change)
  const next = { number: 2, hash: stateOf(1).next!.policy.hash }
  const veto = statementOf(signedBy(governance, 'carol', 'veto', { ...times(), next }))
  for (const node of [1, 2]) nodes.node(node).exchange.present(veto)
  await pass(2 * DAY_S)
  assert.deepEqual(nodes.numbers, [1, 1, 1])
  nodes.connect(1)
  await pass(30 * DAY_S)
  assert.deepEqual(nodes.numbers, [1, 1, 1])
  assert.deepEqual(
    viewOf(3)!.given_by.map((each) => each.node),
    [2, 3],
  )
  await enter(body, [1])
  await pass(WEEK_S - 1)
  assert.deepEqual(nodes.numbers, [1, 1, 1])
  await pass(1)
  assert.deepEqual(nodes.numbers, [2, 2, 2])
})

test('one person cannot end a reset, and a stop of the earlier policy can be ended after it', async () => {
  const governance = await installed()
  const body = resetBody(governance)
  await enter(body)
  const stop = signedBy(governance, 'alice', 'stop', { ...times(), sub_account: null, reason: 'x' })
  const next = { number: 2, hash: hashOf(body) }
  const suspended = { target: { person: 'bob', key: 'k1' }, reason: 'x' }
  const revoked = { target: { person: 'dan', key: 'k1' } }
  for (const signed of [
    stop,
    signedBy(governance, 'alice', 'veto', { ...times(), next }),
    signedBy(governance, 'alice', 'suspend', { ...times(), ...suspended }),
    signedBy(governance, 'dan', 'revoke', { ...times(), ...revoked }),
  ])
    nodes.node(1).exchange.present(statementOf(signed))
  await ping()
  await pass(WEEK_S)
  assert.deepEqual(nodes.numbers, [2, 2, 2])
  const { stops, suspensions, revoked: keys } = stateOf(3)
  assert.equal(stops.length, 1)
  assert.deepEqual(suspensions, [])
  assert.equal(keys.size, 1)
  const { statement } = stop
  const resume = { ...times(), stop: stops[0]!.hash }
  const resumedBy = (by: readonly string[]): Item => ({
    kind: 'resumed',
    workspace,
    stop: JSON.stringify(stop),
    approvals: by.map((each) => JSON.stringify(signedBy(stateOf(1), each, 'resume', resume))),
  })
  assert.equal(statement.kind, 'stop')
  assert.throws(
    () => nodes.node(1).exchange.present(resumedBy(['alice', 'bob'])),
    refusedWith('NOT_ALLOWED', 'by'),
  )
  nodes.node(1).exchange.present(resumedBy(['erin', 'frank']))
  await ping()
  for (const node of NODES) assert.deepEqual(stateOf(node).stops, [])
})

test('a hostile node can neither shorten the seven days nor stop payments before them', async () => {
  const governance = await installed()
  const body = resetBody(governance)
  await enter(body)
  await pass(DAY_S)
  const { words } = nodes.node(1).policies.held(workspace).reset!.complete!
  const item = { kind: 'reset', ...body, words } as unknown as Item
  lie(2, (honest) =>
    honest.map((each) => ({ ...(each as object), acts_at: 0, is_ready: true, is_in_force: true })),
  )
  claim(2, body, words)
  await pass(WEEK_S - DAY_S - 1)
  for (const node of [1, 3]) {
    assert.equal(signsUnder(node), governance.policy.hash)
    assert.throws(() => nodes.node(node).exchange.present(item), refusedWith('NOT_ALLOWED', ''))
  }
})

test('a hostile node cannot make a statement for the operator of another node', async () => {
  const governance = await installed()
  const body = resetBody(governance)
  await enter(body, [1, 2])
  let mine = 0
  lie(2, (honest) => {
    const [own] = honest as { word: SignedResetWord }[]
    const forged = signReset(identityOf(2), { ...own!.word, node: 3 })
    mine++
    return [own, { ...own, word: forged }, { ...own, word: { ...own!.word, node: 3 } }, own]
  })
  await pass(30 * DAY_S)
  assert.ok(mine > 0)
  assert.deepEqual(
    [1, 3].map((node) => nodes.node(node).number),
    [1, 1],
  )
  assert.equal(nodes.node(1).policies.held(workspace).reset!.complete, null)
})

test('a hostile node cannot use a statement of an operator who has withdrawn it', async () => {
  const governance = await installed()
  const body = resetBody(governance)
  await enter(body)
  const { words } = nodes.node(2).policies.held(workspace).reset!.complete!
  lie(2, (honest) => [
    ...honest,
    ...words.map((word) => ({ word, acts_at: 0, is_ready: true, is_in_force: true })),
  ])
  nodes.node(3).exchange.resets.withdraw(workspace)
  await pass(30 * DAY_S)
  assert.deepEqual(
    [1, 3].map((node) => nodes.node(node).number),
    [1, 1],
  )
  for (const node of [1, 3]) assert.equal(signsUnder(node), governance.policy.hash)
})

/** Lets a node state in its record that a reset is in force there, and announce it at each ping. */
function claim(node: number, body: ResetBody, words: readonly SignedResetWord[]): void {
  const item = { kind: 'reset', ...body, words }
  const sent = { height: 1, seen_at_s: 0, is_held: true, item }
  const { altered } = nodes.node(node)
  nodes.node(node).altered = (call, answer) =>
    call === 'ping'
      ? { generation: 0, height: nodes.now }
      : call === '/peer/policy/items'
        ? { generation: 0, to: nodes.now, is_last: true, items: [sent] }
        : altered(call, answer)
}

test('a hostile node cannot stop payments by a reset that was never entered, or that was ended', async () => {
  const governance = await installed()
  const body = resetBody(governance)
  const word = { workspace, number: 2, hash: hashOf(body), given_at: 0 }
  const forged = NODES.map((node) => signReset(identityOf(2), { ...word, node }))
  claim(2, body, forged)
  await pass(2 * DAY_S)
  for (const node of [1, 3]) assert.equal(signsUnder(node), governance.policy.hash)
  // All operators entered it and withdrew it, so the hostile node has the statements of all.
  await enter(body)
  const words = nodes.node(2).policies.held(workspace).reset!.complete!.words
  claim(2, body, words)
  for (const node of NODES) nodes.node(node).exchange.resets.withdraw(workspace)
  await pass(10 * DAY_S)
  for (const node of [1, 3]) assert.equal(signsUnder(node), governance.policy.hash)
  assert.deepEqual(
    [1, 3].map((node) => nodes.node(node).number),
    [1, 1],
  )
})

test('a hostile node cannot continue a reset that the people have ended', async () => {
  const governance = await installed()
  const body = resetBody(governance)
  await enter(body)
  await pass(WEEK_S - 60)
  // The hostile node ignores the change, and node 3 has not heard of it when the time has passed.
  lie(2, (honest) =>
    honest.length > 0 ? honest : [{ ...ready, word: signReset(identityOf(2), wordOf2) }],
  )
  const { hash } = nodes.node(2).policies.held(workspace).reset!
  const wordOf2 = { node: 2, workspace, number: 2, hash, given_at: nodes.now }
  const ready = { acts_at: 0, is_ready: true, is_in_force: false }
  nodes.cut(1)
  nodes.node(1).exchange.present(changeOf(governance))
  nodes.now += 60
  await ping()
  assert.equal(nodes.node(3).number, 1)
  nodes.connect(1)
  await ping()
  await pass(30 * DAY_S)
  for (const node of [1, 3]) assert.deepEqual(stateOf(node).policy.document.stop.group, 'treasury')
})

test('a reset waits for a node that is away, and comes into force when it is back', async () => {
  const governance = await installed()
  const body = resetBody(governance)
  await enter(body)
  await pass(DAY_S)
  nodes.cut(3)
  await pass(20 * DAY_S)
  assert.deepEqual(nodes.numbers, [1, 1, 1])
  nodes.connect(3)
  await ping()
  await ping()
  assert.deepEqual(nodes.numbers, [2, 2, 2])
  for (const node of NODES) assert.equal(signsUnder(node), hashOf(body))
})

test('a node whose clock is ahead does not put a reset in force before the others', async () => {
  const governance = await installed()
  await enter(resetBody(governance))
  nodes.node(1).ahead = 8 * DAY_S
  await pass(6 * DAY_S)
  assert.deepEqual(nodes.numbers, [1, 1, 1])
  await pass(DAY_S)
  assert.deepEqual(nodes.numbers, [2, 2, 2])
})

test('nodes that are started again between any two events continue a reset', async () => {
  const governance = await installed()
  const body = resetBody(governance)
  const restart = async (): Promise<void> => {
    for (const each of nodes.all) each.start()
    await ping()
  }
  for (const node of NODES) {
    nodes.node(node).exchange.resets.enter(body)
    await restart()
  }
  const since = nodes.now
  for (const node of NODES)
    assert.equal(nodes.node(node).policies.held(workspace).reset!.complete!.at_s, since)
  for (let day = 0; day < 6; day++) {
    nodes.now += DAY_S
    await restart()
    assert.deepEqual(nodes.numbers, [1, 1, 1])
  }
  nodes.now += DAY_S
  // Each node that puts it in force ends before the next one does.
  for (const node of [1, 2]) {
    const { exchange } = nodes.node(node)
    exchange.announce = async () => []
    nodes.node(3).exchange.announce = async () => []
  }
  await nodes.node(1).exchange.resets.hear(2, true)
  assert.deepEqual(nodes.numbers, [2, 1, 1])
  await restart()
  await ping()
  assert.deepEqual(nodes.numbers, [2, 2, 2])
  const held = nodes.all.map(({ policies }) => policies.held(workspace).chain)
  await restart()
  assert.deepEqual(
    nodes.all.map(({ policies }) => policies.held(workspace).chain.map(({ hash }) => hash)),
    held.map((chain) => chain.map(({ hash }) => hash)),
  )
})

/** Replaces a node by one that has its backup only. */
async function restore(node: number): Promise<void> {
  const backup = nodes.node(node).policies.forBackup()
  await restoreFrom(node, backup)
}
async function restoreFrom(
  node: number,
  backup: ReturnType<PolicyNodes['all'][number]['policies']['forBackup']>,
): Promise<void> {
  nodes.node(node).lose()
  const entries = backup.map((each) => ({ kind: 'policy-known' as const, body: each }))
  nodes.node(node).store.appendAll(entries)
  await ping()
  await ping()
}

test('a node that is restored while a reset waits needs the statement of its operator again', async () => {
  const governance = await installed()
  const body = resetBody(governance)
  await enter(body)
  await pass(WEEK_S - 60)
  await restore(3)
  assert.deepEqual(
    viewOf(1)!.given_by.map((each) => each.node),
    [1, 2],
  )
  await pass(30 * DAY_S)
  assert.deepEqual(nodes.numbers, [1, 1, 1])
  assert.equal(signsUnder(3), governance.policy.hash)
  await enter(body, [3])
  await pass(WEEK_S - 1)
  assert.deepEqual(nodes.numbers, [1, 1, 1])
  await pass(1)
  assert.deepEqual(nodes.numbers, [2, 2, 2])
})

test('a node that is restored by a backup from after a reset has its document again', async () => {
  const governance = await installed()
  const body = resetBody(governance)
  await enter(body)
  await pass(WEEK_S)
  await restore(3)
  assert.equal(nodes.node(3).number, 2)
  assert.equal(signsUnder(3), hashOf(body))
})

test('a restored node does not accept a reset with statements that the nodes have not signed', async () => {
  const governance = await installed()
  const body = resetBody(governance)
  await enter(body)
  await pass(WEEK_S)
  nodes.node(2).altered = (call, answer) => {
    if (call !== '/peer/policy/items') return answer
    const page = answer as { items: { item: { words?: SignedResetWord[] } }[] }
    for (const { item } of page.items)
      if (item.words) item.words = item.words.map((word) => ({ ...word, given_at: 0 }))
    return page
  }
  nodes.cut(3, [1])
  await restore(3)
  assert.equal(signsUnder(3), null)
  nodes.connect(3)
  await ping()
  assert.equal(signsUnder(3), hashOf(body))
  const { chain } = nodes.node(3).policies.held(workspace)
  for (const word of chain[1]!.resetBy!)
    assert.ok(isResetWord(createPublicKey(identityOf(word.node)), word))
})

test('a node that is restored by a backup from before a reset signs nothing until it follows the others', async () => {
  const governance = await installed()
  const before = nodes.node(3).policies.forBackup()
  const body = resetBody(governance)
  await enter(body)
  await pass(WEEK_S)
  await restoreFrom(3, before)
  assert.equal(nodes.node(3).number, 1)
  assert.equal(signsUnder(3), null)
  assert.equal(nodes.node(3).exchange.countApart(), 1)
  assert.equal(await nodes.node(3).exchange.follow(workspace, hashOf(body)), true)
  assert.equal(signsUnder(3), hashOf(body))
})

test('a node that has a reset in force alone can follow the others', async () => {
  const governance = await installed()
  await enter(resetBody(governance))
  await pass(WEEK_S - 60)
  for (const { exchange } of nodes.all) exchange.announce = async () => []
  nodes.now += 60
  await nodes.node(1).exchange.resets.hear(2, true)
  nodes.cut(1)
  nodes.node(2).exchange.present(changeOf(governance))
  await ping()
  await pass(2 * DAY_S)
  nodes.connect(1)
  await pass(2 * DAY_S)
  const [, hash] = nodes
    .node(2)
    .policies.held(workspace)
    .chain.map((each) => each.hash)
  assert.equal(stateOf(1).policy.hash === hash, false)
  assert.equal(await nodes.node(1).exchange.follow(workspace, hash!), true)
  await ping()
  for (const node of NODES) assert.equal(signsUnder(node), hash)
})

test('a reset is refused that does not follow the document in force, or that its people cannot use', async () => {
  const governance = await installed()
  const { resets } = nodes.node(1).exchange
  const body = resetBody(governance)
  const height = nodes.node(1).store.record.height
  const entering = (other: Partial<ResetBody>) => () => resets.enter({ ...body, ...other })
  const withFields = (fields: object) => entering(resetBody(governance, fields))
  assert.throws(withFields({ number: 3 }), refusedWith('OTHER_POLICY', 'number'))
  assert.throws(withFields({ previous: 'ab'.repeat(32) }), refusedWith('OTHER_POLICY', 'previous'))
  assert.throws(withFields({ workspace: 'beta' }), refusedWith('OTHER_WORKSPACE', 'workspace'))
  assert.throws(withFields({ mode: 'local' }), refusedWith('OTHER_WORKSPACE', 'mode'))
  assert.throws(withFields({ nodes: 'cd'.repeat(32) }), refusedWith('OTHER_WORKSPACE', 'nodes'))
  assert.throws(entering({ possessions: [] }), refusedWith('POSSESSION', 'possessions'))
  const others = resetBody(governance, { rules: [], groups: governance.policy.document.groups })
  assert.throws(
    entering({ possessions: others.possessions }),
    (error: unknown) => error instanceof PolicyError && error.code !== 'POSSESSION',
  )
  assert.throws(
    withFields({
      change: { approvals: [{ group: 'admins', k: 4 }], delay_s: 86_400, veto: 'admins' },
    }),
    (error: unknown) => error instanceof PolicyError && error.path.startsWith('change'),
  )
  assert.throws(entering({ workspace: 'beta' }), refusedWith('OTHER_POLICY', ''))
  assert.equal(nodes.node(1).store.record.height, height)

  const target = { person: 'dan', key: 'k1' }
  nodes
    .node(1)
    .exchange.present(statementOf(signedBy(governance, 'dan', 'revoke', { ...times(), target })))
  assert.throws(entering({}), refusedWith('KEY_REVOKED', 'people'))
  nodes.node(2).exchange.present(changeOf(governance))
  assert.throws(() => nodes.node(2).exchange.resets.enter(body), refusedWith('PENDING', ''))
})
