import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { readSigned } from '@custody/policy'
import { keygen } from '../keygen.ts'
import { check, install, place, show, sign } from './policy.ts'
import { stop } from './policy-stop.ts'
import type { Outcome, Values } from './typed.ts'

/** Tests of the policy commands with files and with simulated operator sockets. */
const folder = mkdtempSync(join(tmpdir(), 'custody-policy-'))
const servers: Server[] = []
after(() => {
  for (const server of servers) server.close()
  rmSync(folder, { recursive: true, force: true })
})

const NODES = 'ab'.repeat(32)
const KEYS = new Map(
  ['alice', 'bob', 'carol'].map((name) => [
    name,
    name === 'bob'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : generateKeyPairSync('ed25519'),
  ]),
)
const file = (name: string, value: unknown): string => {
  const path = join(folder, name)
  writeFileSync(path, typeof value === 'string' ? value : JSON.stringify(value))
  return path
}
const pem = (name: string, key: KeyObject): string =>
  file(name, key.export({ type: 'pkcs8', format: 'pem' }) as string)
for (const [name, { privateKey }] of KEYS) pem(`${name}.pem`, privateKey)
const keyFile = (name: string): string => join(folder, `${name}.pem`)

const documentWith = (fields: object = {}) => ({
  kind: 'custody-policy',
  v: 1,
  mode: 'local',
  workspace: 'acme',
  number: 1,
  previous: '0'.repeat(64),
  nodes: NODES,
  people: [...KEYS].map(([id, { publicKey }]) => ({
    id,
    name: id,
    api_keys: [],
    keys: [
      {
        id: 'k1',
        kind: 'key',
        alg: id === 'bob' ? 'ES256' : 'Ed25519',
        spki: publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
      },
    ],
  })),
  groups: { admins: [...KEYS.keys()] },
  change: { approvals: [{ group: 'admins', k: 2 }], delay_s: 0, veto: 'admins' },
  stop: { group: 'admins' },
  resume: { approvals: [{ group: 'admins', k: 2 }] },
  rules: [{ id: 'small', effect: 'allow', match: { action: ['transfer'], assets: ['ETH'] } }],
  ...fields,
})

const typed = (words: string[], values: Values = {}, home = folder) => ({ home, words, values })
const signAs = async (path: string, name: string): Promise<Outcome> =>
  await sign(typed([path], { as: name, key: keyFile(name) }))
const textOf = ({ text = '' }: Outcome): string => [text].flat().join('\n')

/** Starts simulated operator sockets. @returns home, and the commands that the nodes have received */
async function homeWith(
  answer: (command: string, node: number, body: { workspace: string }) => object,
): Promise<{ home: string; received: string[] }> {
  const home = mkdtempSync(join(folder, 'home-'))
  const received: string[] = []
  const nodes = [1, 2, 3].map((node) => ({ node, socket: join(home, `${node}.sock`) }))
  mkdirSync(join(home, 'signers', 'platform'), { recursive: true })
  writeFileSync(join(home, 'signers', 'platform', 'peers.json'), JSON.stringify({ nodes }))
  for (const { node, socket } of nodes) {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const command = String(request.url).slice(1)
        received.push(command)
        const body = JSON.parse(Buffer.concat(chunks).toString()) as { workspace: string }
        response.end(JSON.stringify(answer(command, node, body)))
      })
    })
    servers.push(server)
    await new Promise<void>((resolve) => {
      server.listen(socket, resolve)
    })
  }
  return { home, received }
}

/** What a node returns that has no policy in force. */
const emptyView = (node: number, workspace: string, nodes = NODES) => ({
  node,
  workspace,
  place: { mode: 'local', nodes },
  first: [],
  number: null,
  hash: null,
  document: null,
  held: [],
})

test('keygen --type ed25519 writes a key pair and returns the spki for a document', async () => {
  const out = join(folder, 'approver.pem')
  const { result } = await keygen({ type: 'ed25519', out })
  assert.match(readFileSync(out, 'utf8'), /^-----BEGIN PRIVATE KEY-----\n/)
  assert.equal(statSync(out).mode & 0o777, 0o600)
  const spki = readFileSync(`${out}.pub`, 'utf8').split('\n')[1]
  assert.equal(result['spki'], spki)
  await assert.rejects(keygen({ type: 'dsa', out: `${out}.2` }), /--type: must be rsa or ed25519/)
})

