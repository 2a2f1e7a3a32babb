import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createPublicKey } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { documentHash, readDocument } from '@custody/policy'
import { blocksOf } from '../../../../testing/documents.ts'
import { SignerCluster } from '../../../../../signer/testing/signer-cluster.ts'

/** Runs the commands of docs/policies.md, and others about policies, against three signer nodes. */
const CLI = fileURLToPath(new URL('../../../../bin/custody.mjs', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'custody-policies-'))
let cluster: SignerCluster
before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
})
after(async () => {
  await cluster.stop()
  rmSync(folder, { recursive: true, force: true })
})

interface Printed {
  status: number
  stdout: string
  stderr: string
}

const run = (program: string, args: string[]): Promise<Printed> =>
  new Promise((resolve) => {
    const env = {
      PATH: process.env['PATH'] ?? '',
      CUSTODY_HOME: folder,
      CUSTODY_SIGNERS: join(cluster.home, 'platform'),
    }
    execFile(program, args, { cwd: folder, env }, (error, stdout, stderr) => {
      resolve({ status: error ? Number(error.code) : 0, stdout, stderr })
    })
  })

const custody = (...words: string[]): Promise<Printed> => run(process.execPath, [CLI, ...words])

/** Runs a command that must succeed, and returns its result. */
async function resultOf(...words: string[]): Promise<Record<string, unknown>> {
  const { status, stdout, stderr } = await custody(...words, '--json')
  assert.equal(status, 0, `${words.join(' ')}\n${stdout}${stderr}`)
  return JSON.parse(stdout.trim().split('\n').at(-1) as string) as Record<string, unknown>
}

async function fails(expected: RegExp, ...words: string[]): Promise<void> {
  const { status, stderr } = await custody(...words)
  assert.equal(status, 1, words.join(' '))
  assert.match(stderr, expected)
}

const spkiOf = (name: string): string =>
  createPublicKey(readFileSync(join(folder, `${name}.pem.pub`), 'utf8'))
    .export({ type: 'spki', format: 'der' })
    .toString('base64')

const PAGE = 'docs/policies.md'
/** The document of the page, with the values of this installation. */
const documentOf = (nodes: string): Record<string, unknown> => {
  const [json] = blocksOf(PAGE).filter(({ language }) => language === 'json')
  const text = ['alice', 'bob', 'safe'].reduce(
    (before, name) => before.replace(`SPKI-OF-${name.toUpperCase()}`, spkiOf(name)),
    (json?.text ?? '').replace('"NODES"', JSON.stringify(nodes)),
  )
  return JSON.parse(text) as Record<string, unknown>
}

const write = (name: string, value: unknown): void => {
  writeFileSync(join(folder, name), JSON.stringify(value))
}

test('the commands of docs/policies.md install, stop and resume a policy at three nodes', async () => {
  // The exercise "two-approvals" is run by two-approvals.long.test.ts.
  const blocks = blocksOf(PAGE).filter(
    ({ language, place }) => language === 'sh' && place !== 'two-approvals',
  )
  const commands = blocks.flatMap(({ text }) => text.trim().split('\n'))
  assert.equal(commands.length, 13)
  for (const line of commands) {
    const script = `npx() { shift; '${process.execPath}' '${CLI}' "$@"; }\n${line}`
    const { status, stdout, stderr } = await run('bash', ['-c', script])
    assert.equal(status, 0, `${line}\n${stdout}${stderr}`)
    const nodes = /^nodes: ([0-9a-f]{64})$/m.exec(stdout)?.[1]
    if (nodes !== undefined) write('acme.json', documentOf(nodes))
    if (line.includes(' policy install')) assert.match(stderr, /^hash: [0-9a-f]{64}$/m)
    if (line.includes(' policy stop'))
      assert.match(stdout, /whole workspace of acme is stopped at signer 1, signer 2, signer 3/)
    if (line.includes('resume') && line.includes('alice'))
      assert.match(stdout, /stays stopped: approvals so far: 1 of 2 of admins/)
    if (line.includes('resume') && line.includes('bob'))
      assert.match(stdout, /has ended at signer 1, signer 2, signer 3/)
  }
  const shown = await resultOf('policy', 'show', '--workspace', 'acme')
  assert.deepEqual(
    [shown['number'], shown['held'], shown['stops'], shown['differing'], shown['next']],
    [1, [1, 2, 3], [], [], null],
  )
  await fails(
    /^custody: --workspace: the document is for the workspace acme, not for beta/,
    'policy',
    'install',
    '--workspace',
    'beta',
    '--file',
    join(folder, 'acme.json'),
  )
  assert.equal(shown['hash'], documentHash(readDocument(JSON.stringify(shown['document']))))
})

test('policy propose collects approvals and presents the next document to the nodes', async () => {
  const { document, hash } = await resultOf('policy', 'show', '--workspace', 'acme')
  const next = { ...(document as object), number: 2, previous: hash, rules: [] }
  write('next.json', next)
  const words = ['policy', 'propose', '--workspace', 'acme', '--file', join(folder, 'next.json')]
  const by = (name: string) => ['--as', name, '--key', join(folder, `${name}.pem`)]
  await fails(
    /^custody: --in: must be a whole number of seconds/,
    ...words,
    ...by('bob'),
    '--in',
    'x',
  )
  const first = await resultOf(...words, ...by('alice'))
  assert.deepEqual(
    [first['state'], first['needs']],
    ['waiting', [{ group: 'admins', k: 2, have: 1 }]],
  )
  const second = await resultOf(...words, ...by('bob'))
  assert.deepEqual([second['state'], second['held']], ['proposed', [1, 2, 3]])
  const shown = await resultOf('policy', 'show', '--workspace', 'acme')
  assert.equal((shown['next'] as { hash: string }).hash, second['hash'])
  assert.deepEqual((shown['next'] as { document: object }).document, next)
})

