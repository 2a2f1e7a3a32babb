import assert from 'node:assert/strict'
import { createHash, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { loadConfig } from '../config.ts'
import { Backups } from './backup.ts'
import { signedBackup, type NewBackupFile } from './backup-file.ts'
import { Confirmation } from './confirmation.ts'
import { makeRecovery } from '../set-up/files.ts'
import { sealText } from './sealed.ts'
import { fingerprintOf } from '../fingerprints.ts'
import { restoreHome } from '../setup.ts'
import { Store } from '../store/index.ts'
import { TestPolicy } from '../../testing/policy-cluster.ts'
import {
  callerPem,
  ETH,
  eth,
  SignerCluster,
  now,
  pay,
  refused,
  signed,
  SINK_ETH,
  transfer,
  type Caller,
  type Json,
  type Workspace,
} from '../../testing/signer-cluster.ts'

/**
 * An attacker can write to the places where the nodes' backups are stored, has no recovery secret,
 * and waits for a restoration. Every restored node must sign for the enrolled caller again, and for
 * no other caller.
 */
const THIEF = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'
const NODES = [1, 2, 3] as const

let cluster: SignerCluster
let workspace: Workspace
let caller: Caller
/** A caller that is enrolled at node 1 alone: only its operator entered the enrolment. */
let alone: Caller
let number = 0
const place = (name: string): string => join(cluster.home, name)
const secretOf = (node: number): string => place(`recovery-${node}`)
const homeOf = (node: number): string => cluster.peers.nodes[node - 1]!.home
const printOfNode = (node: number): string => fingerprintOf(node, cluster.peers.nodes[node - 1]!)

before(async () => {
  cluster = await SignerCluster.start()
  workspace = await cluster.workspace()
  caller = await workspace.caller()
  alone = await workspace.caller(1, 'full', [1])
  await cluster.everywhere('drain', {
    workspace: workspace.name,
    network: 'ETH',
    to_address: SINK_ETH,
    order: 'ours',
  })
})
after(async () => {
  await cluster.stop()
})

/** Returns a genuine backup, as the attacker's storage would rewrite it. */
async function backup(node: number, name: string): Promise<string> {
  const file = place(`${name}-${node}.json`)
  signed(await cluster.operator(node, 'backup', { file }))
  return file
}
function forged(file: string, edit: (content: Json) => void): string {
  const content = JSON.parse(readFileSync(file, 'utf8')) as Json
  edit(content)
  const out = file.replace('.json', `-${Math.random()}.json`)
  writeFileSync(out, JSON.stringify(content))
  return out
}
/**
 * Adds the thief's own key as a caller of the victims' workspace, and an order that sends the
 * balance of its gas tank to the thief.
 */
function enrolThief(content: Json): void {
  content.enrolments.push({
    api_key: 'thief',
    public_key_pem: callerPem,
    role: 'full',
    workspace: workspace.name,
    sub_account: 1,
    sub_account_name: 'sub-1',
    revoked: false,
  })
  content.drains.push({
    order: 'thief',
    workspace: workspace.name,
    network: 'ETH',
    to_address: THIEF,
    expires_at: now() + 86_400,
  })
}
/** Removes the signature, as in backups of earlier versions. */
function unsign(content: Json): void {
  content.version = 1
  delete content.signature
  delete content.sub_accounts
  delete content.policies
}

/** Simulates the loss of the host: a new home is restored from `file`. */
async function lose(
  node: number,
  file: string,
  print: string | null = printOfNode(node),
): Promise<void> {
  await cluster.stopHere(node)
  await rehome(node, file, print)
}
async function rehome(
  node: number,
  file: string,
  print: string | null = printOfNode(node),
): Promise<void> {
  rmSync(homeOf(node), { recursive: true, force: true })
  await restoreHome({ home: homeOf(node), file, recoverySecretFile: secretOf(node), print })
  await cluster.restartHere(node)
}
const restore = (node: number, file: string, more: Json = {}) =>
  cluster.operator(node, 'restore', { file, recovery_secret_file: secretOf(node), ...more })

/** Checks that the first caller of the workspace can sign, and the thief cannot. */
async function assertOnlyOurs(pair: readonly [number, number]): Promise<void> {
  const stolen = await transfer(
    { api_key: 'thief', sub_account: 1 },
    { asset: 'ETH', amount: 5, destination_address: THIEF },
  )
  refused(
    await workspace.sign(
      pay(stolen),
      eth([1, ETH.chain_index, 0], { to: THIEF, value: 5n * 10n ** 18n, nonce: number }),
      pair,
    ),
    'NOT_ENROLLED',
  )
  refused(
    await workspace.sign(
      { kind: 'drain', order: 'thief' },
      eth([0, ETH.chain_index, 0], { to: THIEF, value: 5n }),
      pair,
    ),
    'ORDER_UNKNOWN',
  )
  // Requests that were issued in the second of the restoration are refused.
  cluster.aheadMs += 2000
  const ours = await transfer(
    caller,
    { asset: 'ETH', amount: 1, destination_address: SINK_ETH },
    { now: now() + cluster.aheadMs / 1000 },
  )
  signed(
    await workspace.sign(
      pay(ours),
      eth([1, ETH.chain_index, 0], { value: 10n ** 18n, nonce: number++ }),
      pair,
    ),
  )
}

test('refuses a backup that was changed after it was made', async () => {
  const file = await backup(3, 'changed')
  await lose(3, file)
  const changes: ((content: Json) => void)[] = [
    enrolThief,
    (content) => {
      content.bans.push({
        node: 2,
        identity: 'ab'.repeat(32),
        at: 1,
        reason: 'x',
        cause: 'operator',
      })
    },
    (content) => {
      content.enrolments = []
    },
    (content) => {
      content.made_at -= 86_400
    },
    (content) => {
      content.keys = []
    },
    (content) => {
      content.sub_accounts[0].name = 'other'
    },
    (content) => {
      content.signature = 'ab'.repeat(64)
    },
    (content) => {
      content.home.tag = 'ab'.repeat(16)
    },
  ]
  for (const change of changes) {
    const answer = await restore(3, forged(file, change))
    refused(answer, 'NOT_AUTHENTIC')
    assert.match(answer.body.message, /is not signed by this node: it was changed/)
  }
  for (const change of [
    (content: Json) => {
      content.version = 1
    },
    (content: Json) => {
      delete content.signature
    },
    (content: Json) => {
      content.more = 1
    },
  ]) {
    refused(await restore(3, forged(file, change)), 'BAD_REQUEST_FIELD')
  }
  refused(await restore(3, place('none.json')), 'BAD_REQUEST_FIELD')
  refused(await restore(3, await backup(1, 'another')), 'NOT_AUTHENTIC')
  assert.equal((await cluster.operator(3, 'status')).body.keys, 0)
  signed(await restore(3, file))
  await assertOnlyOurs([1, 3])
})

test('restores a node only from a backup with the fingerprint that the operator entered', async () => {
  const file = await backup(2, 'home')
  const secret = JSON.parse(readFileSync(secretOf(2), 'utf8')) as { public: string }
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const read = (name: string): string => readFileSync(join(homeOf(2), name), 'utf8')
  const names = ['config.json', 'identity.key', 'identity.pub', 'tls.key', 'tls.crt']
  const files = Object.fromEntries(names.map((name) => [name, read(name)]))
  const pem = (key: KeyObject, type: 'pkcs8' | 'spki'): string =>
    key.export({ type, format: 'pem' } as { type: 'spki'; format: 'pem' }) as string
  /** Anyone can encrypt to a recovery key, because it is public. */
  const home = (more: Record<string, string>) => (content: Json) => {
    content.home = sealText(JSON.stringify({ ...files, ...more }), secret.public)
  }
  const make = (from: string, print: string | null, node = 2) =>
    restoreHome({
      home: place(`new-${Math.random()}`),
      file: from,
      recoverySecretFile: secretOf(node),
      print,
    })
  const his = { 'identity.key': pem(privateKey, 'pkcs8'), 'identity.pub': pem(publicKey, 'spki') }
  const resigned = forged(file, home(his))
  const { signature: _, ...content } = JSON.parse(readFileSync(resigned, 'utf8')) as Json
  writeFileSync(resigned, signedBackup(content as NewBackupFile, privateKey))
  await assert.rejects(
    make(resigned, printOfNode(2)),
    /--print: the backup belongs to a node with another fingerprint/,
  )
  for (const change of [
    home({ 'identity.key': his['identity.key'] }),
    home({
      'tls.key': pem(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey, 'pkcs8'),
    }),
  ]) {
    const mixed = forged(file, (each) => {
      change(each)
      unsign(each)
    })
    await assert.rejects(
      make(mixed, printOfNode(2)),
      /private key that does not match its public half/,
    )
  }
  await assert.rejects(
    make(forged(file, enrolThief), printOfNode(2)),
    /was changed after it was made/,
  )
  await assert.rejects(
    make(
      forged(file, (each) => {
        each.node = 1
      }),
      printOfNode(2),
    ),
    /contains the home of another node/,
  )
  await assert.rejects(make(file, printOfNode(1)), /--print/)
  const mainnet = forged(file, (each) => {
    home({
      'config.json': JSON.stringify({
        ...JSON.parse(files['config.json'] as string),
        mode: 'mainnet',
      }),
    })(each)
    unsign(each)
  })
  await assert.rejects(
    make(mainnet, null),
    /--print: is required for mainnet: this node's fingerprint, as you noted it or as custody setup --check prints it at another node/,
  )
  const made = await make(file, printOfNode(2).toUpperCase())
  assert.deepEqual(
    [made.isSigned, made.prints['2'], made.prints['1']],
    [true, printOfNode(2), printOfNode(1)],
  )
})

test('two nodes restored from forged backups sign nothing for the attacker', async () => {
  const files = new Map<number, string>()
  for (const node of [1, 2])
    files.set(
      node,
      forged(await backup(node, 'unsigned'), (content) => {
        unsign(content)
        enrolThief(content)
      }),
    )
  for (const [node, file] of files) await lose(node, file)
  const first = await restore(1, files.get(1)!)
  refused(first, 'RESTORING')
  assert.match(
    first.body.message,
    /Node 2 has lost its record as well: run its own restore there, then this command again/,
  )
  assert.equal((await cluster.operator(1, 'status')).body.keys, 0, 'nothing was changed')
  // An unsigned backup confirms nothing, so neither node has its enrolments confirmed by the other.
  for (const node of [2, 1]) {
    const { body } = await restore(node, files.get(node)!)
    assert.equal(body.restored, true, JSON.stringify(body))
    const leftOut = body.left_out.map((each: Json) => [each.api_key ?? each.order, each.missing_at])
    assert.ok(
      leftOut.some(([name, at]: [string, number[]]) => name === 'thief' && at.includes(3)),
      JSON.stringify(leftOut),
    )
    if (node === 2) assert.deepEqual([body.enrolments, body.drains, body.signed], [[], [], false])
  }
  // The operators enter the values that they know to be correct.
  for (const node of [1, 2]) {
    const enrolledKeys = (await cluster.operator(node, 'status')).body.enrolled.map(
      (each: Json) => each.api_key,
    )
    if (!enrolledKeys.includes(caller.api_key))
      await cluster.enrol(node, { ...caller, workspace: workspace.name })
  }
  await assertOnlyOurs([1, 2])
  await assertOnlyOurs([2, 3])
})

test('a lost node restores what both peers store, and reports what they lack', async () => {
  const file = await backup(1, 'one')
  const old = forged(file, (content) => {
    unsign(content)
    enrolThief(content)
  })
  const later = await workspace.caller(1)
  for (const each of [old, file]) {
    await lose(1, each)
    const height = (await cluster.operator(1, 'status')).body.record.height
    const preview = (await restore(1, each, { preview: true })).body
    assert.deepEqual([preview.restored, preview.signed], [false, each === file])
    assert.equal(
      (await cluster.operator(1, 'status')).body.record.height,
      height,
      'a preview changes nothing',
    )
    refused(await restore(1, each, { confirm: 'ab' }), 'BAD_REQUEST_FIELD')
    const { body } = await restore(1, each, { confirm: preview.confirm })
    assert.equal(body.restored, true, JSON.stringify(body))
    const names = body.enrolments.map((every: Json) => every.api_key)
    assert.deepEqual(
      [names.includes(caller.api_key), names.includes('thief'), names.includes(alone.api_key)],
      [true, false, false],
    )
    assert.deepEqual(
      [names.includes(later.api_key), body.not_in_backup],
      [false, 1],
      'what the backup lacks is counted, and typed',
    )
    assert.deepEqual(
      body.left_out
        .filter((every: Json) => every.api_key === 'thief')
        .map((every: Json) => every.missing_at),
      each === old ? [[2, 3]] : [],
    )
    await assertOnlyOurs([3, 1])
  }
  const { body } = await cluster.operator(1, 'status')
  const enrolled = body.enrolled.find((each: Json) => each.api_key === caller.api_key)
  assert.deepEqual([enrolled.sub_account, enrolled.sub_account_index], ['sub-1', 1])
})

test('a lost node restores which policy it had, and signs by it again', async () => {
  const governed = await cluster.workspace()
  const owner = await governed.caller()
  const rule = {
    id: 'small',
    effect: 'allow',
    match: { action: ['transfer'], assets: ['ETH'], to: 'any' },
    amount: { max: { ETH: '1' } },
  }
  const policy = new TestPolicy(cluster, governed, [rule], owner.api_key)
  await policy.install()
  const file = await backup(3, 'governed')
  const { hash } = policy
  const expected = [{ workspace: governed.name, first: hash, number: 1, hash }]
  assert.deepEqual((JSON.parse(readFileSync(file, 'utf8')) as Json).policies, [
    { ...expected[0], chain: [hash] },
  ])
  await lose(3, file)
  assert.deepEqual((await restore(3, file, { preview: true })).body.policies, expected)
  assert.deepEqual((await restore(3, file)).body.policies, expected)
  // Node 1 informs its peers again.
  signed(await cluster.operator(1, 'policy-install', policy.first))
  const { body } = await cluster.post(3, '/policy', { workspace: governed.name })
  assert.deepEqual([body.hash, body.restored_below], [hash, null])
  cluster.aheadMs += 2000
  const send = async (amount: number, nonce: number) => {
    const request = await transfer(
      owner,
      { asset: 'ETH', amount, destination_address: SINK_ETH },
      { now: now() + cluster.aheadMs / 1000 },
    )
    const value = BigInt(amount) * 10n ** 18n
    return governed.sign(pay(request), eth([1, ETH.chain_index, 0], { value, nonce }), [3, 1])
  }
  signed(await send(1, 0))
  refused(await send(2, 1), 'POLICY_DENIED')
})

test('after the loss of all nodes, only signed backups confirm each other', async () => {
  const genuine = await Promise.all(NODES.map((node) => backup(node, 'whole')))
  const bad = genuine.map((file) =>
    forged(file, (content) => {
      unsign(content)
      enrolThief(content)
    }),
  )
  const all = async (files: string[]): Promise<Json[]> => {
    for (const node of NODES) await cluster.stopHere(node)
    for (const node of NODES) await rehome(node, files[node - 1]!)
    for (const node of NODES) await restore(node, files[node - 1]!, { preview: true })
    const answers: Json[] = []
    for (const node of NODES) answers.push((await restore(node, files[node - 1]!)).body)
    return answers
  }
  for (const body of await all(bad))
    assert.deepEqual(
      [body.restored, body.enrolments, body.drains],
      [true, [], []],
      JSON.stringify(body),
    )
  for (const body of await all(genuine)) {
    assert.equal(body.restored, true, JSON.stringify(body))
    assert.ok(
      body.enrolments.some((each: Json) => each.api_key === caller.api_key),
      JSON.stringify(body),
    )
  }
  number = 0
  cluster.aheadMs += 2000
  await assertOnlyOurs([1, 2])
})

test('outside local, a restore requires the code from the preview', async () => {
  const home = mkdtempSync(join(tmpdir(), 'signer-'))
  const recovery = makeRecovery()
  const config = {
    ...loadConfig(homeOf(1)),
    mode: 'mainnet' as const,
    recovery_public_key: recovery.public,
  }
  const store = new Store(join(home, 'record.sqlite'), () => 7000)
  const [file, secret] = [join(home, 'backup.json'), join(home, 'secret')]
  const content = {
    version: 2,
    node: 1,
    mode: 'mainnet',
    made_at: 5,
    home: sealText('{}', recovery.public),
    keys: [],
    sets: [],
    sub_accounts: [],
    enrolments: [],
    drains: [],
    bans: [],
  } as NewBackupFile
  writeFileSync(file, signedBackup(content, config.identity))
  writeFileSync(secret, recovery.secret)
  const peers = {
    nodes: [2, 3],
    call: async (_node: number, call: string) =>
      call === '/peer/generation' ? { generation: 0 } : { rows: [] },
  }
  const confirmation = { claim: () => {}, unclaim: () => {} } as unknown as Confirmation
  const backups = new Backups({
    config,
    store,
    peers,
    confirmation,
    log: () => {},
  } as unknown as ConstructorParameters<typeof Backups>[0])
  const restoring = (more: object) =>
    backups.restore({ file, recovery_secret_file: secret, ...more }) as Promise<Json>
  const preview = await restoring({})
  assert.deepEqual(
    [preview.restored, preview.file],
    [false, createHash('sha256').update(readFileSync(file)).digest('hex')],
  )
  assert.equal(store.record.height, 0)
  await assert.rejects(restoring({ confirm: 'other' }), { code: 'BAD_REQUEST_FIELD' })
  // Without keys and callers there is nothing to confirm; a single order is enough to require a
  // confirmation.
  writeFileSync(
    file,
    JSON.stringify({
      ...content,
      version: 1,
      drains: [
        { order: 'thief', workspace: 'w', network: 'ETH', to_address: THIEF, expires_at: 9 },
      ],
    }),
  )
  const requests = new Map([2, 3].map((node) => [node, new Set<string>()]))
  Object.assign(confirmation, { ask: async () => requests })
  const planted = await restoring({ preview: true })
  assert.deepEqual(
    [planted.drains, planted.left_out],
    [[], [{ order: 'thief', workspace: 'w', missing_at: [2, 3] }]],
  )
  writeFileSync(file, signedBackup(content, config.identity))
  assert.equal((await restoring({ confirm: preview.confirm })).restored, true)
  store.close()
  rmSync(home, { recursive: true })
})

test('does not trust a peer that repeats itself, never ends, or sends malformed responses', async () => {
  const handlers = new Map<string, (node: number, body: unknown) => Promise<Json>>()
  let answer: (after: string | null) => Json = () => ({})
  const peers = {
    nodes: [2, 3],
    handle: (call: string, handler: (node: number, body: unknown) => Promise<Json>) =>
      handlers.set(call, handler),
    call: async (_node: number, _call: string, { after: from }: { after: string | null }) =>
      answer(from),
  }
  const store = {
    state: {
      keys: new Map([['k', {}]]),
      enrolments: new Map(),
      drains: new Map(),
      restoring: false,
    },
  }
  const confirmation = new Confirmation({
    config: { timeouts_ms: { keygen: 1 } },
    store,
    peers,
  } as unknown as ConstructorParameters<typeof Confirmation>[0])
  const hash = (at: number): string => at.toString(16).padStart(64, '0')
  const page = Array.from({ length: 2000 }, (_, at) => hash(at))
  const unending = (from: string | null): string[] =>
    page.map((_, at) => hash((from === null ? 0 : Number(`0x${from}`)) + at + 1))
  for (const wrong of [
    () => ({ state: 'held', people: page, more: true }),
    () => ({ state: 'held', people: [], more: true }),
    (from: string | null) => ({ state: 'held', people: unending(from), more: true }),
    () => ({ state: 'held', people: [...page, hash(1)], more: false }),
    () => ({ state: 'held', people: ['x'], more: false }),
    () => ({}),
  ]) {
    answer = wrong
    await assert.rejects(confirmation.ask(), { code: 'PEER_UNAVAILABLE' })
  }
  answer = () => ({ state: 'lost', people: [], more: false })
  await assert.rejects(confirmation.ask(), { code: 'RESTORING' })
  // The claims of a node about its own backup are sent in pages, and only while it has no record.
  confirmation.claim(page.concat(unending(hash(5000))))
  const ask = (from: string | null) =>
    (handlers.get('/peer/people') as (node: number, body: unknown) => Promise<Json>)(2, {
      after: from,
    })
  assert.deepEqual((await ask(null)).people, [])
  store.state.keys.clear()
  const first = await ask(null)
  const second = await ask(first.people.at(-1))
  assert.deepEqual(
    [first.state, first.people.length, first.more, second.people.length, second.more],
    ['claimed', 2000, true, 2000, false],
  )
  assert.equal(new Set([...first.people, ...second.people]).size, 4000)
})
