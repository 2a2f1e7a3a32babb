// The settings of a page, and the port that it keeps.
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { approvalOf, documentOf, PRIVATE_KEY, trust, API_KEY } from '../testing/fixture.ts'
import { clientOf, initialize, readConfig, rpIdOf, type Config } from './config.ts'
import { ApproverError } from './errors.ts'
import { platformOf } from './server/platform.ts'
import { listen, run } from './server/run.ts'

const folder = mkdtempSync(join(tmpdir(), 'custody-approver-'))
const options = {
  dir: join(folder, 'page'),
  platform: 'http://127.0.0.1:1',
  apiKey: API_KEY,
  privateKey: join(folder, 'key.pem'),
  trustFile: join(folder, 'trust.json'),
  person: 'alice',
}

before(() => {
  writeFileSync(options.privateKey, PRIVATE_KEY)
  writeFileSync(options.trustFile, JSON.stringify(trust))
})

const isCode = (code: string, pattern: RegExp) => (error: unknown) => {
  assert.ok(error instanceof ApproverError, String(error))
  assert.equal(error.code, code)
  assert.match(error.message, pattern)
  return true
}

test('writes settings without secrets, with a port that later starts keep', async () => {
  const config = await initialize(options)
  assert.ok(config.port >= 20_000 && config.port < 49_152)
  assert.equal(config.origin, `http://localhost:${config.port}`)
  assert.equal(rpIdOf(config), 'localhost')
  assert.deepEqual(readConfig(options.dir), config)
  const path = join(options.dir, 'approver.json')
  assert.equal(statSync(path).mode & 0o777, 0o600)
  assert.doesNotMatch(readFileSync(path, 'utf8'), /PRIVATE KEY/)
  await assert.rejects(initialize(options), isCode('OPTION', /already exists/))
  assert.deepEqual(readConfig(options.dir), config)
})

test('a page behind a proxy has an https origin, whose host is the domain of its passkeys', async () => {
  const config = await initialize({
    ...options,
    dir: join(folder, 'remote'),
    origin: 'https://approve.acme.example',
    listen: '0.0.0.0:8443',
  })
  assert.deepEqual(
    [config.origin, config.host, config.port, rpIdOf(config)],
    ['https://approve.acme.example', '0.0.0.0', 8443, 'approve.acme.example'],
  )
})

test('refuses options that are not valid', async () => {
  for (const [fields, pattern] of [
    [{ person: 'Alice!' }, /--person/],
    [{ platform: 'ftp://a' }, /--platform/],
    [{ privateKey: join(folder, 'missing') }, /--private-key/],
    [{ trustFile: join(folder, 'missing') }, /--trust-file/],
    [{ trustFile: options.privateKey }, /is not JSON/],
    [{ origin: 'http://approve.acme.example' }, /--origin/],
    [{ origin: 'https://approve.acme.example/path' }, /--origin/],
    [{ listen: '127.0.0.1:8443' }, /requires --origin/],
    [{ origin: 'https://a.example', listen: '8443' }, /--listen/],
    [{ origin: 'https://a.example', platform: 'https://a.example/' }, /--origin: .*control panel/],
  ] as const)
    await assert.rejects(
      initialize({ ...options, dir: join(folder, 'none'), ...fields }),
      isCode('OPTION', pattern),
    )
  assert.throws(() => readConfig(join(folder, 'none')), isCode('OPTION', /approver init/))
})

test('a start fails if another program uses the port, because it may imitate the page', async () => {
  const other = createServer()
  await new Promise<void>((done) => {
    other.listen(0, '127.0.0.1', done)
  })
  const { port } = other.address() as AddressInfo
  const config: Config = { ...readConfig(options.dir), port, origin: `http://localhost:${port}` }
  const terminal = { report: () => undefined, open: null }
  await assert.rejects(
    run(options.dir, config, terminal),
    isCode('PORT_IN_USE', /may imitate this page/),
  )
  other.close()
})

test('listens only on the loopback addresses', async () => {
  const servers = await listen({ ...readConfig(options.dir), port: 0 }, () => undefined)
  const addresses = servers.map((server) => (server.address() as AddressInfo).address)
  for (const server of servers) server.close()
  assert.ok(addresses.includes('127.0.0.1'))
  assert.deepEqual(
    addresses.filter((address) => address !== '127.0.0.1' && address !== '::1'),
    [],
  )
})

test('reads transfers and the document by the SDK, and names the cause of a failure', async () => {
  const document = documentOf()
  const approval = await approvalOf(document)
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    const body: Record<string, unknown> = {
      '/dac/v1/approvals?limit=20': { data: [approval], next: null, has_more: false },
      [`/dac/v1/approvals/${approval.id}`]: approval,
      '/dac/v1/policy': { number: 1, hash: 'x', document },
    }
    const found = body[request.url ?? '']
    response.writeHead(found ? 200 : 404, { 'content-type': 'application/json' })
    response.end(JSON.stringify(found ?? { status: 404, code: 'NOT_FOUND', detail: 'no transfer' }))
  })
  await new Promise<void>((done) => {
    server.listen(0, '127.0.0.1', done)
  })
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const platform = platformOf(clientOf({ ...readConfig(options.dir), platform: base }))
  assert.deepEqual((await platform.list(undefined)).data, [approval])
  assert.deepEqual(await platform.read(approval.id), approval)
  assert.deepEqual(await platform.document(), document)
  await assert.rejects(platform.read('other'), isCode('NOT_FOUND', /refused it/))
  assert.ok(requests.includes('GET /dac/v1/policy'))
  server.closeAllConnections()
  server.close()
  const gone = platformOf(clientOf(readConfig(options.dir)))
  await assert.rejects(gone.list(undefined), isCode('UNREACHABLE', /did not respond/))
})
