import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { canonicalText, PolicyError, type Governance } from '@custody/policy'
import { policyWith } from '../../../policy/testing/documents.ts'
import {
  DAY_S,
  possessionsOf,
  proposalOf,
  signedBy,
  successorOf,
} from '../../../policy/testing/governance.ts'
import { PolicyNodes, type PolicyNode } from '../../testing/policy-nodes.ts'
import { Refusal } from '../errors.ts'
import { signedBackup, type NewBackupFile } from '../keys/backup-file.ts'
import { Backups } from '../keys/backup.ts'
import { makeRecovery } from '../set-up/files.ts'
import type { Item, ItemOf } from './items.ts'

/** Nodes lose their hosts and are restored from backups, with real records, policies and backups. */
const workspace = 'acme'
const recovery = makeRecovery()
const identity = generateKeyPairSync('ed25519')
let nodes: PolicyNodes
let home: string
let secret: string
beforeEach(() => {
  nodes = new PolicyNodes()
  home = mkdtempSync(join(tmpdir(), 'restored-'))
  for (const name of ['config.json', 'identity.key', 'identity.pub', 'tls.key', 'tls.crt'])
    writeFileSync(join(home, name), name)
  secret = join(home, 'secret')
  writeFileSync(secret, recovery.secret)
})
afterEach(() => {
  nodes.stop()
  rmSync(home, { recursive: true })
})

type Content = NewBackupFile & { signature?: string }
type Policies = NonNullable<NewBackupFile['policies']>

function first(fields: object = {}): ItemOf<'first'> {
  const { document } = policyWith([], fields)
  const possessions = possessionsOf(document).map((each) => JSON.stringify(each))
  const text = canonicalText(document)
  return { kind: 'first', workspace: document.workspace, document: text, possessions }
}

/** Puts the first document in force at all nodes. */
async function installed(): Promise<Governance> {
  for (const node of [1, 2]) nodes.node(node).exchange.type(first())
  await nodes.ping()
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [1, 1, 1])
  return nodes.node(1).policies.current(workspace)!
}

function changeOf(governance: Governance, fields: object): ItemOf<'change'> {
  const document = successorOf(governance, fields)
  const { approvals } = proposalOf(governance, document, ['alice', 'bob'], { at: nodes.now })
  const texts = approvals.map((each) => JSON.stringify(each))
  return {
    kind: 'change',
    workspace,
    document: canonicalText(document),
    possessions: [],
    approvals: texts,
  }
}

/** Puts the first document and its successor in force at all nodes. */
async function changed(): Promise<{ governance: Governance; change: ItemOf<'change'> }> {
  const governance = await installed()
  const change = changeOf(governance, { stop: { group: 'treasury' } })
  nodes.node(1).exchange.present(change)
  await nodes.ping()
  nodes.now += DAY_S
  assert.deepEqual(nodes.numbers, [2, 2, 2])
  return { governance, change }
}

/** Hashes of the documents that came into force at a node. */
const hashesAt = (node: number): string[] =>
  nodes
    .node(node)
    .policies.held(workspace)
    .chain.map(({ hash }) => hash)

/** The backups of a node without keys, whose peers have nothing else than policies. */
function backupsOf({ node, store, policies }: PolicyNode): Backups {
  const parts = {
    config: {
      node,
      mode: 'local',
      home,
      identity: identity.privateKey,
      identityPublic: identity.publicKey,
      recovery_public_key: recovery.public,
      timeouts_ms: { keygen: 1000 },
    },
    store,
    peers: {
      nodes: [1, 2, 3].filter((other) => other !== node),
      call: async (_node: number, call: string) =>
        call === '/peer/generation' ? { generation: 0 } : { rows: [] },
    },
    keyring: { identities: new Map() },
    confirmation: { claim: () => {}, unclaim: () => {} },
    log: () => {},
    policies: () => policies.forBackup(),
  }
  return new Backups(parts as unknown as ConstructorParameters<typeof Backups>[0])
}

