import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { reasonOf } from '@custody/chains/reason'
import { SIGNERS_NEEDED } from '../app/readiness.ts'
import { SignerNodes } from '../signing/nodes.ts'
import { ok, problem, warning, type Finding } from './doctor-findings.ts'

const TIMEOUT_MS = 3000
/**
 * Requests live for 30 seconds and may be 5 seconds early: a clock that is further off refuses some
 * of them.
 */
const CLOCK_OFF_S = 5

/** What a node's `/status` may say; of an earlier version some of it is missing. */
interface Status {
  ready?: unknown
  mode?: unknown
  clock?: unknown
  clock_doubted?: unknown
  version?: unknown
  peers?: unknown
}
/**
 * `offS`: by how many seconds the node's clock is off, positive where it is ahead; null where it
 * does not say its time.
 */
interface Asked {
  node: number
  status: Status | null
  reason: string
  offS: number | null
}

export interface NodesExpected {
  mode: string
  version: string
  /** Milliseconds since the Unix Epoch. */ clock: () => number
}

/**
 * Asks each signer node for its status: whether it can sign, its version, its clock, and which
 * other nodes it reaches.
 * @param folder the platform's folder with tls.key, tls.crt and peers.json
 * @returns nothing where the folder is not set up
 */
export async function diagnoseNodes(
  folder: string,
  { mode, version, clock }: NodesExpected,
): Promise<Finding[]> {
  if (!existsSync(join(folder, 'peers.json'))) return []
  const signers = new SignerNodes(folder, clock)
  try {
    const asked = await Promise.all(
      signers.peers.map(async ({ node }): Promise<Asked> => {
        const from = clock()
        try {
          const status = await signers.call<Status>(node, 'GET', '/status', undefined, TIMEOUT_MS)
          // In whole seconds, somewhere between question and answer.
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
    return [...quorum(asked), ...asked.flatMap((each) => ofNode(each, mode, version))]
  } finally {
    signers.close()
  }
}

/**
 * Seconds that a clock of whole seconds is certainly off, read between two moments of this
 * machine's.
 */
function offBy(clockS: number, fromMs: number, toMs: number): number {
  if (clockS * 1000 > toMs) return Math.ceil((clockS * 1000 - toMs) / 1000)
  return (clockS + 1) * 1000 < fromMs ? -Math.ceil((fromMs - (clockS + 1) * 1000) / 1000) : 0
}

function quorum(asked: readonly Asked[]): Finding[] {
  const able = asked.filter(({ status }) => status?.ready === true).length
  const counted = `${able} of ${asked.length} signer nodes can sign`
  if (able < SIGNERS_NEEDED) {
    return [
      problem(
        'signers',
        `${counted}, ${SIGNERS_NEEDED} are required: transfers are accepted and wait`,
        'start the nodes that are listed below',
      ),
    ]
  }
  if (able < asked.length)
    return [
      warning(
        'signers',
        counted,
        'if one more stops, signing stops: repair the node that is listed below',
      ),
    ]
  return [ok('signers', counted)]
}

function ofNode({ node, status, reason, offS }: Asked, mode: string, version: string): Finding[] {
  const name = `signer ${node}`
  // The quorum is judged once, for all nodes.
  if (!status) {
    return [
      warning(
        'signers',
        `${name}: ${reason}`,
        'start it on its host, and check that the platform reaches the host and port in peers.json (docs/production/several-hosts.md)',
      ),
    ]
  }
  const found: Finding[] = []
  if (status.ready !== true) {
    found.push(
      warning(
        'signers',
        `${name} waits to be restored`,
        'run npx custody signer restore on its host',
      ),
    )
  }
  if (status.mode !== mode) {
    found.push(
      problem(
        'signers',
        `${name} was set up for ${String(status.mode)}, the platform runs on ${mode}`,
        'correct CUSTODY_NETWORK, or CUSTODY_SIGNERS',
      ),
    )
  }
  // Such a clock stands still, so how far it is off says nothing.
  if (status.clock_doubted === true) {
    found.push(
      warning(
        'signers',
        `the clock of ${name} has jumped ahead, as after a long suspension`,
        'the node queries its peers at its next request; if their time differs, it signs nothing: synchronise the clocks (NTP)',
      ),
    )
  } else if (offS === null || Math.abs(offS) > CLOCK_OFF_S) {
    const message =
      offS === null
        ? `${name} does not report its time`
        : `the clock of ${name} is ${Math.abs(offS)} s ${offS > 0 ? 'ahead of' : 'behind'} this machine's`
    found.push(
      problem(
        'signers',
        message,
        'synchronise the clocks of both hosts (NTP): requests are valid for 30 seconds',
      ),
    )
  }
  if (status.version !== version) {
    const own =
      typeof status.version === 'string' ? `version ${status.version}` : 'an earlier version'
    found.push(
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
    found.push(
      warning(
        'signers',
        `${name} does not reach signer ${apart.join(' and ')}`,
        'check the network between their hosts: two nodes sign together',
      ),
    )
  }
  return found
}
