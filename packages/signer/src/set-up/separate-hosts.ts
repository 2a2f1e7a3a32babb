import type { KekSettings } from '@custody/key-encryption'
import { byMode, type NetworkMode, hasRealCoins } from '@custody/chains/mode'
import { existsSync, readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import type { ConfigFile } from '../config.ts'
import { keyFileOf, createDataDirKey } from '../kek/data-dir.ts'
import {
  closed,
  makeIdentity,
  makeRecovery,
  SetupError,
  socketOf,
  BUDGET_FEE_CAPS,
  TIMEOUTS,
  write,
  writeJson,
} from './files.ts'
import {
  ownPublicConfig,
  printLines,
  readNodes,
  readPlatform,
  readRecovery,
  type NodePublicConfig,
  type PlatformPublicConfig,
} from './public-config-files.ts'
import { CHECK, COMPARE, pinned, type SetupResult } from './platform.ts'

/**
 * Nodes and platform on separate hosts. Each is set up by two calls: the first creates the keys and
 * a public configuration, which is copied to the others; the second reads the others' public
 * configurations and writes the configuration. Nothing else is shared.
 */
export interface SeparateHostOptions {
  home: string
  mode: NetworkMode
  node?: number
  /** Host name or address at which the others connect to it. */ host?: string
  /** Address on which it listens, if different. */ listen?: string
  port?: number
  peers?: readonly string[]
  platform?: string
  recovery?: string
  /** Provider that wraps the data folder's keys; absent: a passphrase. */ kek?: KekSettings
  env?: NodeJS.ProcessEnv
}

/** Returns the default provider: a passphrase. */
export function passphraseOf(env: NodeJS.ProcessEnv): KekSettings {
  if (!env['CUSTODY_SIGNER_PASSPHRASE_FILE']) {
    throw new SetupError(
      'a node on its own host requires --kek PROVIDER, or a passphrase: set CUSTODY_SIGNER_PASSPHRASE_FILE to a file or descriptor (such as /dev/fd/3)',
    )
  }
  return { kind: 'passphrase' }
}

/** The second call does not need to repeat the provider of the first call. */
async function ensureHomeKey(
  { home, mode, kek, env = process.env }: SeparateHostOptions,
  node: number,
): Promise<void> {
  if (kek || !existsSync(keyFileOf(home)))
    await createDataDirKey(home, { node, mode }, kek ?? passphraseOf(env), env)
}

/**
 * Sets up a node, on its own host.
 * @throws SetupError
 */
export async function setupNode(o: SeparateHostOptions): Promise<SetupResult> {
  const { home, node, mode } = o
  if (node === undefined || ![1, 2, 3].includes(node)) {
    throw new SetupError(
      `with mode ${mode}, nodes are set up one at a time: --node 1, 2 or 3, on its own host`,
    )
  }
  for (const other of [1, 2, 3]) {
    if (!existsSync(join(home, `node-${other}`))) continue
    throw new SetupError(
      'This home is shared by several nodes; each node requires its own home and host',
    )
  }
  if (existsSync(join(home, 'kek')))
    throw new SetupError(
      'A plain-file key-encryption key is allowed for three nodes on one machine only',
    )
  if (existsSync(join(home, 'config.json')))
    throw new SetupError(`${home} is already set up; to write config.json again, remove it first`)
  const existing = ownPublicConfig(home)
  if (existing && (existing.node !== node || existing.mode !== mode)) {
    throw new SetupError(`${home} belongs to node ${existing.node}, --mode ${existing.mode}`)
  }
  const moved =
    existing !== null &&
    ((o.host ?? existing.host) !== existing.host || (o.port ?? existing.port) !== existing.port)
  if (o.peers === undefined) return firstOf(o, node)
  if (!existing)
    throw new SetupError(
      `${home} has no keys yet: run this without --peers first, and transfer its public half`,
    )
  if (moved) {
    throw new SetupError(
      `the other nodes have the address ${existing.host}:${existing.port}: to change it, run this without --peers and transfer the new public half`,
    )
  }
  const others = [1, 2, 3].filter((each) => each !== node)
  const { peers, platform, recovery } = readOptions(o, existing, others)
  await ensureHomeKey(o, node)
  const config: ConfigFile = {
    version: 1,
    node,
    mode,
    host: o.listen ?? existing.host,
    port: existing.port,
    socket: socketOf(home),
    recovery_public_key: recovery,
    kek: { kind: 'wrapped' },
    peers: peers.map(pinned),
    platform_certificate: platform.certificate,
    pool: { secp256k1: 2, ed25519: 2 },
    budget_fee_caps: byMode(mode, BUDGET_FEE_CAPS),
    timeouts_ms: TIMEOUTS,
  }
  writeJson(join(home, 'config.json'), config)
  return {
    lines: [
      `${join(home, 'config.json')} is written. ${COMPARE}`,
      ...printLines([existing, ...peers], platform),
      CHECK,
    ],
  }
}

/**
 * First call: creates the keys, once, and the public configuration with the address for the others.
 */
async function firstOf(o: SeparateHostOptions, node: number): Promise<SetupResult> {
  const { home, mode, host = '127.0.0.1', port, listen } = o
  if (port === undefined) throw new SetupError("--port: must be this node's own port")
  for (const [name, value] of [
    ['--host', host],
    ['--listen', listen],
  ] as const) {
    const isAddress =
      value === undefined || isIP(value) !== 0 || /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(value)
    if (!isAddress) throw new SetupError(`${name}: ${value} is not an address`)
  }
  if (host === '0.0.0.0' || host === '::')
    throw new SetupError(
      `--host: ${host} is not an address that other hosts can reach; use it in --listen only`,
    )
  closed(home)
  await ensureHomeKey(o, node)
  await makeIdentity(home, node)
  const half: NodePublicConfig = {
    kind: 'custody signer node',
    version: 1,
    mode,
    node,
    host,
    port,
    certificate: readFileSync(join(home, 'tls.crt'), 'utf8'),
    identity: readFileSync(join(home, 'identity.pub'), 'utf8'),
  }
  writeJson(join(home, 'half.json'), half)
  const lines = [
    ...printLines([half]),
    'Transfer the public half to the two other nodes and to the platform; their operators compare the fingerprint with you.',
  ]
  if (host === '127.0.0.1' && hasRealCoins(mode))
    lines.push('The other nodes would connect to 127.0.0.1, which is their own host: set --host')
  return { half, lines }
}

/**
 * Returns the public configurations that were given to the second call: one file for each party, or
 * one file with all of them, as in earlier versions.
 */
function readOptions(
  o: SeparateHostOptions,
  own: NodePublicConfig,
  others: readonly number[],
): { peers: NodePublicConfig[]; platform: PlatformPublicConfig; recovery: string } {
  const [only] = o.peers ?? []
  const whole = o.peers?.length === 1 && existsSync(only as string) ? wholeOf(only as string) : null
  if (whole) {
    if (!/^[0-9a-f]{64}$/.test(whole.recovery_public_key ?? '')) {
      throw new SetupError(
        '--peers: FILE must contain recovery_public_key: 32 bytes in hex, generated offline by its holder',
      )
    }
    const peers = whole.peers.map((each): NodePublicConfig => ({
      kind: 'custody signer node',
      version: 1,
      mode: o.mode,
      ...pinned(each),
    }))
    const isComplete = others.every((node) => peers.some((each) => each.node === node))
    if (!isComplete)
      throw new SetupError(`--peers: FILE must contain the nodes ${others.join(' and ')}`)
    return {
      peers,
      platform: {
        kind: 'custody platform',
        version: 1,
        mode: o.mode,
        certificate: whole.platform_certificate,
      },
      recovery: whole.recovery_public_key,
    }
  }
  const peers = readNodes(o.peers ?? [], others, o.mode, own)
  if (o.platform === undefined)
    throw new SetupError('--platform: must be the file with the public half of the platform')
  if (o.recovery === undefined)
    throw new SetupError('--recovery: must be the file with the public recovery key of this node')
  return {
    peers,
    platform: readPlatform(o.platform, o.mode),
    recovery: readRecovery(o.recovery, own.node).public,
  }
}

interface Whole {
  peers: NodePublicConfig[]
  platform_certificate: string
  recovery_public_key: string
}
function wholeOf(file: string): Whole | null {
  try {
    const value = JSON.parse(readFileSync(file, 'utf8')) as Whole
    return Array.isArray(value.peers) ? value : null
  } catch {
    return null
  }
}

/**
 * Generates a node's recovery key pair on the host of its holder: FILE.secret.json stays there,
 * FILE.pub.json is copied to the node.
 */
export function setupRecovery(node: number | undefined, out: string): SetupResult {
  if (node === undefined || ![1, 2, 3].includes(node))
    throw new SetupError('--node: must be the number of the node of the recovery key: 1, 2 or 3')
  const [secretFile, publicFile] = [`${out}.secret.json`, `${out}.pub.json`]
  const there = [secretFile, publicFile].find((file) => existsSync(file))
  if (there !== undefined)
    throw new SetupError(
      `${there} already exists and is never overwritten; choose another name with --out`,
    )
  const made = makeRecovery()
  const warning = `With this file and a backup of the node,
      the node's shares can be decrypted. Keep it offline, apart from the backups.`
  write(
    secretFile,
    `${JSON.stringify({ warning, node, secret: made.secret, public: made.public })}\n`,
  )
  writeJson(publicFile, { kind: 'custody recovery key', version: 1, node, public: made.public })
  return {
    lines: [
      `${secretFile} must stay offline with its holder; transfer ${publicFile} to signer node ${node}.`,
    ],
  }
}
