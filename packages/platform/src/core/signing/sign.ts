import { createHash } from 'node:crypto'
import type { SignedRequest } from '@custody/request-auth'
import type { SignatureBytes, TronAction, UnsignedTransaction } from '@custody/chains'
import type { OrderPolicy } from './approvals.ts'
import type { Signing } from './signing.ts'
import { NodeRefused, NodeUnavailable } from './nodes.ts'

/** A caller's signed request with the nodes' receipts that extend its validity. */
interface Signed {
  request: SignedRequest
  receipts?: unknown[]
}

/** A signed transaction of a payment that is cancelled. `signed`: the bytes that are broadcast, hex. */
interface Replaced {
  unsigned: UnsignedTransaction
  signed: string
}

/** One of the transactions that a fuel transaction pays for, and its maximum cost. */
interface FuelPart {
  for: Purpose
  gas: string
  max_fee_per_gas: string
  l1_fee?: string
}

export type Purpose =
  | ({ kind: 'pay'; speed_up?: Signed } & Signed)
  | ({ kind: 'cancel'; of: Purpose; replaces?: Replaced[] } & Signed)
  | { kind: 'sweep'; sub_account: number; asset: string; address_index: number }
  | ({ kind: 'fuel'; beside?: FuelPart[] } & FuelPart)
  | { kind: 'forward'; id: string; rule: SignedRequest; receipts?: unknown[] }
  | ({ kind: 'stake'; step: TronAction['kind'] } & Signed)
  | { kind: 'lend'; step: 'delegate' | 'undelegate'; for: Purpose }
  | { kind: 'tank-stake' | 'drain'; order: string }

export interface SignOrder {
  workspace: string
  purpose: Purpose
  unsigned: UnsignedTransaction
  policy?: OrderPolicy | undefined
}
/** Account whose nonce the transaction uses; null if the chain has no nonces. */
type Account = string | null

export type SignOutcome =
  | { kind: 'signed'; signatures: SignatureBytes[]; nodes: [number, number] }
  | NotSigned

/** Result of signing a run: the signatures of each transaction. */
export type RunOutcome =
  | { kind: 'signed'; signatures: SignatureBytes[][]; nodes: [number, number] }
  | NotSigned

type NotSigned =
  /**
   * Every pair of nodes that responded refused, because the nodes' rules do not allow the
   * transaction.
   */
  | {
      kind: 'refused'
      code: string
      message: string
      body: Record<string, unknown>
      isUntouched: boolean
    }
  /**
   * No pair of nodes could sign now. `isUntouched`: no node that was called has started to sign.
   * `isUnrecorded`: all nodes miss a nonce before it and have recorded no later one, so no signature
   * of it exists. `at`: index of the transaction of a run whose refusal is temporary;
   * `code`: of the last node that refused temporarily; `freesAt`: times of all nodes that stated a
   * full window.
   */
  | {
      kind: 'unavailable'
      message: string
      isUntouched: boolean
      isUnrecorded: boolean
      at?: unknown
      code?: string | undefined
      freesAt?: readonly (number | null)[]
    }

/**
 * Timeout of a signing call in milliseconds. A pair needs about 30 ms per signature; an
 * unresponsive node must not delay a transfer for long.
 */
const SIGN_TIMEOUT_MS = 6000
const SIGN_TIMEOUT_PER_INPUT_MS = 150
/**
 * Error codes of temporary refusals: a busy or restoring node, an earlier nonce that is still being
 * signed, a 24-hour budget; a window of the workspace's policy that is full, a stop, nodes that do
 * not have the same policy yet, or an enrolment or order that people have not approved yet.
 */
const TRANSIENT = new Set([
  'TOO_BUSY',
  'RESTORING',
  'HEAD_WENT_BACK',
  'BANNED',
  'NONCE_GAP',
  'BUDGET',
  'POLICY_WINDOW',
  'POLICY_STOPPED',
  'POLICY_BEHIND',
  'ENROLMENT_APPROVAL',
  'ORDER_APPROVAL',
])
const STATUS_TIMEOUT_MS = 1500
/** Time in milliseconds for which a pair with a node that failed recently is tried last. */
const PENALTY_MS = 30_000

/**
 * Returns the pairs of nodes in the order in which they are tried. Each of the first three has another
 * first node, which states why it does not sign.
 * @param account account whose nonces the nodes check; it stays with one pair while that pair
 *   responds. A node that did not see the previous nonce must query its peers for it, which costs
 *   as much as the signature
 */
