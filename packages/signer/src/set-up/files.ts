import { reasonOf } from '@custody/chains/reason'
import { TerminalError } from '@custody/chains/terminal'
import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ensureSocketFolder, socketPathOf } from '../operator/socket-folder.ts'
import { makeCertificate, makeTlsKey } from './certificate.ts'

/**
 * Error of the functions that create data folders: keys, certificates, and files that are written
 * atomically.
 */

export class SetupError extends TerminalError {
  constructor(message: string, ...lines: readonly string[]) {
    super(message, ...lines)
    this.name = 'SetupError'
  }
}

/** Default of `budget_fee_caps` in config.json. */
export const BUDGET_FEE_CAPS = { local: 100, regtest: 10, mainnet: 10 } as const

export const TIMEOUTS = { round: 5000, keygen: 60_000, sign: 30_000 }

export const write = (path: string, text: string): void => {
  const draft = `${path}.draft`
  writeFileSync(draft, text, { mode: 0o600 })
  renameSync(draft, path)
}

export const writeJson = (path: string, value: unknown): void =>
  write(path, `${JSON.stringify(value, null, 2)}\n`)

export const closed = (path: string): string => {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  chmodSync(path, 0o700)
  return path
}

/**
 * Creates the TLS key and certificate, once. The certificate is written last, so its presence shows
 * that both exist.
 */
export async function makeTls(home: string, name: string, nowMs = Date.now()): Promise<void> {
  if (existsSync(join(home, 'tls.crt'))) return
  const key = makeTlsKey()
  const certificate = await makeCertificate({ key, name, nowMs })
  write(join(home, 'tls.key'), key)
  write(join(home, 'tls.crt'), certificate)
}

/** Creates a node's keys, once. */
export async function makeIdentity(home: string, node: number): Promise<void> {
  await makeTls(home, `custody signer ${node}`)
  if (!existsSync(join(home, 'identity.pub'))) {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    write(join(home, 'identity.key'), privateKey.export({ type: 'pkcs8', format: 'pem' }) as string)
    write(join(home, 'identity.pub'), publicKey.export({ type: 'spki', format: 'pem' }) as string)
  }
}

/**
 * Generates an X25519 key pair, raw 32 bytes in hex; the secret half is never stored in the node's
 * data folder.
 */
export function makeRecovery(): { secret: string; public: string } {
  const { privateKey } = generateKeyPairSync('x25519')
  const jwk = privateKey.export({ format: 'jwk' })
  return {
    secret: Buffer.from(jwk.d!, 'base64url').toString('hex'),
    public: Buffer.from(
      createPublicKey(privateKey).export({ format: 'jwk' }).x!,
      'base64url',
    ).toString('hex'),
  }
}

/**
 * Returns the operator socket of a data folder; creates its folder if that is not the data folder.
 * @throws SetupError if the folder belongs to another user
 */
export function socketOf(home: string): string {
  const path = socketPathOf(home)
  try {
    ensureSocketFolder(path)
  } catch (error) {
    throw new SetupError(reasonOf(error))
  }
  return path
}
