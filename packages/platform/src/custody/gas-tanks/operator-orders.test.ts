import assert from 'node:assert/strict'
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawn } from 'node:child_process'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { fingerprintOfKey, parsePublicKey } from '@custody/request-auth'
import { orderApproval } from '@custody/policy'
import { TestPolicy } from '../../../../signer/testing/policy-cluster.ts'
import {
  SignerCluster,
  type Json,
  type Workspace,
} from '../../../../signer/testing/signer-cluster.ts'
import { differences } from '../../server/operator/nodes.ts'

/**
 * Tests of the operator's commands when the platform is compromised and answers every command with
 * data of the attacker. None of this data may reach a signer node; three real nodes listen.
 */
const CLI = fileURLToPath(new URL('../../server/operator/cli.ts', import.meta.url))
const pem = () =>
  generateKeyPairSync('rsa', {
    modulusLength: 4096,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  }).publicKey
const mine = pem()
const strangers = pem()
const STRANGE = randomUUID()
const home = mkdtempSync(join(tmpdir(), 'custody-hostile-'))
const keyFile = join(home, 'mine.pub')
let cluster: SignerCluster
let platform: Server
/** Commands that the platform received, and its false responses. */
const received: { command: string; input: Json }[] = []
let lie: (command: string, input: Json) => Json = () => ({})

before(async () => {
  writeFileSync(keyFile, mine)
  cluster = await SignerCluster.start({ engine: 'double' })
  platform = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
    request.on('end', () => {
      const { command, input } = JSON.parse(text) as { command: string; input: Json }
      received.push({ command, input })
      const answer = lie(command, input) as { error?: string }
      response
        .writeHead(answer.error ? 400 : 200, { 'content-type': 'application/json' })
        .end(JSON.stringify(answer))
    })
  })
  const socket = join(home, 'platform.sock')
  await new Promise<void>((resolve) => {
    platform.listen(socket, resolve)
  })
  writeFileSync(join(home, 'operator.path'), socket)
})
after(async () => {
  platform.closeAllConnections()
  platform.close()
  await cluster.stop()
  rmSync(home, { recursive: true, force: true })
})

const cli = (...args: string[]) =>
  new Promise<{ status: number | null; stdout: string; stderr: string }>((resolve) => {
    const child = spawn(process.execPath, [CLI, ...args], {
      env: { ...process.env, CUSTODY_HOME: home, CUSTODY_SIGNERS: join(cluster.home, 'platform') },
    })
    const said = { stdout: '', stderr: '' }
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said.stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said.stderr += text
    })
    child.once('close', (status) => {
      resolve({ status, ...said })
    })
  })
const last = (stdout: string): Json => JSON.parse(stdout.trim().split('\n').at(-1) as string)
const enrolledAt = async (node: number): Promise<Json[]> =>
  (await cluster.operator(node, 'status')).body.enrolled
const create = (workspace: string, subAccount: string, ...more: string[]) =>
  cli(
    'api-user',
    'create',
    '--workspace',
    workspace,
    '--sub-account',
    subAccount,
    '--role',
    'read-only',
    '--public-key',
    keyFile,
    '--json',
    ...more,
  )

/** All fields of an enrolment, with the attacker's values. */
const HOSTILE = {
  api_key: STRANGE,
  public_key_pem: strangers,
  role: 'full',
  workspace: 'victim',
  sub_account: 'treasury',
  sub_account_index: 1,
  index: 1,
  amount: '999000000000',
  resource: 'BANDWIDTH',
  to: 'T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb',
  id: randomUUID(),
  order: 'evil',
  status: 'confirmed',
  hash: 'ab',
  state: 'CONFIRMED',
  address: 'T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb',
}