function pairs(services: Signing, account: string | null): [number, number][] {
  const nodes = services.signers.peers.map(({ node }) => node)
  const cost = (node: number) =>
    services.signers.isPenalised(node, services.environment.now()) ? 1 : 0
  // The first pair is chosen at random or by account, to share the load; failed nodes come last.
  const [drawn] = (
    account === null ? services.environment.bytes(1) : createHash('sha256').update(account).digest()
  ) as Uint8Array & [number]
  if (drawn % 2 === 1) nodes.reverse()
  const offset = (drawn >> 1) % nodes.length
  const turned = [...nodes.slice(offset), ...nodes.slice(0, offset)]
  const inTurn = turned.map((node, at): [number, number] => [
    node,
    turned[(at + 1) % turned.length] as number,
  ])
  const all = [...inTurn, ...inTurn.map(([first, second]): [number, number] => [second, first])]
  return all.sort((a, b) => cost(a[0]) + cost(a[1]) - cost(b[0]) - cost(b[1]))
}

interface WireAnswer {
  signatures: { signature: string; recovery_id: number | null }[]
}
const read = ({ signatures }: WireAnswer): SignatureBytes[] =>
  signatures.map((each) => ({
    signature: new Uint8Array(Buffer.from(each.signature, 'hex')),
    recoveryId: each.recovery_id,
  }))

/** Requests the signatures of one unsigned transaction from pairs of nodes until one pair signs. */
export async function signOrder(
  services: Signing,
  order: SignOrder,
  account: Account,
): Promise<SignOutcome> {
  const answer = await callPairs<WireAnswer>(
    services,
    '/sign',
    order,
    order.unsigned.inputs.length,
    account,
  )
  if (answer.kind !== 'answered') return answer
  services.metrics.signatures.labels('signed').inc()
  return { kind: 'signed', nodes: answer.nodes, signatures: read(answer.body) }
}

/**
 * Maximum number of payments of one account that the nodes sign in one session, with consecutive
 * nonces. The nodes reject longer runs.
 */
export const RUN_MAX = 16

/**
 * Like {@link signOrder} for a run: all transactions are signed, or none. If refused, `at` is the
 * index of the transaction at fault.
 */
export async function signRun(
  services: Signing,
  workspace: string,
  run: readonly Omit<SignOrder, 'workspace'>[],
  account: Account,
): Promise<RunOutcome> {
  const answer = await callPairs<{ run: WireAnswer[] }>(
    services,
    '/sign-run',
    { workspace, run },
    run.length,
    account,
  )
  if (answer.kind !== 'answered') return answer
  services.metrics.signatures.labels('signed').inc(run.length)
  return { kind: 'signed', nodes: answer.nodes, signatures: answer.body.run.map(read) }
}

/**
 * Queries the status of both nodes of a pair after a timeout, because either the first node or its
 * partner may be unreachable.
 * @returns the nodes at fault
 */
async function silentOf({ signers }: Signing, first: number, second: number): Promise<number[]> {
  const responses = await Promise.all(
    [first, second].map((node) =>
      signers.call(node, 'GET', '/status', undefined, STATUS_TIMEOUT_MS).then(
        () => true,
        () => false,
      ),
    ),
  )
  const gone = [first, second].filter((_, at) => !responses[at])
  return gone.length > 0 ? gone : [first]
}

type PairResult<T> = { kind: 'answered'; nodes: [number, number]; body: T } | NotSigned

/**
 * Calls pairs of nodes until one responds.
 * @param inputs number of requested signatures
 */
async function callPairs<T>(
  services: Signing,
  path: string,
  body: object,
  inputs: number,
  account: Account,
): Promise<PairResult<T>> {
  const began = services.environment.now()
  const answer = await callEachPair<T>(services, path, body, inputs, account)
  const outcome = answer.kind === 'answered' ? 'signed' : answer.kind
  services.metrics.signingSeconds
    .labels(outcome)
    .observe(Math.max(0, services.environment.now() - began) / 1000)
  if (outcome !== 'signed') services.metrics.signatures.labels(outcome).inc()
  return answer
}

