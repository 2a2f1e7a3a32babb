import { createPublicKey } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { NetworkMode } from '@custody/chains/mode'
import { pinOf } from '@custody/request-auth/pinned'
import { z } from 'zod'
import { networkMode } from '@custody/request-auth/bodies'
import { fingerprintOf } from '../fingerprints.ts'
import { SetupError } from './files.ts'

// The files that operators copy between hosts contain public configurations only. Each states its kind,
// so that it cannot be mistaken for another one, and its mode.

const half = z.strictObject({
  kind: z.literal('custody signer node'),
  version: z.literal(1),
  mode: networkMode,
  node: z.int().min(1).max(3),
  host: z.string().min(1),
  port: z.int().min(1).max(65_535),
  certificate: z.string(),
  identity: z.string(),
})
const platformHalf = z.strictObject({
  kind: z.literal('custody platform'),
  version: z.literal(1),
  mode: networkMode,
  certificate: z.string(),
})
const recoveryHalf = z.strictObject({
  kind: z.literal('custody recovery key'),
  version: z.literal(1),
  node: z.int().min(1).max(3),
  public: z.string().regex(/^[0-9a-f]{64}$/),
})
export type NodePublicConfig = z.infer<typeof half>
export type PlatformPublicConfig = z.infer<typeof platformHalf>
export type RecoveryPublicConfig = z.infer<typeof recoveryHalf>

const KINDS = {
  'custody signer node': half,
  'custody platform': platformHalf,
  'custody recovery key': recoveryHalf,
}
type Kind = keyof typeof KINDS

const nameOf = (value: { kind?: unknown; node?: unknown }): string =>
  value.kind === 'custody signer node'
    ? `the public half of signer node ${String(value.node)}`
    : value.kind === 'custody platform'
      ? 'the public half of the platform'
      : value.kind === 'custody recovery key'
        ? `the public recovery key of signer node ${String(value.node)}`
        : 'not a file of the set-up'

const isReadable = ({
  certificate,
  identity,
}: {
  certificate: string
  identity?: string
}): boolean => {
  try {
    return (
      pinOf(certificate) !== '' &&
      (identity === undefined || createPublicKey(identity).asymmetricKeyType === 'ed25519')
    )
  } catch {
    return false
  }
}

/**
 * Reads a public configuration.
 * @throws SetupError that names option and file, and states what the file is instead
 */
function readHalf<K extends Kind>(
  option: string,
  file: string,
  kind: K,
): z.infer<(typeof KINDS)[K]> {
  const name = `${option}: ${file}`
  if (!existsSync(file)) throw new SetupError(`${name} does not exist`)
  const text = readFileSync(file, 'utf8')
  if (/PRIVATE KEY|"secret"/.test(text)) {
    throw new SetupError(
      `${name} contains a secret: transfer only files with a public half, and move this file back to its host`,
    )
  }
  let value: { kind?: unknown }
  try {
    value = JSON.parse(text) as { kind?: unknown }
  } catch {
    throw new SetupError(`${name} is not JSON: it may have been truncated in transit`)
  }
  const parsed = KINDS[kind].safeParse(value)
  if (parsed.success && (!('certificate' in parsed.data) || isReadable(parsed.data)))
    return parsed.data as z.infer<(typeof KINDS)[K]>
  if (value?.kind === kind) throw new SetupError(`${name} is damaged: transfer it again`)
  throw new SetupError(`${name} is ${nameOf(value ?? {})}, which is not allowed for this option`)
}

const sameMode = (option: string, file: string, theirs: NetworkMode, ours: NetworkMode): void => {
  if (theirs !== ours)
    throw new SetupError(
      `${option}: ${file} was made with --mode ${theirs}, this home with --mode ${ours}`,
    )
}

/**
 * Reads the public configurations of these nodes, each once.
 * @throws SetupError that names the file that is wrong, missing or swapped
 */
export function readNodes(
  files: readonly string[],
  wanted: readonly number[],
  ours: NetworkMode,
  own?: NodePublicConfig,
): NodePublicConfig[] {
  const nodes = files.map((file) => {
    const each = readHalf('--peers', file, 'custody signer node')
    sameMode('--peers', file, each.mode, ours)
    if (own && each.node === own.node) {
      throw new SetupError(
        `--peers: ${file} is ${nameOf(each)}, this node itself; the files of nodes ${wanted.join(' and ')} are required`,
      )
    }
    return { file, each }
  })
  for (const node of wanted) {
    const match = nodes.filter(({ each }) => each.node === node)
    if (match.length === 0)
      throw new SetupError(`--peers: the public half of signer node ${node} is missing`)
    const names = match.map(({ file }) => basename(file)).join(' and ')
    if (match.length > 1)
      throw new SetupError(`--peers: ${names} both belong to signer node ${node}`)
  }
  const all = [...nodes.map(({ each }) => each), ...(own ? [own] : [])]
  const pins = new Set(all.map(({ certificate }) => pinOf(certificate)))
  if (pins.size !== all.length)
    throw new SetupError(
      '--peers: two nodes have the same TLS key, so one home is a copy of another; create the home of each node separately',
    )
  return wanted.map((node) => nodes.find(({ each }) => each.node === node)!.each)
}

export function readPlatform(file: string, ours: NetworkMode): PlatformPublicConfig {
  const each = readHalf('--platform', file, 'custody platform')
  sameMode('--platform', file, each.mode, ours)
  return each
}

export function readRecovery(file: string, node: number): RecoveryPublicConfig {
  const each = readHalf('--recovery', file, 'custody recovery key')
  if (each.node !== node)
    throw new SetupError(
      `--recovery: ${file} belongs to signer node ${each.node}, not to node ${node}`,
    )
  return each
}

/** Returns one line for each fingerprint, to be compared over another channel. */
export function printLines(
  nodes: readonly NodePublicConfig[],
  platform?: { certificate: string },
): string[] {
  return [
    ...[...nodes]
      .sort((a, b) => a.node - b.node)
      .map(
        (each) =>
          `signer node ${each.node}   ${fingerprintOf(each.node, each)}   ${each.host}:${each.port}`,
      ),
    ...(platform ? [`platform        ${fingerprintOf('platform', platform)}`] : []),
  ]
}

/** Returns a data folder's own public configuration, which its first call created. */
export function ownPublicConfig(home: string): NodePublicConfig | null {
  const file = join(home, 'half.json')
  return existsSync(file) ? half.parse(JSON.parse(readFileSync(file, 'utf8'))) : null
}