test('attack: api-user create ignores a foreign key, role and index returned by the platform', async () => {
  lie = () => HOSTILE
  const victim = await create('victim', 'treasury')
  assert.equal(victim.status, 0, victim.stderr)
  const stranger = await create('victim', 'stranger', '--trust-file', join(home, 'trust.json'))
  assert.equal(stranger.status, 0, stranger.stderr)
  const made = last(stranger.stdout)
  assert.notEqual(made.sub_account_index, last(victim.stdout).sub_account_index)
  assert.notEqual(made.api_key, STRANGE)
  for (const node of [1, 2, 3]) {
    const all = await enrolledAt(node)
    assert.equal(
      all.some((each) => each.api_key === STRANGE || each.role === 'full'),
      false,
    )
    const [each] = all.filter(({ api_key }) => api_key === made.api_key)
    assert.deepEqual(
      [each.workspace, each.sub_account, each.sub_account_index, each.role, each.key_fingerprint],
      [
        'victim',
        'stranger',
        made.sub_account_index,
        'read-only',
        fingerprintOfKey(parsePublicKey(mine)),
      ],
    )
  }
  assert.equal(made.nodes.length, 3)
  // The data that the caller pins comes from the nodes as well.
  const trust = JSON.parse(readFileSync(join(home, 'trust.json'), 'utf8')) as Json
  assert.deepEqual(
    [trust.version, trust.network, trust.workspace, trust.sub_account, trust.sub_account_index],
    [1, 'local', 'victim', 'stranger', made.sub_account_index],
  )
  assert.deepEqual(
    trust.nodes.map(({ identity }: Json) => identity),
    cluster.peers.nodes.map(({ identity }) => identity),
  )
})

test('attack: api-user enrol uses no value that the platform returns', async () => {
  lie = () => ({})
  const { api_key } = last((await create('again', 'main')).stdout)
  lie = () => HOSTILE
  const again = await cli('api-user', 'enrol', '--api-key', api_key, '--json')
  assert.equal(again.status, 0, again.stderr)
  assert.deepEqual(
    last(again.stdout).nodes.map((each: Json) => [each.new, each.role, each.workspace]),
    [
      [false, 'read-only', 'again'],
      [false, 'read-only', 'again'],
      [false, 'read-only', 'again'],
    ],
  )
  assert.equal((await cli('api-user', 'enrol', '--api-key', randomUUID())).status, 1)
})

test('attack: a revocation revokes the entered key at the nodes first, whatever is returned', async () => {
  lie = () => ({})
  const [first, second] = [
    last((await create('revoked', 'one')).stdout),
    last((await create('revoked', 'two')).stdout),
  ]
  lie = () => ({ ...HOSTILE, api_key: second.api_key, revoked: true })
  assert.equal((await cli('api-user', 'revoke', '--api-key', first.api_key, '--json')).status, 0)
  for (const node of [1, 2, 3]) {
    const state = new Map((await enrolledAt(node)).map((each) => [each.api_key, each.revoked]))
    assert.deepEqual([state.get(first.api_key), state.get(second.api_key)], [true, false])
  }
  // A platform that refuses or is unreachable does not prevent the revocation at the nodes; the
  // exit status reports the failure.
  lie = () => ({ error: 'no' })
  const refused = await cli('api-user', 'revoke', '--api-key', second.api_key)
  assert.equal(refused.status, 1)
  assert.match(refused.stdout, /NOT revoked/)
  for (const node of [1, 2, 3])
    assert.equal(
      (await enrolledAt(node)).find((each) => each.api_key === second.api_key).revoked,
      true,
    )
})

test('attack: stake and drain use the entered amount and address, whatever is returned', async () => {
  lie = () => HOSTILE
  const stake = await cli(
    'gas-tank',
    'stake',
    '--workspace',
    'acme',
    '--network',
    'TRX',
    '--amount',
    '1',
    '--json',
  )
  assert.equal(stake.status, 0, stake.stderr)
  for (const node of [1, 2, 3])
    assert.match(stake.stderr, new RegExp(`signer ${node}: stake 1000000 sun ENERGY acme TRX`))
  const order = received.filter(({ command }) => command === 'gas-tank stake').at(-1)!
  assert.deepEqual([order.input.amount, order.input.resource], ['1', 'ENERGY'])
  const to = 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8'
  const drain = await cli(
    'gas-tank',
    'drain',
    '--workspace',
    'acme',
    '--network',
    'TRX',
    '--to',
    to,
    '--json',
  )
  assert.equal(drain.status, 0, drain.stderr)
  for (const node of [1, 2, 3])
    assert.match(drain.stderr, new RegExp(`signer ${node}: drain to ${to} acme TRX`))
  const bad = await cli(
    'gas-tank',
    'drain',
    '--workspace',
    'acme',
    '--network',
    'TRX',
    '--to',
    'nowhere',
  )
  assert.equal(bad.status, 1)
  assert.match(bad.stderr, /^custody: --to: /)
})

