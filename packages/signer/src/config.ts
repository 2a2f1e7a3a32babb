import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { hasRealCoins } from '@custody/chains/mode'
import { networkMode } from '@custody/request-auth/bodies'
import { pinOf } from '@custody/request-auth/pinned'
import { z } from 'zod'

/**
 * Schema of config.json in a node's data folder. It pins the TLS keys (by a certificate of each)
 * and the identity keys; nothing is learned from the network.
 */
const peerSchema = z.strictObject({
  node: z.int().min(1).max(3),
  host: z.string(),
  port: z.int(),
  certificate: z.string(),
  identity: z.string(),
})
const configSchema = z.strictObject({
  version: z.literal(1),
  node: z.int().min(1).max(3),
  mode: networkMode,
  host: z.string(),
  port: z.int().min(1).max(65535),
  socket: z.string(),
  /** The operator's recovery public key for this node, hex. Backups are encrypted for it. */
  recovery_public_key: z.string(),
  /**
   * `wrapped`: keys.json states which provider wraps the data folder's keys. The other kinds are of
   * earlier versions, in which the provider's key encrypts the shares itself.
   */
  kek: z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('wrapped') }),
    z.strictObject({ kind: z.literal('file'), path: z.string() }),
    z.strictObject({ kind: z.literal('passphrase'), salt: z.string().regex(/^[0-9a-f]{32,}$/) }),
  ]),
  peers: z.array(peerSchema),
  /** Certificate of the only platform that this node serves; its key is pinned. */
  platform_certificate: z.string(),
  pool: z.strictObject({ secp256k1: z.int().min(0).max(100), ed25519: z.int().min(0).max(100) }),
  /**
   * Limit of the fees for fuel and sweeps of one workspace on one network within 24 hours, in
   * multiples of that network's fee cap.
   */
  budget_fee_caps: z.int().min(1),
  timeouts_ms: z.strictObject({
    round: z.int().min(100),
    keygen: z.int().min(1000),
    sign: z.int().min(1000),
  }),
})
export type ConfigFile = z.infer<typeof configSchema>

export interface Peer {
  node: number
  host: string
  port: number
  certificate: string
  pin: string
  identity: KeyObject
}
export interface Config extends Omit<ConfigFile, 'peers'> {
  home: string
  tlsKey: string
  tlsCertificate: string
  identity: KeyObject
  identityPublic: KeyObject
  peerList: Peer[]
  platformPin: string
}

export class ConfigError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ConfigError'
  }
}

export function loadConfig(home: string): Config {
  if ((statSync(home).mode & 0o077) !== 0)
    throw new ConfigError(`The home ${home} must be inaccessible to other users: run chmod 700`)
  const parsed = configSchema.safeParse(JSON.parse(readFileSync(join(home, 'config.json'), 'utf8')))
  if (!parsed.success)
    throw new ConfigError(`config.json is not valid: ${z.prettifyError(parsed.error)}`)
  const file = parsed.data
  const others = [1, 2, 3].filter((n) => n !== file.node)
  if (file.peers.length !== 2 || !others.every((n) => file.peers.some((p) => p.node === n))) {
    throw new ConfigError(`config.json must name the peers ${others.join(' and ')}`)
  }
  if (file.kek.kind === 'file' && hasRealCoins(file.mode)) {
    throw new ConfigError(
      'A plain-file key-encryption key is not allowed with mode mainnet; use a passphrase',
    )
  }
  const identity = createPrivateKey(readFileSync(join(home, 'identity.key'), 'utf8'))
  const peerList = file.peers.map((p) => ({
    ...p,
    pin: pinOf(p.certificate),
    identity: createPublicKey(p.identity),
  }))
  const platformPin = pinOf(file.platform_certificate)
  const pins = new Set([platformPin, ...peerList.map(({ pin }) => pin)])
  if (pins.size !== 3)
    throw new ConfigError('The TLS keys of the platform and the peers must all differ')
  return {
    ...file,
    home,
    tlsKey: readFileSync(join(home, 'tls.key'), 'utf8'),
    tlsCertificate: readFileSync(join(home, 'tls.crt'), 'utf8'),
    identity,
    identityPublic: createPublicKey(identity),
    peerList,
    platformPin,
  }
}
