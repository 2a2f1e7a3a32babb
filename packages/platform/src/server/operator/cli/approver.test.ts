// The commands of the local page, as a person runs them.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { waitFor } from '../../../../../../testing/wait-for.ts'

const CLI = fileURLToPath(new URL('../../../../bin/custody.mjs', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'custody-approver-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const start = (...words: string[]) =>
  spawn(process.execPath, [CLI, 'approver', ...words], { cwd: folder, stdio: 'pipe' })

/** Runs a command to its end. */
async function run(...words: string[]): Promise<{ status: number | null; output: string }> {
  const child = start(...words)
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  const [status] = (await once(child, 'close')) as [number | null]
  return { status, output }
}

test('creates the settings of a page, serves it until SIGTERM, and refuses a port that is in use', async () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 4096 })
  writeFileSync(join(folder, 'key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }))
  const nodes = [1, 2, 3].map((node) => ({
    node,
    identity: generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }),
  }))
  const trust = { version: 1, network: 'local', workspace: 'acme', sub_account: 'main' }
  writeFileSync(
    join(folder, 'trust.json'),
    JSON.stringify({ ...trust, sub_account_index: 1, nodes }),
  )
  const options = {
    dir: 'page',
    platform: 'http://127.0.0.1:1',
    'api-key': '4f7bd0a2-6f0e-4b5c-9d3e-2a8f1c5b7e90',
    'private-key': 'key.pem',
    'trust-file': 'trust.json',
    person: 'alice',
  }
  const words = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value])
  const created = await run('init', ...words)
  assert.equal(created.status, 0, created.output)
  const { origin } = JSON.parse(readFileSync(join(folder, 'page', 'approver.json'), 'utf8')) as {
    origin: string
  }
  assert.ok(created.output.includes(origin), created.output)
  assert.equal((await run('init', ...words)).status, 1)

  const child = start('run', '--dir', 'page', '--no-open')
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
  await waitFor('the page', () => printed.includes('Ctrl-C\n'))
  assert.ok(printed.startsWith(`the page is at ${origin}\nopen a private window`), printed)
  const page = await fetch(origin)
  assert.deepEqual([page.status, page.headers.get('x-frame-options')], [200, 'DENY'])
  assert.doesNotMatch(printed, /has loaded the page/)
  // A request as a browser sends it for a window.
  const headers = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
  get(origin, { headers }, (response) => response.resume())
  await waitFor('the report', () => printed.includes('a browser window has loaded the page'))
  const second = await run('run', '--dir', 'page')
  assert.equal(second.status, 1)
  assert.match(second.output, /may imitate this page/)
  child.kill('SIGTERM')
  const [status] = (await once(child, 'close')) as [number | null]
  assert.equal(status, 0)
})