/** Calls each pair of nodes at most once, and at most four pairs, until one signs. */
async function callEachPair<T>(
  services: Signing,
  path: string,
  body: object,
  inputs: number,
  account: Account,
): Promise<PairResult<T>> {
  let refused: NodeRefused | null = null
  let unavailable = 'no signer node is configured'
  const refusedBy = new Set<number>()
  const failedPairs = new Set<string>()
  let calls = 0
  let isUntouched = true
  const held: Held = { at: undefined, code: undefined, freesAt: [], unrecorded: new Set() }
  // Each timeout takes seconds, so a node that has just caused one is called again only when no
  // pair without it is left.
  const away = new Set<number>()
  const costs = (pair: [number, number]) => pair.filter((node) => away.has(node)).length
  const untried = pairs(services, account)
  while (untried.length > 0) {
    untried.sort((a, b) => costs(a) - costs(b))
    const [first, second] = untried.shift() as [number, number]
    const name = [first, second].sort().join()
    if (refusedBy.has(first) || refusedBy.has(second) || failedPairs.has(name) || calls >= 4)
      continue
    calls++
    try {
      const answer = await services.signers.call<T>(
        first,
        'POST',
        path,
        { ...body, partner: second },
        SIGN_TIMEOUT_MS + SIGN_TIMEOUT_PER_INPUT_MS * inputs,
      )
      return { kind: 'answered', nodes: [first, second], body: answer }
    } catch (error) {
      if (!(error instanceof NodeRefused) || error.body['entered'] === true) isUntouched = false
      if (error instanceof NodeRefused && TRANSIENT.has(error.code)) {
        unavailable = `signer ${first}: ${error.code}: ${error.message}`
        note(held, first, error)
        failedPairs.add(name)
      } else if (error instanceof NodeRefused) {
        refused = moreCertain(refused, error)
        // The refusal may be the partner's, passed on by the first node, which might sign with
        // another partner.
        refusedBy.add(typeof error.body['node'] === 'number' ? error.body['node'] : first)
      } else if (error instanceof NodeUnavailable) {
        unavailable = error.message
        failedPairs.add(name)
        for (const silent of error.code === null
          ? await silentOf(services, first, second)
          : [second]) {
          away.add(silent)
          services.signers.penalise(silent, services.environment.now() + PENALTY_MS)
        }
      } else throw error
    }
  }
  // One node alone may be wrong; a refusal by two nodes is final.
  if (refused && refusedBy.size >= 2) return refusedResult(refused, isUntouched)
  return {
    kind: 'unavailable',
    isUntouched,
    ...stated(held, services.signers.peers.length),
    message: refused
      ? `signer ${refused.node} rejects it (${refused.code}: ${refused.message}); no second node responded: ${unavailable}`
      : unavailable,
  }
}

/**
 * What temporary refusals state, as in {@link NotSigned}. `unrecorded`: the nodes that state so about
 * themselves.
 */
interface Held {
  at: unknown
  code: string | undefined
  freesAt: (number | null)[]
  unrecorded: Set<number>
}

function note(held: Held, node: number, error: NodeRefused): void {
  held.at = error.body['at']
  held.code = error.code
  held.freesAt.push(...freesAtOf(error))
  if (error.body['unrecorded'] === node) held.unrecorded.add(node)
}

const stated = ({ at, code, freesAt, unrecorded }: Held, nodes: number) => ({
  isUnrecorded: nodes > 0 && unrecorded.size === nodes,
  at,
  code,
  ...(freesAt.length > 0 ? { freesAt } : {}),
})

/** Returns when a node would sign that states a full window; empty: it states another reason. */
function freesAtOf({ code, body }: NodeRefused): (number | null)[] {
  if (code !== 'POLICY_WINDOW') return []
  const at = body['frees_at']
  return [typeof at === 'number' && Number.isFinite(at) ? at : null]
}

/**
 * Returns the refusal that is reported of two: if one node misses approvals and another one denies,
 * the denial is not certain yet.
 */
const moreCertain = (earlier: NodeRefused | null, later: NodeRefused): NodeRefused =>
  earlier?.code === 'POLICY_APPROVAL' ? earlier : later

/** Returns the result of a request that the nodes refused. */
const refusedResult = (
  { code, message, body }: NodeRefused,
  isUntouched: boolean,
): Extract<NotSigned, { kind: 'refused' }> => ({
  kind: 'refused',
  code,
  message,
  body,
  isUntouched,
})
