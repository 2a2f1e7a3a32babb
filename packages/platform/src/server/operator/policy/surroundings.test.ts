// What commands and the API know around a document: the control panel's origins and the API keys.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { loadRegistry } from '@custody/chains'
import { checkDocument, documentHash, type PolicyDocument } from '@custody/policy'
import { allow, documentWith } from '../../../../../policy/testing/documents.ts'
import { newPasskey } from '../../../../../policy/testing/passkeys.ts'
import { ApiError } from '../../../core/errors.ts'
import type { Database } from '../../../core/database/pool.ts'
import { createPolicyChange } from '../../../custody/policies/changes/create-change.ts'
import { panelOrigins } from '../../../custody/policies/lint-surroundings.ts'
import { check } from '../cli/policy.ts'
import { compare } from '../cli/policy-analysis.ts'
import { policySurroundings } from './surroundings.ts'

const folder = mkdtempSync(join(tmpdir(), 'custody-surroundings-'))
const servers: Server[] = []
after(() => {
  for (const server of servers) server.close()
  rmSync(folder, { recursive: true, force: true })
})

const PANEL = 'https://custody.example'
const pay = allow('pay', {
  match: { action: ['transfer'], assets: ['BTC'] },
  approvals: [{ group: 'treasury', k: 1 }],
})
const { people } = documentWith() as { people: object[] }
const passkey = { ...newPasskey('p').key, origins: [PANEL], rp_id: 'custody.example' }
const withPanelKey = {
  people: [...people, { id: 'zoe', name: 'Zoe', api_keys: [], keys: [passkey] }],
}
const first = checkDocument(documentWith([pay]))
const next = (fields: object = {}): PolicyDocument =>
  checkDocument(documentWith([pay], { number: 2, previous: documentHash(first), ...fields }))

/** Listens on a Unix socket, and answers each request. */
async function listen(socket: string, answer: (url: string, body: string) => object) {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () =>
      response.end(JSON.stringify(answer(String(request.url), Buffer.concat(chunks).toString()))),
    )
  })
  servers.push(server)
  await new Promise<void>((resolve) => {
    server.listen(socket, resolve)
  })
}

/** A data folder with the platform, a node, both or none. */
async function homeWith(parts: { platform?: string[]; node?: string[] }): Promise<string> {
  const home = mkdtempSync(join(folder, 'h-'))
  if (parts.platform) {
    const socket = join(home, 'platform.sock')
    writeFileSync(join(home, 'operator.path'), socket)
    const database = {
      one: () => Promise.resolve({ id: 'w' }),
      query: () => Promise.resolve(parts.platform?.map((api_key) => ({ api_key }))),
    } as unknown as Database
    const known = await policySurroundings(
      { database, checkout: { base: PANEL } },
      {
        workspace: 'acme',
      },
    )
    await listen(socket, (_url, body) => {
      assert.equal((JSON.parse(body) as { command: string }).command, 'policy surroundings')
      return known
    })
  }
  if (parts.node) {
    const socket = join(home, 'node.sock')
    mkdirSync(join(home, 'signers', 'platform'), { recursive: true })
    const peers = JSON.stringify({ nodes: [{ node: 1, socket }] })
    writeFileSync(join(home, 'signers', 'platform', 'peers.json'), peers)
    await listen(socket, () => ({
      node: 1,
      workspace: 'acme',
      place: { mode: first.mode, nodes: first.nodes },
      first: [],
      number: 1,
      hash: documentHash(first),
      document: JSON.stringify(first),
      api_keys: parts.node,
      held: [],
    }))
  }
  return home
}

/** Returns the codes of the findings of a command. */
async function codesOf(
  command: typeof check,
  home: string,
  document: PolicyDocument,
): Promise<string[]> {
  const path = join(home, 'policy.json')
  writeFileSync(path, JSON.stringify(document))
  const { result } = await command({ home, words: [path], values: {} })
  return (result['findings'] as { code: string; message: string }[])
    .filter(({ code }) => ['PANEL_ORIGIN', 'KEY_WITHOUT_OWNER', 'NOT_CHECKED'].includes(code))
    .map(({ code, message }) =>
      `${code} ${/(?:API key|which) ([\w-]+)/.exec(message)?.[1] ?? ''}`.trim(),
    )
}

test('policy check knows the origins of the panel and the API keys from the platform', async () => {
  const home = await homeWith({ platform: ['api-alice', 'robot'] })
  assert.deepEqual(await codesOf(check, home, next(withPanelKey)), ['PANEL_ORIGIN'])
  assert.deepEqual(await codesOf(check, home, next()), ['KEY_WITHOUT_OWNER robot'])
})

test('policy check and policy diff know the API keys from the signer nodes', async () => {
  const home = await homeWith({ platform: [], node: ['api-alice', 'hidden'] })
  for (const command of [check, compare]) {
    assert.deepEqual(await codesOf(command, home, next()), ['KEY_WITHOUT_OWNER hidden'])
    assert.deepEqual(await codesOf(command, home, next(withPanelKey)), ['PANEL_ORIGIN'])
  }
})

test('policy check without platform and nodes states what it has not checked', async () => {
  const home = await homeWith({})
  assert.deepEqual(await codesOf(check, home, next()), ['NOT_CHECKED API'])
  assert.deepEqual(await codesOf(check, home, next(withPanelKey)), [
    'NOT_CHECKED origins',
    'NOT_CHECKED API',
  ])
})

test('the API refuses a proposal with a passkey of the control panel', async () => {
  const view = { document: JSON.stringify(first), hash: documentHash(first), number: 1 }
  const services = {
    registry: loadRegistry('mainnet'),
    checkout: { base: PANEL },
    database: {
      query: () => Promise.resolve([]),
      one: () => Promise.resolve(undefined),
      now: () => new Date(0),
    },
    signers: {
      peers: [1, 2, 3].map((node) => ({ node })),
      isPenalised: () => false,
      call: (node: number) => Promise.resolve({ node, workspace: 'acme', held: [], ...view }),
    },
  }
  const caller = { workspace: 'acme', workspaceId: 'w', apiKey: 'k' }
  const body = { document: next(withPanelKey), comment: 'Add Zoe' }
  await assert.rejects(
    // oxlint-disable-next-line typescript/no-explicit-any -- the handler is called without a server
    (createPolicyChange.handler as any)({ caller, body }, services),
    (error: unknown) => {
      assert.ok(error instanceof ApiError, String(error))
      assert.equal(error.field, 'document.people[7].keys[0].origins')
      assert.match(error.message, /control panel/)
      return true
    },
  )
})

test('a local control panel is opened at its address and as localhost', () => {
  assert.deepEqual(panelOrigins('http://127.0.0.1:8080'), [
    'http://127.0.0.1:8080',
    'http://localhost:8080',
  ])
  assert.deepEqual(panelOrigins('https://custody.example/'), [PANEL])
})