/** Writes a backup of a node and returns its path. */
async function backup(name = 'backup', node = 3): Promise<string> {
  const file = join(home, `${name}-${node}.json`)
  await backupsOf(nodes.node(node)).backup({ file })
  return file
}

const contentOf = (file: string): Content => JSON.parse(readFileSync(file, 'utf8')) as Content

/** Writes a file whose content was changed, and which is signed again by the node's identity. */
function rewritten(file: string, change: (content: Content) => void): string {
  const { signature: _signature, ...content } = contentOf(file)
  change(content)
  const out = join(home, `rewritten-${Math.random()}.json`)
  writeFileSync(out, signedBackup(content, identity.privateKey))
  return out
}

const restore = (file: string, node = 3): Promise<unknown> =>
  backupsOf(nodes.node(node)).restore({ file, recovery_secret_file: secret })

/** Deletes the record of a node and restores the node, while it cannot reach the others. */
async function restored(file: string, node = 3): Promise<PolicyNode> {
  nodes.cut(node)
  nodes.node(node).lose()
  await restore(file, node)
  return nodes.node(node)
}

/** Why a node signs nothing; null if it signs. */
function behind(node = 3): string | null {
  const { policies, exchange } = nodes.node(node)
  try {
    const governance = policies.current(workspace)
    if (governance !== null) exchange.assertCurrent(governance)
    return null
  } catch (error) {
    assert.ok(error instanceof Refusal)
    assert.equal(error.code, 'POLICY_BEHIND')
    return error.message
  }
}

/** Makes a node send other items than its record contains, with the same time for all. */
function lie(node: number, items: readonly Item[], seen_at_s = nodes.now): void {
  const sent = items.map((item, at) => ({
    height: at + 1,
    seen_at_s,
    is_held: true,
    item,
  }))
  nodes.node(node).altered = (call, answer) =>
    call === 'ping'
      ? { generation: 0, height: items.length }
      : { ...(answer as object), generation: 0, to: items.length, is_last: true, items: sent }
}
const tellTruth = (node: number): void => {
  nodes.node(node).altered = (_call, answer) => answer
  // A restarted node reads all items of its peers again.
  nodes.node(3).start()
}

test('a backup contains number and hashes of each policy in force', async () => {
  assert.equal(contentOf(await backup('before')).policies, undefined)
  const { policies } = nodes.node(3)
  await installed()
  const [one] = hashesAt(3)
  assert.deepEqual(contentOf(await backup('first')).policies, [
    { workspace, first: one, number: 1, hash: one, chain: [one] },
  ])
  const change = changeOf(policies.current(workspace)!, { stop: { group: 'treasury' } })
  nodes.node(3).exchange.present(change)
  nodes.node(3).exchange.type(first({ workspace: 'beta' }))
  assert.equal(contentOf(await backup('pending')).policies![0]!.number, 1)
  nodes.now += DAY_S
  const two = policies.current(workspace)!.policy.hash
  assert.deepEqual(
    contentOf(await backup('second')).policies,
    [{ workspace, first: one, number: 2, hash: two, chain: [one, two] }],
    'a first document that is not in force is left out',
  )
})

test('a restored node signs nothing before it has the policy again, which it reads from its peers', async () => {
  await changed()
  const file = await backup()
  const expected = hashesAt(3)
  // The approvals of the change have expired.
  nodes.now += 30 * DAY_S
  const { policies, store } = await restored(file)
  assert.deepEqual([store.state.restoring, store.state.generation], [false, 1])
  assert.match(behind()!, /does not have the policy 2 of the workspace yet/)
  await nodes.ping()
  assert.match(behind()!, /does not have the policy 2/, 'it cannot reach a peer')
  nodes.connect(3, [1])
  await nodes.ping()
  assert.deepEqual(hashesAt(3), expected, 'one peer is sufficient for what the backup proves')
  assert.match(behind()!, /has not read the policies of node 2 since it was restored/)
  nodes.connect(3)
  await nodes.ping()
  assert.equal(behind(), null)
  assert.equal(policies.current(workspace)!.policy.document.number, 2)
  assert.deepEqual(nodes.numbers, [2, 2, 2])
})