test('policy check prints the hash, the rules as sentences and the missing proofs', async () => {
  const outcome = await check(typed([file('check.json', documentWith())]))
  assert.equal(outcome.exitCode, 0)
  const { hash, rules, missing } = outcome.result as { hash: string; rules: string[]; missing: [] }
  assert.match(hash, /^[0-9a-f]{64}$/)
  assert.deepEqual(rules, ['small: Allow transfers of ETH.'])
  assert.equal(missing.length, 3)
  assert.match(textOf(outcome), /^person bob: key k1, ES256, SHA-256 [0-9a-f]{64}$/m)
  assert.match(
    textOf(outcome),
    /^A change of the policy requires 2 of admins and is in force at once\./m,
  )
})

test('policy check exits with 1 and names the field of an error', async () => {
  const cases: [object, RegExp][] = [
    [
      { change: { ...documentWith().change, veto: 'owners' } },
      /^error: change\.veto: The document has no group owners\.$/m,
    ],
    [{ delay: 3 }, /^error: delay: is not a field$/m],
    [{ mode: 'mainnet' }, /^error: change\.delay_s: Outside of mode local, /m],
  ]
  for (const [fields, expected] of cases) {
    const outcome = await check(typed([file('faulty.json', documentWith(fields))]))
    assert.equal(outcome.exitCode, 1)
    assert.match(textOf(outcome), expected)
  }
})

test('policy sign adds a proof, replaces an earlier one of the same key, and keeps the mode', async () => {
  const path = file('sign.json', documentWith())
  chmodSync(path, 0o640)
  assert.match(textOf(await signAs(path, 'alice')), /^missing: the proof of possession of bob /m)
  await signAs(path, 'bob')
  await signAs(path, 'alice')
  const last = await signAs(path, 'carol')
  assert.match(textOf(last), /every key has a proof of possession/)
  assert.equal(statSync(path).mode & 0o777, 0o640)
  const { document, possessions } = JSON.parse(readFileSync(path, 'utf8')) as {
    document: object
    possessions: object[]
  }
  assert.deepEqual(document, documentWith())
  assert.deepEqual(
    possessions.map((each) => readSigned(JSON.stringify(each)).statement.by),
    ['bob', 'alice', 'carol'],
  )
})

