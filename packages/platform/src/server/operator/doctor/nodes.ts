import { hasLocalChains, type NetworkMode } from '@custody/chains/mode'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { reasonOf } from '@custody/chains/reason'
import { z } from 'zod'
import { SIGNERS_NEEDED } from '../../app/health/readiness.ts'
import { SignerNodes } from '../../../core/signing/nodes.ts'
import { ok, problem, warning, type Finding } from './findings.ts'

const TIMEOUT_MS = 3000
/**
 * Clock difference in seconds above which requests are rejected: a request is valid for 30 seconds
 * and may be 5 seconds early.
 */
const CLOCK_OFF_S = 5

/** Response of a node's `/status`; an earlier version may omit some fields. */
interface Status {
  ready?: unknown
  mode?: unknown
  clock?: unknown
  clock_doubted?: unknown
  version?: unknown
  peers?: unknown
  pool?: unknown
  key_queue?: unknown
  keys_not_in_backup?: unknown
  policies_unproven?: unknown
  heap_used_percent?: unknown
}
/**
 * Status of one node, with its clock. `offS`: difference of the node's clock in seconds, positive
 * if it is ahead; null if the node does not report its time.
 */
interface NodeStatus {
  node: number
  status: Status | null
  reason: string
  offS: number | null
}

export interface NodesExpected {
  mode: NetworkMode
  version: string
  /** Returns the time in milliseconds since the Unix Epoch. */ clock: () => number
}

/**
 * Reads the status of each signer node: whether it can sign, its version, its clock, and which
 * other nodes it reaches.
 * @param folder the platform's folder with tls.key, tls.crt and peers.json
 * @returns an empty list if the folder is not set up
 */
export async function diagnoseNodes(
  folder: string,
  { mode, version, clock }: NodesExpected,
): Promise<Finding[]> {
  if (!existsSync(join(folder, 'peers.json'))) return []
  const signers = new SignerNodes(folder, clock)
  try {
    const requests = await Promise.all(
      signers.peers.map(async ({ node }): Promise<NodeStatus> => {
        const from = clock()
        try {
          const status = await signers.call<Status>(node, 'GET', '/status', undefined, TIMEOUT_MS)
          // The node reports whole seconds, at some time between request and response.
          return {
            node,
            status,
            reason: '',
            offS: typeof status.clock === 'number' ? offBy(status.clock, from, clock()) : null,
          }
        } catch (error) {
          return {
            node,
            status: null,
            reason: reasonOf(error).replace(/^signer \d: /, ''),
            offS: null,
          }
        }
      }),
    )
    return [
      ...quorum(requests),
      ...requests.flatMap((each) => ofNode(each, mode, version)),
      ...requests.flatMap((each) => keyFindings(each, mode)),
      ...requests.flatMap(policyFindings),
      ...requests.flatMap(memoryFindings),
    ]
  } finally {
    signers.close()
  }
}

/**
 * Returns the minimum difference in seconds of a clock that reports whole seconds and was read
 * between two times of this machine's clock.
 */
function offBy(clockS: number, fromMs: number, toMs: number): number {
  if (clockS * 1000 > toMs) return Math.ceil((clockS * 1000 - toMs) / 1000)
  return (clockS + 1) * 1000 < fromMs ? -Math.ceil((fromMs - (clockS + 1) * 1000) / 1000) : 0
}

function quorum(requests: readonly NodeStatus[]): Finding[] {
  const able = requests.filter(({ status }) => status?.ready === true).length
  const counted = `${able} of ${requests.length} signer nodes can sign`
  if (able < SIGNERS_NEEDED) {
    return [
      problem(
        'signers',
        `${counted}, ${SIGNERS_NEEDED} are required: transfers are accepted and wait`,
        'start the nodes that are listed below',
      ),
    ]
  }
  if (able < requests.length)
    return [
      warning(
        'signers',
        counted,
        'if one more stops, signing stops: repair the node that is listed below',
      ),
    ]
  return [ok('signers', counted)]
}