test('a restored node does not sign if a peer sends no policy, or only an older one', async () => {
  const { governance, change } = await changed()
  const file = await backup()
  nodes.now += 30 * DAY_S
  await restored(file)
  lie(1, [])
  nodes.connect(3, [1])
  await nodes.ping()
  assert.match(behind()!, /does not have the policy 2/)
  // The operator cannot accept what the restored node does not have.
  nodes.node(3).exchange.accept(workspace, governance.policy.hash)
  lie(1, [first()])
  nodes.node(3).start()
  await nodes.ping()
  nodes.node(3).exchange.accept(workspace, governance.policy.hash)
  assert.equal(nodes.node(3).policies.held(workspace).governance!.policy.document.number, 1)
  assert.match(behind()!, /does not have the policy 2/)
  // A change that has too few signatures is refused, although the backup contains its hash.
  const unsigned = { ...change, approvals: change.approvals.slice(1) }
  lie(1, [first(), unsigned])
  nodes.node(3).start()
  await nodes.ping()
  assert.match(behind()!, /does not have the policy 2/)
  // The honest peer sends the change.
  nodes.connect(3)
  await nodes.ping()
  assert.equal(behind(), null)
  assert.equal(nodes.node(3).number, 2)
})

test('a restored node does not accept another first document from a peer or its operator', async () => {
  await installed()
  const expected = hashesAt(3)
  await restored(await backup())
  lie(1, [first({ stop: { group: 'treasury' } })])
  nodes.connect(3, [1])
  await nodes.ping()
  assert.deepEqual(hashesAt(3), [])
  assert.match(behind()!, /does not have the policy 1/)
  // The wrong document does not come into force either if the operator enters it.
  nodes.node(3).exchange.type(first({ stop: { group: 'treasury' } }))
  assert.deepEqual(hashesAt(3), [])
  nodes.connect(3)
  await nodes.ping()
  assert.deepEqual(hashesAt(3), expected)
  assert.equal(behind(), null)
})

test('a restored node refuses another document with the number of the policy that it had', async () => {
  const { governance } = await changed()
  const expected = hashesAt(3)
  await restored(await backup())
  const another = changeOf(governance, { stop: { group: 'admins' } })
  lie(1, [first(), another])
  nodes.connect(3, [1])
  await nodes.ping()
  assert.deepEqual(hashesAt(3), expected.slice(0, 1))
  const { exchange, policies } = nodes.node(3)
  assert.equal(policies.held(workspace).governance!.next, null)
  assert.throws(
    () => exchange.present(another),
    (error) => error instanceof PolicyError && error.code === 'OTHER_POLICY',
  )
  tellTruth(1)
  nodes.connect(3)
  await nodes.ping()
  assert.deepEqual(hashesAt(3), expected)
  assert.equal(behind(), null)
})

test('a node that read another document before its restoration signs nothing', async () => {
  await installed()
  const file = await backup()
  nodes.cut(3)
  nodes.node(3).lose()
  const wrong = first({ stop: { group: 'treasury' } })
  for (const node of [1, 2]) lie(node, [wrong])
  nodes.connect(3)
  await nodes.ping()
  assert.equal(behind(), null)
  await restore(file)
  assert.match(
    behind()!,
    /The policy 1 of the workspace at this node differs from the one that it had before/,
  )
})

test('after the loss of all nodes, the operator enters the same first document again', async () => {
  await installed()
  await restored(await backup())
  assert.match(behind()!, /does not have the policy 1/)
  nodes.node(3).exchange.type(first())
  assert.equal(nodes.node(3).number, 1)
})

