import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { NetworkMode } from '@custody/chains/mode'
import { closed, makeTls, SetupError, writeJson } from './files.ts'
import {
  printLines,
  readNodes,
  type NodePublicConfig,
  type PlatformPublicConfig,
} from './public-config-files.ts'

/**
 * Result of a call: a public configuration to be copied to other hosts, and lines for the operator.
 */
export interface SetupResult {
  half?: NodePublicConfig | PlatformPublicConfig
  lines: string[]
}

export const COMPARE =
  'Compare these with the other operators over another channel (telephone): each must have the same fingerprints.'
export const CHECK = 'When all are running: custody setup --check --home HOME'

export const pinned = ({ node, host, port, certificate, identity }: NodePublicConfig) => ({
  node,
  host,
  port,
  certificate,
  identity,
})

interface PlatformOptions {
  home: string
  mode: NetworkMode
  peers?: readonly string[]
}

/**
 * Creates the platform's client identity, by which nodes recognise it. All processes of the
 * platform use the same one.
 * @throws SetupError
 */
export async function setupPlatform({ home, mode, peers }: PlatformOptions): Promise<SetupResult> {
  if (existsSync(join(home, 'peers.json'))) {
    throw new SetupError(`${home} is already set up; to write peers.json again, remove it first`)
  }
  if (existsSync(join(home, 'identity.key'))) {
    throw new SetupError(`${home} is the home of a signer node; use another home for the platform`)
  }
  if (peers === undefined) {
    closed(home)
    await makeTls(home, 'custody platform')
    const half: PlatformPublicConfig = {
      kind: 'custody platform',
      version: 1,
      mode,
      certificate: readFileSync(join(home, 'tls.crt'), 'utf8'),
    }
    return {
      half,
      lines: [
        ...printLines([], half),
        'Transfer the public half to the three nodes; their operators compare the fingerprint with you.',
      ],
    }
  }
  if (!existsSync(join(home, 'tls.crt')))
    throw new SetupError(`${home} has no keys yet: run this without --peers first`)
  const nodes = readNodes(peers, [1, 2, 3], mode)
  writeJson(join(home, 'peers.json'), {
    version: 1,
    mode,
    nodes: nodes.map((each) => ({ ...pinned(each), url: `https://${each.host}:${each.port}` })),
  })
  const lines = printLines(nodes, { certificate: readFileSync(join(home, 'tls.crt'), 'utf8') })
  const written = `${join(home, 'peers.json')} is written: set CUSTODY_SIGNERS to its folder. ${COMPARE}`
  return { lines: [written, ...lines, CHECK] }
}
