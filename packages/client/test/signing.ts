// The programs of examples/signing, each by its own language, against a service that verifies every request as the real one does.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { TestServer } from './server.ts'

const API_KEY = '4f7bd0a2-6f0e-4b5c-9d3e-2a8f1c5b7e90'
const examples = fileURLToPath(new URL('../../../examples/signing/', import.meta.url))
/** What every language spells in a way of its own. */
const BODY = '{"asset":"BTC","label":"Grüße \\"1/2\\" 😀 & <b>","n":0.10}'

export interface Language {
  name: string
  /** What has to run for it to be there, and what makes it run. */
  probe: [string, ...string[]]
  command: (file: (name: string) => string) => [string, ...string[]]
}

/** Tests of each language that this machine has; the others are skipped, and say so. */
export function signingTests(languages: readonly Language[]): void {
  const pair = generateKeyPairSync('rsa', { modulusLength: 4096 })
  const folder = mkdtempSync(join(tmpdir(), 'custody-signing-'))
  const key = join(folder, 'key.pem')
  writeFileSync(key, pair.privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  let server: TestServer
  before(async () => { server = await TestServer.start(API_KEY, pair.publicKey) })
  after(async () => {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  for (const { name, probe: [tool, ...words], command } of languages) {
    const isThere = spawnSync(tool, words, { stdio: 'ignore' }).status === 0
    test(`${name} signs what the service takes`, { skip: isThere ? false : `${[tool, ...words].join(' ')} does not run here` }, async () => {
      const [program, ...before_] = command((file) => join(examples, file))
      const run = async (...arguments_: string[]) => {
        const env = { ...process.env, CUSTODY_URL: server.url, CUSTODY_API_KEY: API_KEY, CUSTODY_KEY: key }
        const child = spawn(program, [...before_, ...arguments_], { env, cwd: folder })
        let [out, err] = ['', '']
        child.stdout.on('data', (text: Buffer) => (out += text.toString()))
        child.stderr.on('data', (text: Buffer) => (err += text.toString()))
        const code = await new Promise<number | null>((resolve) => { child.on('close', resolve) })
        return { code, out: out.trim(), err }
      }
      server.script({ body: '[{"asset":"ETH"}]' }, { body: '{"id":"a"}' }, { status: 400, body: '{"code":"WALLET_MISSING"}' })
      const asked = await run('GET', '/dac/v1/wallets?asset=ETH')
      assert.deepEqual([asked.code, asked.out], [0, '[{"asset":"ETH"}]'], asked.err)
      const written = await run('POST', '/dac/v1/address', BODY)
      assert.deepEqual([written.code, written.out], [0, '{"id":"a"}'], written.err)
      const refused = await run('POST', '/dac/v1/address', '{}')
      assert.deepEqual([refused.code === 0, refused.out], [false, '{"code":"WALLET_MISSING"}'], refused.err)
      assert.deepEqual(server.seen.map(({ method, url, body }) => [method, url, body]), [
        ['GET', '/dac/v1/wallets?asset=ETH', ''], ['POST', '/dac/v1/address', BODY], ['POST', '/dac/v1/address', '{}'],
      ])
      assert.equal(new Set(server.seen.map(({ claims }) => claims?.nonce)).size, 3)
    })
  }
}