test('a later policy remains required after a repeated restoration and in the next backup', async () => {
  await installed()
  const older = await backup('older')
  nodes
    .node(1)
    .exchange.present(
      changeOf(nodes.node(1).policies.current(workspace)!, { stop: { group: 'treasury' } }),
    )
  await nodes.ping()
  nodes.now += DAY_S
  const newer = await backup('newer')
  const required = contentOf(newer).policies
  await restored(newer)
  assert.deepEqual(contentOf(await backup('again')).policies, required)
  // The first restoration was interrupted while it imported the records of the peers.
  nodes.node(3).store.append('restoring', { made_at: nodes.now })
  await restore(older)
  assert.match(behind()!, /does not have the policy 2/)
  nodes.node(3).start()
  assert.deepEqual(contentOf(await backup('twice')).policies, required)
  lie(1, [first()])
  nodes.connect(3, [1])
  await nodes.ping()
  assert.equal(hashesAt(3).length, 1, 'it has the first document again, and no later one')
  assert.deepEqual(contentOf(await backup('partly')).policies, required)
})

test('nodes that are restored one after the other have the policy again', async () => {
  await changed()
  const expected = hashesAt(1)
  const files = await backups([1, 2, 3], 'each')
  for (const node of [3, 2, 1, 3]) {
    // The approvals of the change have expired.
    nodes.now += 30 * DAY_S
    await restored(files.get(node)!, node)
    assert.match(behind(node)!, /does not have the policy 2/)
    nodes.connect(node)
    await nodes.ping()
    assert.deepEqual(hashesAt(node), expected)
    assert.equal(behind(node), null)
  }
})

/** Puts three more documents in force at all nodes, which change who may stop. */
async function changedAgain(): Promise<void> {
  for (const group of ['admins', 'treasury', 'admins']) {
    const { exchange, policies } = nodes.node(1)
    exchange.present(changeOf(policies.current(workspace)!, { stop: { group } }))
    await nodes.ping()
    nodes.now += DAY_S
    assert.equal(behind(1), null)
  }
}

/** Backups of the given nodes, by node. */
async function backups(which: readonly number[], name: string): Promise<Map<number, string>> {
  const files = new Map<number, string>()
  for (const node of which) files.set(node, await backup(name, node))
  return files
}

/** Loses nodes at the same time and restores each from its file, without the time between. */
async function loseAll(files: ReadonlyMap<number, string>): Promise<void> {
  for (const node of files.keys()) {
    nodes.cut(node)
    nodes.node(node).lose()
  }
  for (const [node, file] of files) await restore(file, node)
  for (const node of files.keys()) nodes.connect(node)
  await nodes.ping()
  await nodes.ping()
}

test('two nodes that are lost at the same time have all later policies again', async () => {
  await changed()
  await changedAgain()
  const expected = hashesAt(1)
  assert.equal(expected.length, 5)
  const files = await backups([2, 3], 'both')
  nodes.now += 30 * DAY_S
  await loseAll(files)
  for (const node of [1, 2, 3]) {
    assert.deepEqual(hashesAt(node), expected)
    assert.equal(behind(node), null)
  }
  // A restarted node computes the same from its record.
  nodes.node(2).start()
  assert.deepEqual(hashesAt(2), expected)
})

test('after the loss of all nodes, the first document and the changes can be entered again', async () => {
  const { change } = await changed()
  const files = await backups([1, 2, 3], 'all')
  nodes.now += 30 * DAY_S
  await loseAll(files)
  assert.match(behind()!, /does not have the policy 2/)
  nodes.node(3).exchange.type(first())
  nodes.node(3).exchange.present(change)
  await nodes.ping()
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [2, 2, 2])
  assert.deepEqual([1, 2, 3].map(behind), [null, null, null])
})

test('a document after the newest one of a backup is accepted if both peers saw it in time', async () => {
  await changed()
  const older = await backups([2], 'older')
  await changedAgain()
  const newer = await backups([3], 'newer')
  const expected = hashesAt(1)
  nodes.now += 30 * DAY_S
  await loseAll(new Map([...older, ...newer]))
  // The backup of node 3 proves that the later documents were in force there.
  for (const node of [2, 3]) {
    assert.deepEqual(hashesAt(node), expected)
    assert.equal(behind(node), null)
  }
  await loseAll(new Map([...older, [3, (await backups([3], 'again')).get(3)!]]))
  assert.deepEqual(hashesAt(2), expected)
})

