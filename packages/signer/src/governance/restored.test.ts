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
  successorOf,
} from '../../../policy/testing/governance.ts'
import { PolicyNodes, type PolicyNode } from '../../testing/policy-nodes.ts'
import { Refusal } from '../errors.ts'
import { signedBackup, type NewBackupFile } from '../keys/backup-file.ts'
import { Backups } from '../keys/backup.ts'
import { makeRecovery } from '../set-up/files.ts'
import type { Item, ItemOf } from './items.ts'

/** Node 3 loses its host and is restored from a backup, with real records, policies and backups. */
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

/** Writes a backup of node 3 and returns its path. */
async function backup(name = 'backup'): Promise<string> {
  const file = join(home, `${name}.json`)
  await backupsOf(nodes.node(3)).backup({ file })
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

const restore = (file: string): Promise<unknown> =>
  backupsOf(nodes.node(3)).restore({ file, recovery_secret_file: secret })

/** Deletes the record of node 3 and restores the node, while it cannot reach the others. */
async function restored(file: string): Promise<PolicyNode> {
  nodes.cut(3)
  nodes.node(3).lose()
  await restore(file)
  return nodes.node(3)
}

/** Why node 3 signs nothing; null if it signs. */
function behind(): string | null {
  const { policies, exchange } = nodes.node(3)
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

/** Makes a node send other items than its record contains. */
function lie(node: number, items: readonly Item[]): void {
  const sent = items.map((item, at) => ({
    height: at + 1,
    seen_at_s: nodes.now,
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

test('a backup contains number, hash and first hash of each policy in force', async () => {
  assert.equal(contentOf(await backup('before')).policies, undefined)
  const { policies } = nodes.node(3)
  await installed()
  const [one] = hashesAt(3)
  assert.deepEqual(contentOf(await backup('first')).policies, [
    { workspace, first: one, number: 1, hash: one },
  ])
  const change = changeOf(policies.current(workspace)!, { stop: { group: 'treasury' } })
  nodes.node(3).exchange.present(change)
  nodes.node(3).exchange.type(first({ workspace: 'beta' }))
  assert.equal(contentOf(await backup('pending')).policies![0]!.number, 1)
  nodes.now += DAY_S
  const two = policies.current(workspace)!.policy.hash
  assert.deepEqual(
    contentOf(await backup('second')).policies,
    [{ workspace, first: one, number: 2, hash: two }],
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
  assert.deepEqual(
    hashesAt(3),
    expected.slice(0, 1),
    'one peer is sufficient for the first document',
  )
  assert.match(behind()!, /does not have the policy 2/)
  nodes.connect(3)
  await nodes.ping()
  assert.deepEqual(hashesAt(3), expected)
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
  nodes.node(3).exchange.accept(governance.policy.hash)
  lie(1, [first()])
  nodes.node(3).start()
  await nodes.ping()
  nodes.node(3).exchange.accept(governance.policy.hash)
  assert.equal(nodes.node(3).policies.held(workspace).governance!.policy.document.number, 1)
  assert.match(behind()!, /does not have the policy 2/)
  // The honest peer sends the change. Its approvals have expired, so both peers are needed.
  nodes.connect(3)
  await nodes.ping()
  assert.match(behind()!, /does not have the policy 2/)
  lie(1, [first(), change])
  nodes.node(3).start()
  await nodes.ping()
  assert.match(
    behind()!,
    /does not have the policy 2/,
    'node 1 claims to have seen it after the approvals had expired',
  )
  tellTruth(1)
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
  assert.match(behind()!, /its policy 1 of the workspace differs from the one that it had before/)
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
  nodes.connect(3, [1])
  await nodes.ping()
  assert.equal(hashesAt(3).length, 1, 'it has the first document again, and no later one')
  assert.deepEqual(contentOf(await backup('partly')).policies, required)
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
    { ...content, policies: one({ hash: other }) },
    { ...content, policies: one({ number: 1, hash: policy.first }) },
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