function ofNode(
  { node, status, reason, offS }: NodeStatus,
  mode: NetworkMode,
  version: string,
): Finding[] {
  const name = `signer ${node}`
  // The quorum is evaluated once, for all nodes.
  if (!status) {
    return [
      warning(
        'signers',
        `${name}: ${reason}`,
        'start it on its host, and check that the platform reaches the host and port in peers.json (docs/production/several-hosts.md)',
      ),
    ]
  }
  const matches: Finding[] = []
  if (status.ready !== true) {
    matches.push(
      warning(
        'signers',
        `${name} has not been restored yet`,
        'run npx custody signer restore on its host',
      ),
    )
  }
  if (status.mode !== mode) {
    matches.push(
      problem(
        'signers',
        `${name} was set up for ${String(status.mode)}, the platform runs on ${mode}`,
        'correct CUSTODY_NETWORK or CUSTODY_SIGNERS, so that both have the same network',
      ),
    )
  }
  matches.push(...clockFindings(name, status, offS))
  if (status.version !== version) {
    const own =
      typeof status.version === 'string' ? `version ${status.version}` : 'an earlier version'
    matches.push(
      warning(
        'signers',
        `${name} runs ${own}, the platform ${version}`,
        'upgrade it (docs/production/upgrades.md)',
      ),
    )
  }
  const apart = (
    Array.isArray(status.peers)
      ? (status.peers as ({ node?: unknown; reachable?: unknown } | null)[])
      : []
  )
    .filter((peer) => peer?.reachable === false && peer.node !== node)
    .map((peer) => String(peer?.node))
  if (apart.length > 0) {
    matches.push(
      warning(
        'signers',
        `${name} cannot reach signer ${apart.join(' and ')}`,
        'check the network between their hosts, because two nodes must reach each other to sign',
      ),
    )
  }
  return matches
}

/** Returns the findings about a node's clock, which is `offS` seconds ahead of this machine's. */
function clockFindings(
  name: string,
  status: NonNullable<NodeStatus['status']>,
  offS: number | null,
): Finding[] {
  // The node has stopped this clock, so its difference has no meaning.
  if (status.clock_doubted === true) {
    return [
      warning(
        'signers',
        `the clock of ${name} has jumped ahead, as after a long suspension`,
        'the node queries its peers at its next request; if their time differs, it signs nothing: synchronise the clocks (NTP)',
      ),
    ]
  }
  if (offS === null || Math.abs(offS) > CLOCK_OFF_S) {
    const message =
      offS === null
        ? `${name} does not report its time`
        : `the clock of ${name} is ${Math.abs(offS)} s ${offS > 0 ? 'ahead of' : 'behind'} this machine's`
    return [
      problem(
        'signers',
        message,
        'synchronise the clocks of both hosts (NTP): requests are valid for 30 seconds',
      ),
    ]
  }
  return []
}

const keyQueueSchema = z.object({
  pool: z.object({ secp256k1: z.number(), ed25519: z.number() }),
  key_queue: z.object({
    waiting: z.number(),
    pool: z.object({ secp256k1: z.number(), ed25519: z.number() }),
  }),
})

/**
 * Returns the findings about the prepared keys of the node that assigns them, and about keys that
 * were generated after the node's last backup.
 */
export function keyFindings({ node, status }: NodeStatus, mode: NetworkMode): Finding[] {
  const name = `signer ${node}`
  const findings: Finding[] = []
  const queue = keyQueueSchema.safeParse(status)
  if (queue.success) {
    const { pool, key_queue: wanted } = queue.data
    const curves = (['secp256k1', 'ed25519'] as const).map(
      (curve) => `${pool[curve]} of ${wanted.pool[curve]} ${curve}`,
    )
    const message = `${name} has ${curves.join(' and ')} keys ready for new workspaces, and ${wanted.waiting} keys are waited for`
    const isEmpty =
      (pool.secp256k1 === 0 && wanted.pool.secp256k1 > 0) ||
      (pool.ed25519 === 0 && wanted.pool.ed25519 > 0)
    findings.push(
      isEmpty
        ? warning(
            'signers',
            message,
            'new workspaces wait while keys are generated, which needs all three nodes; a larger pool in config.json of the nodes shortens the wait (packages/signer/README.md)',
          )
        : ok('signers', message),
    )
  }
  const unsaved = status?.keys_not_in_backup
  if (!hasLocalChains(mode) && typeof unsaved === 'number' && unsaved > 0)
    findings.push(
      warning(
        'signers',
        `${name} has generated ${unsaved} keys since its last backup`,
        'run npx custody signer backup on its host',
      ),
    )
  return findings
}

/** Returns a finding for each node whose claims about policies another node ignores. */
export function policyFindings({ node, status }: NodeStatus): Finding[] {
  const unproven = z.array(z.number()).catch([]).parse(status?.policies_unproven)
  return unproven.map((peer) =>
    warning(
      'signers',
      `signer ${node} ignores the policies that signer ${peer} claims and does not send`,
      'compare the versions of both nodes; if they are the same, signer ' +
        `${peer} is faulty or hostile (docs/production/runbooks.md)`,
    ),
  )
}

/** Share of a node's heap in percent from which it must get more memory. */
const HEAP_MUCH = 50

/** Returns a finding about a node whose heap is half full: its index grows with each transfer. */
export function memoryFindings({ node, status }: NodeStatus): Finding[] {
  const used = status?.heap_used_percent
  if (typeof used !== 'number' || used < HEAP_MUCH) return []
  return [
    warning(
      'signers',
      `signer ${node} uses ${used} % of its heap; a node whose heap is full ends, and ends again after each start`,
      'give it a larger heap before that (NODE_OPTIONS=--max-old-space-size, docs/production/sizing.md#memory-of-a-node)',
    ),
  ]
}