test('a proof of another version of the document is reported as missing', async () => {
  const path = file('changed.json', documentWith())
  await signAs(path, 'alice')
  const { possessions } = JSON.parse(readFileSync(path, 'utf8')) as { possessions: object[] }
  writeFileSync(path, JSON.stringify({ document: documentWith({ rules: [] }), possessions }))
  const outcome = await check(typed([path]))
  assert.match(
    textOf(outcome),
    /^missing: .* of alice for the key k1 \(policy: is not the document 1/m,
  )
})

test('policy sign refuses bad input, names the option or field, and changes nothing', async () => {
  const path = file('refused.json', documentWith())
  const before = readFileSync(path, 'utf8')
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const cases: [string, Values, RegExp][] = [
    [path, { key: keyFile('alice') }, /^--as is required$/],
    [
      path,
      { as: 'dave', key: keyFile('alice') },
      /^--as: the document has no person dave; it has alice, bob, carol$/,
    ],
    [
      path,
      { as: 'bob', key: keyFile('alice') },
      /^--key: the key in .* is not a key of bob in the document; its spki is MCow/,
    ],
    [path, { as: 'bob', key: join(folder, 'absent') }, /^--key: the file .*absent does not exist$/],
    [path, { as: 'bob', key: path }, /^--key: .* is not a PEM file with a private key$/],
    [
      path,
      { as: 'bob', key: pem('rsa.pem', rsa) },
      /^--key: .* is a key of rsa: an Ed25519 or P-256 key is required/,
    ],
    [
      join(folder, 'absent'),
      { as: 'bob', key: keyFile('bob') },
      /^FILE: the file .*absent does not exist$/,
    ],
    [folder, { as: 'bob', key: keyFile('bob') }, /^FILE: .* is a folder$/],
    [
      file('text.json', 'text'),
      { as: 'bob', key: keyFile('bob') },
      /^FILE: .*text\.json is not valid JSON/,
    ],
    [file('twice.json', '{"document":1,"document":2}'), {}, /^FILE: .*"document" appears twice/],
    [file('list.json', '[]'), {}, /^FILE: .* must contain a JSON object$/],
    [
      file('other.json', { document: documentWith(), proofs: [] }),
      {},
      /^FILE: proofs: is not a field of a policy file/,
    ],
    [
      file('proof.json', { document: documentWith(), possessions: [{}] }),
      {},
      /^FILE: possessions\[0\]: /,
    ],
    [file('shape.json', documentWith({ number: 0 })), {}, /^FILE: number: /],
  ]
  for (const [target, values, expected] of cases)
    assert.throws(() => void sign(typed([target], values)), {
      name: 'OperatorError',
      message: expected,
    })
  assert.equal(readFileSync(path, 'utf8'), before)
})

test('policy place prints the place in which the nodes agree, and fails if they differ', async () => {
  const { home } = await homeWith((_command, node, { workspace }) => emptyView(node, workspace))
  const { result } = await place(typed([], { workspace: 'acme' }, home))
  assert.deepEqual(result, { mode: 'local', workspace: 'acme', nodes: NODES })
  const other = await homeWith((_command, node, { workspace }) =>
    emptyView(node, workspace, node === 3 ? 'cd'.repeat(32) : NODES),
  )
  await assert.rejects(
    async () => place(typed([], { workspace: 'acme' }, other.home)),
    /signer 3 and signer 1 have different identity keys/,
  )
})

test('policy install enters nothing if a proof is missing or the document is for another place', async () => {
  const { home, received } = await homeWith((_command, node, { workspace }) =>
    emptyView(node, workspace),
  )
  const path = file('install.json', documentWith())
  const cases: [string, string, RegExp][] = [
    ['beta', path, /^--workspace: the document is for the workspace acme, not for beta$/],
    ['acme', path, /^--file: possessions: the proof of k1 of alice is missing$/],
    [
      'acme',
      file('nodes.json', documentWith({ nodes: '00'.repeat(32) })),
      /^--file: nodes: must be (ab)+ at these signer nodes, and is (00)+$/,
    ],
    ['acme', join(folder, 'absent'), /^--file: the file .* does not exist$/],
  ]
  for (const [workspace, target, expected] of cases)
    await assert.rejects(async () => install(typed([], { workspace, file: target }, home)), {
      name: 'OperatorError',
      message: expected,
    })
  assert.deepEqual([...new Set(received)], ['policy-show'])
})

test('on mainnet, policy install enters a document only with --confirm and its hash', async () => {
  const { home, received } = await homeWith((_command, node, { workspace }) => ({
    ...emptyView(node, workspace),
    place: { mode: 'mainnet', nodes: NODES },
  }))
  const { change } = documentWith()
  const document = documentWith({ mode: 'mainnet', change: { ...change, delay_s: 3600 } })
  const path = file('mainnet.json', document)
  for (const name of KEYS.keys()) await signAs(path, name)
  const values = { workspace: 'acme', file: path }
  const preview = await install(typed([], values, home))
  assert.equal(preview.exitCode, 2)
  assert.match(textOf(preview), /^nothing was entered: .* with --confirm [0-9a-f]{64}$/)
  await assert.rejects(
    async () => install(typed([], { ...values, confirm: '0'.repeat(64) }, home)),
    /^OperatorError: --confirm: the document in --file has the hash [0-9a-f]{64}$/,
  )
  assert.ok(!received.includes('policy-install'))
})

test('policy show names the node that has another policy, and exits with 1', async () => {
  const document = JSON.stringify(documentWith())
  const { home } = await homeWith((_command, node, { workspace }) =>
    node === 2
      ? emptyView(node, workspace)
      : {
          ...emptyView(node, workspace),
          number: 1,
          hash: 'cd'.repeat(32),
          document,
          next: null,
          stops: [],
        },
  )
  const outcome = await show(typed([], { workspace: 'acme' }, home))
  assert.equal(outcome.exitCode, 1)
  assert.deepEqual(outcome.result['held'], [1, 3])
  assert.match(textOf(outcome), /^signer 2 has NO policy of the workspace in force$/m)
})

test('policy stop refuses a workspace without a policy', async () => {
  const { home, received } = await homeWith((_command, node, { workspace }) =>
    emptyView(node, workspace),
  )
  const values = { workspace: 'acme', as: 'alice', key: keyFile('alice') }
  await assert.rejects(
    async () => stop(typed([], values, home)),
    /^OperatorError: --workspace: the workspace acme has no policy in force at the signer nodes/,
  )
  assert.ok(!received.includes('policy-present'))
})