test('an order that people must approve is not given to the platform before they have', async () => {
  lie = () => HOSTILE
  const workspace = 'guarded'
  const orders = { approvals: [{ group: 'treasury', k: 2 }] }
  const policy = new TestPolicy(cluster, { name: workspace } as Workspace, [], 'api-frank', {
    orders,
  })
  await policy.install()
  const to = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
  const words = [
    '--workspace',
    workspace,
    '--network',
    'ETH',
    '--to',
    to,
    '--order',
    'o-1',
    '--json',
  ]
  const sent = () => received.filter(({ command }) => command === 'gas-tank drain').length
  const before = sent()
  const refused = await cli('gas-tank', 'drain', ...words)
  assert.equal(refused.status, 2, refused.stderr)
  assert.deepEqual(last(refused.stdout), { order: 'o-1', workspace, state: 'unapproved' })
  assert.match(refused.stderr, /signer 2: drain to 0x70.* guarded ETH, order o-1, NOT APPROVED/)
  assert.equal(sent(), before)
  const { body } = await cluster.operator(1, 'order', { order: 'o-1' })
  const meaning = orderApproval(
    { document: policy.document, hash: policy.hash } as never,
    body.to_approve,
  )
  const approvals = ['dan', 'erin'].map((by) => policy.statement(by, { ...meaning }))
  const item = { kind: 'approved', workspace, approvals }
  assert.equal((await cluster.post(1, '/policy/present', { item })).status, 200)
  const approved = await cli('gas-tank', 'drain', ...words)
  assert.equal(approved.status, 0, approved.stderr)
  assert.equal(sent(), before + 1)
})

test('leaves no key file if the platform refuses; if unreachable, prints how to continue', async () => {
  lie = (command) => (command === 'api-user create' ? { error: 'no room' } : {})
  const before = (await enrolledAt(1)).length
  const refused = await create('refused', 'main')
  assert.deepEqual([refused.status, refused.stderr], [1, 'custody: no room\n'])
  const made = (await enrolledAt(1)).slice(before)
  assert.deepEqual(
    made.map(({ revoked }) => revoked),
    [true],
  )
  lie = () => ({})
  for (const [more, said] of [
    [['--role', 'boss'], '--role'],
    [['--api-key', 'x'], '--api-key'],
    [['--index', '0'], '--index'],
    [['--workspace', ' '], '--workspace'],
  ] as const) {
    const wrong = await create('refused', 'main', ...more)
    assert.equal(wrong.status, 1)
    assert.match(wrong.stderr, new RegExp(said))
  }
  assert.equal((await enrolledAt(1)).length, before + 1, 'what was mistyped reached a node')
})

test('a key can be enrolled on a node’s own host, repeated at other nodes, and revoked', async () => {
  const [one, two, three] = cluster.peers.nodes.map((each) => each.home) as [string, string, string]
  const enrol = (at: string, ...more: string[]) =>
    cli(
      'signer',
      'enrol',
      '--home',
      at,
      '--workspace',
      'apart',
      '--sub-account',
      'main',
      '--role',
      'full',
      '--public-key',
      keyFile,
      '--json',
      ...more,
    )
  const first = last((await enrol(one)).stdout)
  for (const at of [two, three]) {
    const next = last((await enrol(at, '--api-key', first.api_key)).stdout)
    assert.deepEqual(
      [next.sub_account_index, next.key_fingerprint, next.new],
      [first.sub_account_index, first.key_fingerprint, true],
    )
  }
  const wrong = await enrol(two, '--api-key', first.api_key, '--sub-account', 'other')
  assert.equal(wrong.status, 1)
  assert.equal((await cli('signer', 'enrol', '--home', home)).status, 1)
  const gone = await cli('signer', 'revoke', '--home', two, '--api-key', first.api_key)
  assert.match(gone.stdout, /^signer 2: full key for apart \/ main .*, revoked$/m)
  assert.equal((await enrolledAt(1)).find((each) => each.api_key === first.api_key).revoked, false)
  const order = last(
    (
      await cli(
        'signer',
        'stake',
        '--home',
        one,
        '--workspace',
        'apart',
        '--network',
        'TRX',
        '--amount',
        '5',
        '--json',
      )
    ).stdout,
  )
  assert.deepEqual([order.amount, order.resource, order.node], ['5000000', 'ENERGY', 1])
})

test('the enrolment names each node that stored other values', () => {
  const answers = [
    { node: 1, role: 'full', index: 1 },
    { node: 2, role: 'read-only', index: 2 },
    { node: 3, index: 1 },
  ]
  assert.deepEqual(differences(answers, { expect: { role: 'full' }, alike: ['index'] }), [
    'signer 2 has role read-only, but you entered full',
    'signer 3 has role nothing, but you entered full',
    'signer 2 has index 2, but signer 1 has 1',
  ])
})
