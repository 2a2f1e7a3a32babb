import { TerminalError } from '@custody/chains/terminal'
import { createHash, createPublicKey, generateKeyPairSync } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeCertificate, makeTlsKey } from './certificate.ts'

/** What makes homes: keys, certificates, files that are whole or not there. */

export class SetupError extends TerminalError {
  constructor(message: string, ...lines: readonly string[]) {
    super(message, ...lines)
    this.name = 'SetupError'
  }
}

export const TIMEOUTS = { round: 5000, keygen: 60_000, sign: 30_000 }

/** sun_path holds 108 bytes, one of them zero. */
const SOCKET_BYTES_MAX = 104

export const write = (path: string, text: string): void => {
  const draft = `${path}.draft`
  writeFileSync(draft, text, { mode: 0o600 })
  renameSync(draft, path)
}

export const writeJson = (path: string, value: unknown): void => write(path, `${JSON.stringify(value, null, 2)}\n`)

export const closed = (path: string): string => {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  chmodSync(path, 0o700)
  return path
}

/** TLS key and certificate, once; the certificate comes last and says that both are there. */
export async function makeTls(home: string, name: string, nowMs = Date.now()): Promise<void> {
  if (existsSync(join(home, 'tls.crt'))) return
  const key = makeTlsKey()
  const certificate = await makeCertificate({ key, name, nowMs })
  write(join(home, 'tls.key'), key)
  write(join(home, 'tls.crt'), certificate)
}

/** A node's keys, once. */
export async function makeIdentity(home: string, node: number): Promise<void> {
  await makeTls(home, `custody signer ${node}`)
  if (!existsSync(join(home, 'identity.pub'))) {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    write(join(home, 'identity.key'), privateKey.export({ type: 'pkcs8', format: 'pem' }) as string)
    write(join(home, 'identity.pub'), publicKey.export({ type: 'spki', format: 'pem' }) as string)
  }
}

/** X25519, raw 32 bytes in hex; the secret half never enters the node's home. */
export function makeRecovery(): { secret: string; public: string } {
  const { privateKey } = generateKeyPairSync('x25519')
  const jwk = privateKey.export({ format: 'jwk' })
  return {
    secret: Buffer.from(jwk.d!, 'base64url').toString('hex'),
    public: Buffer.from(createPublicKey(privateKey).export({ format: 'jwk' }).x!, 'base64url').toString('hex'),
  }
}

/** Where the operator's socket of a home is; its folder is made where it is not the home. */
export function socketOf(home: string): string {
  const path = join(home, 'operator.sock')
  if (Buffer.byteLength(path) <= SOCKET_BYTES_MAX) return path
  const folder = join(tmpdir(), `custody-${createHash('sha256').update(home).digest('hex').slice(0, 16)}`)
  closed(folder)
  return join(folder, 'operator.sock')
}