test('without such a backup or a second peer, a restored node remains at the newest one of its backup', async () => {
  await changed()
  const older = await backups([2, 3], 'older')
  const expected = hashesAt(1)
  await changedAgain()
  nodes.now += 30 * DAY_S
  await loseAll(older)
  for (const node of [2, 3]) {
    assert.deepEqual(hashesAt(node), expected)
    assert.match(behind(node)!, /has seen the policy 3 too late/)
  }
})

test('what has happened since does not count against a document that a backup proves', async () => {
  const governance = await installed()
  const change = changeOf(governance, { stop: { group: 'treasury' } })
  nodes.node(1).exchange.present(change)
  await nodes.ping()
  const times = { at: nodes.now, expires: nodes.now + 3600 }
  const target = { person: 'alice', key: 'k1' }
  const revoke = signedBy(governance, 'alice', 'revoke', { ...times, target })
  nodes.node(1).exchange.present({ kind: 'statement', workspace, signed: JSON.stringify(revoke) })
  await nodes.ping()
  nodes.now += DAY_S
  assert.deepEqual(nodes.numbers, [2, 2, 2])
  const { hash } = nodes.node(1).policies.current(workspace)!.policy
  const file = await backup()
  nodes.now += 30 * DAY_S
  await restored(file)
  const veto = signedBy(governance, 'carol', 'veto', { ...times, next: { number: 2, hash } })
  const statements = [revoke, veto].map((signed): Item => ({
    kind: 'statement',
    workspace,
    signed: JSON.stringify(signed),
  }))
  lie(1, [first(), ...statements, change], times.at)
  nodes.connect(3, [1])
  await nodes.ping()
  assert.equal(nodes.node(3).policies.held(workspace).governance!.revoked.size, 1)
  assert.equal(nodes.node(3).number, 2)
})

test('one hostile node cannot shorten a delay by restored nodes, which repeat its early time', async () => {
  const governance = await installed()
  const files = await backups([2, 3], 'each')
  const claimed = nodes.now
  const change = changeOf(governance, { stop: { group: 'treasury' } })
  // Node 1 has kept the change from the others, and claims to have seen it when it was approved.
  nodes.now += 3500
  lie(1, [first(), change], claimed)
  for (const node of [2, 3]) nodes.node(node).start()
  const seen = nodes.now
  for (let times = 0; times < 3; times++) {
    await nodes.ping()
    assert.deepEqual([nodes.node(2).number, nodes.node(3).number], [1, 1])
    for (const node of [2, 3]) {
      const { next } = nodes.node(node).policies.held(workspace).governance!
      assert.ok(next!.acts_at_s >= seen + DAY_S)
    }
    for (const node of [3, 2]) {
      nodes.now += 10
      await restored(files.get(node)!, node)
      nodes.connect(node)
      await nodes.ping()
      await nodes.ping()
    }
  }
  nodes.now = seen + DAY_S - 1
  assert.deepEqual([nodes.node(2).number, nodes.node(3).number], [1, 1])
})

test('a backup of an earlier version without the chain of documents is accepted', async () => {
  await changed()
  await changedAgain()
  const expected = hashesAt(1)
  const file = rewritten(await backup(), (content) => {
    content.policies = content.policies!.map(({ chain: _chain, ...each }) => each)
  })
  nodes.now += 30 * DAY_S
  await restored(file)
  nodes.connect(3, [1])
  await nodes.ping()
  assert.deepEqual(hashesAt(3), expected.slice(0, 1), 'later documents need both peers')
  assert.match(behind()!, /does not have the policy 5/)
  nodes.connect(3)
  await nodes.ping()
  assert.deepEqual(hashesAt(3), expected)
  assert.equal(behind(), null)
})

test('a backup of an earlier version without policies restores as before', async () => {
  await changed()
  const file = rewritten(await backup(), (content) => {
    delete content.policies
  })
  const { policies, store } = await restored(file)
  assert.equal(store.state.generation, 1)
  assert.equal(policies.isNamed(workspace), false)
  assert.equal(behind(), null)
  nodes.connect(3, [1])
  await nodes.ping()
  assert.deepEqual(hashesAt(3), [], 'the first document needs both peers')
  nodes.connect(3)
  nodes.node(3).start()
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [2, 2, 2])
})