test('policy veto ends a pending change, and policy suspend blocks a key of another person', async () => {
  const scope = ['--workspace', 'acme']
  const by = (name: string) => ['--as', name, '--key', join(folder, `${name}.pem`)]
  const { next } = (await resultOf('policy', 'show', ...scope)) as { next: { hash: string } }
  await fails(
    /^custody: --hash: must be 64/,
    'policy',
    'veto',
    ...scope,
    ...by('bob'),
    '--hash',
    '1',
  )
  const { hash } = next
  const vetoed = await resultOf('policy', 'veto', ...scope, ...by('bob'), '--hash', hash)
  assert.deepEqual(vetoed['recorded'], [1, 2, 3])
  assert.equal((await resultOf('policy', 'show', ...scope))['next'], null)

  const key = ['--person', 'safe', '--key-id', 'k1']
  await fails(
    /^custody: the statement was not signed: by: the document does not allow this/,
    'policy',
    'suspend',
    ...scope,
    ...by('safe'),
    ...key,
  )
  const suspended = await resultOf('policy', 'suspend', ...scope, ...by('alice'), ...key)
  assert.deepEqual(suspended['recorded'], [1, 2, 3])
})

test('policy install refuses a first document if another policy is in force', async () => {
  const { document } = await resultOf('policy', 'show', '--workspace', 'acme')
  write('other.json', { ...(document as object), rules: [] })
  const file = join(folder, 'other.json')
  for (const name of ['alice', 'bob', 'safe'])
    await resultOf('policy', 'sign', file, '--as', name, '--key', join(folder, `${name}.pem`))
  await fails(
    /^custody: --workspace: signer 1 has policy 1 with hash [0-9a-f]{64} in force for acme: change it/,
    'policy',
    'install',
    '--workspace',
    'acme',
    '--file',
    file,
  )
})

test('signer policy commands install, show and accept at one node after the other', async () => {
  const { nodes } = await resultOf('policy', 'place', '--workspace', 'beta')
  write('beta.json', { ...documentOf(nodes as string), workspace: 'beta' })
  const file = join(folder, 'beta.json')
  for (const name of ['alice', 'bob', 'safe'])
    await resultOf('policy', 'sign', file, '--as', name, '--key', join(folder, `${name}.pem`))
  const at = (command: string, node: number, ...more: string[]) =>
    resultOf('signer', 'policy', command, '--home', join(cluster.home, `node-${node}`), ...more)
  const W = ['--workspace', 'beta']
  const first = await at('install', 1, ...W, '--file', file)
  assert.deepEqual([first['number'], first['held']], [1, []])
  const before = await at('show', 1, ...W)
  assert.deepEqual([before['hash'], before['first']], [null, [{ node: 1, hash: first['hash'] }]])
  const second = await at('install', 2, ...W, '--file', file)
  assert.deepEqual([second['hash'], second['held']], [first['hash'], [2]])
  assert.equal((await at('show', 3, ...W))['hash'], first['hash'])
  const accepted = await at('accept', 3, ...W, '--hash', String(first['hash']))
  assert.deepEqual(accepted, { node: 3, workspace: 'beta', accepted: first['hash'] })
  const home = join(cluster.home, 'node-1')
  await fails(
    /^custody: --hash: must be 64 lower-case hex digits/,
    'signer',
    'policy',
    'confirm',
    '--home',
    home,
    ...W,
    '--hash',
    'abc',
  )
  await fails(
    /is not the hash of the pending change/,
    'signer',
    'policy',
    'confirm',
    '--home',
    home,
    ...W,
    '--hash',
    '0'.repeat(64),
  )
  await fails(
    /^custody: --file: kind: must be change, statement, resumed, approved in /,
    'signer',
    'policy',
    'present',
    '--home',
    home,
    '--file',
    file,
  )
})

test('a stop that is presented from its file ends, and a lost file is reported', async () => {
  const alice = ['--as', 'alice', '--key', join(folder, 'alice.pem')]
  const out = join(folder, 'stop.json')
  const scope = ['--workspace', 'beta', '--sub-account', 'main']
  const stopped = await custody('policy', 'stop', ...scope, ...alice, '--out', out)
  assert.equal(stopped.status, 0, stopped.stderr)
  assert.match(
    stopped.stderr,
    /no API key of sub-account main is enrolled at signer 1: check its name/,
  )
  await fails(
    /^custody: --workspace: the whole workspace is not stopped; stopped: sub-account main\n$/,
    'policy',
    'resume',
    '--workspace',
    'beta',
    ...alice,
  )
  await fails(
    /^custody: --file: the file .* with the signed stop does not exist: use the file/,
    'policy',
    'resume',
    ...scope,
    ...alice,
  )
  await resultOf('policy', 'resume', ...scope, ...alice, '--file', out)
  const bob = ['--as', 'bob', '--key', join(folder, 'bob.pem')]
  const resumed = await resultOf('policy', 'resume', ...scope, ...bob, '--file', out)
  assert.deepEqual([resumed['state'], resumed['resumed']], ['resumed', [1, 2, 3]])
  const home = join(cluster.home, 'node-2')
  const again = await resultOf('signer', 'policy', 'present', '--home', home, '--file', out)
  assert.equal(again['is_new'], false)
})