test('a recovery without the platform does not depend on policies', async () => {
  await changed()
  const file = await backup()
  nodes.node(3).lose()
  await backupsOf(nodes.node(3)).open({ file, recovery_secret_file: secret })
  assert.equal(nodes.node(3).store.state.recovering, true)
  assert.equal(nodes.node(3).policies.isNamed(workspace), false)
})

test('refuses malformed or forged policies of a backup, names the field, and records nothing', async () => {
  await changed()
  const file = await backup()
  nodes.cut(3)
  nodes.node(3).lose()
  const [policy] = contentOf(file).policies as [Policies[number]]
  const other = 'ab'.repeat(32)
  const one = (fields: object) => [{ ...policy, ...fields }]
  const { first: _first, ...without } = policy
  const malformed: [unknown, RegExp][] = [
    [one({ number: 0 }), /policies\.0\.number: Too small/],
    [one({ number: 1.5 }), /policies\.0\.number: /],
    [one({ number: 2 ** 60 }), /policies\.0\.number: /],
    [one({ number: '2' }), /policies\.0\.number: /],
    [one({ hash: other.toUpperCase() }), /policies\.0\.hash: .*must match pattern/],
    [one({ first: other.slice(1) }), /policies\.0\.first: .*must match pattern/],
    [one({ workspace: '' }), /policies\.0\.workspace: Too small/],
    [one({ workspace: 'w'.repeat(201) }), /policies\.0\.workspace: Too big/],
    [one({ seen_at: 5 }), /policies\.0: Unrecognized key: "seen_at"/],
    [[without], /policies\.0\.first: /],
    [one({ number: 1 }), /policies\.0\.hash: must be equal to `first` if `number` is 1/],
    [one({ hash: policy.first }), /policies\.0\.hash: must be equal to `first`/],
    [one({ chain: [] }), /policies\.0\.chain: must contain `number` different hashes/],
    [one({ chain: [policy.first, other] }), /policies\.0\.chain: must contain/],
    [one({ chain: [other, policy.hash] }), /policies\.0\.chain: must contain/],
    [one({ chain: ['x', policy.hash] }), /policies\.0\.chain\.0: .*must match pattern/],
    [[policy, policy], /policies: must contain each workspace at most once/],
    [policy, /policies: /],
    [null, /policies: /],
  ]
  for (const [policies, message] of malformed)
    await assert.rejects(
      restore(rewritten(file, (content) => Object.assign(content, { policies }))),
      (error) =>
        error instanceof Refusal &&
        error.code === 'BAD_REQUEST_FIELD' &&
        /is not a backup of a signer node: /.test(error.message) &&
        message.test(error.message),
      JSON.stringify(policies),
    )
  const { signature, ...content } = contentOf(file)
  const unsigned = join(home, 'unsigned.json')
  writeFileSync(unsigned, JSON.stringify({ ...content, version: 1 }))
  await assert.rejects(restore(unsigned), {
    code: 'BAD_REQUEST_FIELD',
    message: /policies: must be absent in version 1, which is not signed/,
  })
  // Only the node's own signature covers what it requires.
  const { policies: _policies, ...removed } = content
  for (const forged of [
    removed,
    { ...content, policies: [] },
    { ...content, policies: one({ hash: other, chain: [policy.first, other] }) },
    { ...content, policies: one({ number: 1, hash: policy.first, chain: [policy.first] }) },
    { ...content, policies: one({ chain: undefined }) },
    { ...content, policies: [policy, ...one({ workspace: 'beta' })] },
  ]) {
    const out = join(home, 'forged.json')
    writeFileSync(out, JSON.stringify({ ...forged, signature }))
    await assert.rejects(restore(out), {
      code: 'NOT_AUTHENTIC',
      message: /is not signed by this node: it was changed after it was made/,
    })
  }
  assert.equal(nodes.node(3).store.record.height, 0)
})
