import { createHash } from 'node:crypto'
import type { SignedRequest } from '@custody/request-auth'
import type {
  SignatureBytes,
  SignedTransaction,
  TronAction,
  UnsignedTransaction,
} from '@custody/chains'
import { z } from 'zod'
import type { OrderPolicy } from './approvals.ts'
import type { Signing } from './signing.ts'
import { NodeRefused, NodeUnavailable } from './nodes.ts'
import { withdrawOrders, type Withdrawn } from './withdraw.ts'

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
  | ({ kind: 'consolidate' } & Signed)
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
  | { kind: 'signed'; signed: SignedTransaction; nodes: [number, number] }
  | NotSigned

/** Result of signing a run: each signed transaction. */
export type RunOutcome =
  | { kind: 'signed'; signed: SignedTransaction[]; nodes: [number, number] }
  | NotSigned

/**
 * Returns a transaction with its signatures, which it verifies.
 * @throws if a signature is wrong
 */
export type Assemble = (
  unsigned: UnsignedTransaction,
  signatures: SignatureBytes[],
) => SignedTransaction

type NotSigned =
  /** Two nodes refused, because their rules do not allow the transaction. */
  | ({
      kind: 'refused'
      code: string
      message: string
      body: Record<string, unknown>
    } & Withdrawn)
  /**
   * No pair of nodes could sign now. `at`: index of the transaction of a run whose refusal is temporary;
   * `code`: of the last node that refused temporarily; `freesAt`: times of all nodes that stated a full
   * window.
   */
  | ({
      kind: 'unavailable'
      message: string
      at?: unknown
      code?: string | undefined
      freesAt?: readonly (number | null)[]
    } & Withdrawn)

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
/** Error codes about the platform's authorisation of the order, which say nothing about the partner. */
const OF_ORDER = new Set(['NOT_AUTHORISED', 'ORDER_STALE', 'ORDER_WITHDRAWN'])
/** Number of nodes that must refuse by themselves. */
const FINAL = 2
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

const signaturesShape = z.array(
  z.object({
    signature: z
      .string()
      .regex(/^[0-9a-f]{128}$/)
      .transform((text) => new Uint8Array(Buffer.from(text, 'hex'))),
    recovery_id: z.int().min(0).max(3).nullable(),
  }),
)
const answerShape = z.object({ signatures: signaturesShape })
const runShape = z.array(answerShape)
const read = (answer: z.output<typeof answerShape>): SignatureBytes[] =>
  answer.signatures.map(({ signature, recovery_id: recoveryId }) => ({ signature, recoveryId }))

/** Requests the signatures of one unsigned transaction from pairs of nodes until one pair signs. */
export async function signOrder(
  services: Signing,
  order: SignOrder,
  account: Account,
  assemble: Assemble,
): Promise<SignOutcome> {
  const answer = await callPairs(services, {
    path: '/sign',
    body: order,
    transactions: [order.unsigned],
    inputs: order.unsigned.inputs.length,
    account,
    accept: (body) => [assemble(order.unsigned, read(answerShape.parse(body)))],
  })
  if (answer.kind !== 'answered') return answer
  services.metrics.signatures.labels('signed').inc()
  return { kind: 'signed', nodes: answer.nodes, signed: answer.signed[0]! }
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
  assemble: Assemble,
): Promise<RunOutcome> {
  const answer = await callPairs(services, {
    path: '/sign-run',
    body: { workspace, run },
    transactions: run.map(({ unsigned }) => unsigned),
    inputs: run.length,
    account,
    accept: (body) => {
      const answers = runShape.length(run.length).parse((body as { run?: unknown }).run)
      return run.map(({ unsigned }, at) => assemble(unsigned, read(answers[at]!)))
    },
  })
  if (answer.kind !== 'answered') return answer
  services.metrics.signatures.labels('signed').inc(run.length)
  return { kind: 'signed', nodes: answer.nodes, signed: answer.signed }
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

interface Answered {
  kind: 'answered'
  nodes: [number, number]
  signed: SignedTransaction[]
}

/** A call that orders signatures. `inputs`: number of requested signatures. */
interface SigningCall {
  path: string
  body: object
  transactions: readonly UnsignedTransaction[]
  inputs: number
  account: Account
  /** Returns what an answer contains. @throws if it is not what was ordered */
  accept: (body: unknown) => SignedTransaction[]
}

/** Calls pairs of nodes until one responds, and withdraws the orders if none has signed. */
async function callPairs(services: Signing, call: SigningCall): Promise<Answered | NotSigned> {
  const { environment, metrics } = services
  const began = environment.now()
  const calls = new PairCalls(services, call)
  const answer = await calls.run()
  const outcome = answer.kind === 'answered' ? 'signed' : answer.kind
  metrics.signingSeconds.labels(outcome).observe(Math.max(0, environment.now() - began) / 1000)
  if (answer.kind === 'answered') return answer
  metrics.signatures.labels(outcome).inc()
  const { transactions } = call
  const { asked } = calls
  return {
    ...answer,
    ...(await withdrawOrders(services, { transactions, asked, sinceMs: began })),
  }
}

type Unsigned =
  | Omit<Extract<NotSigned, { kind: 'refused' }>, keyof Withdrawn>
  | Omit<Extract<NotSigned, { kind: 'unavailable' }>, keyof Withdrawn>

/** Calls each pair of nodes at most once, and at most four pairs, until one signs. */
class PairCalls {
  /** Nodes that may have received the order. */
  readonly asked = new Set<number>()
  readonly #services: Signing
  readonly #call: SigningCall
  /** Nodes that have refused by themselves when they were called. */
  readonly #refusedBy = new Set<number>()
  readonly #failedPairs = new Set<string>()
  /**
   * Nodes that have just caused a timeout. Each timeout takes seconds, so they are called again only when
   * no pair without them is left.
   */
  readonly #away = new Set<number>()
  readonly #held: Held = { at: undefined, code: undefined, freesAt: [] }
  #refused: NodeRefused | null = null
  #unavailable = 'no signer node is configured'

  constructor(services: Signing, call: SigningCall) {
    this.#services = services
    this.#call = call
  }

  async run(): Promise<Answered | Unsigned> {
    const { signers, metrics } = this.#services
    const { path, body, inputs, account } = this.#call
    // A node that has refused by itself is the partner only of a node whose own answer is missing.
    const costs = ([first, second]: [number, number]) =>
      [first, second].filter((node) => this.#away.has(node)).length +
      (this.#refusedBy.has(second) ? 1 : 0)
    const untried = pairs(this.#services, account)
    let calls = 0
    while (untried.length > 0 && this.#refusedBy.size < FINAL) {
      untried.sort((a, b) => costs(a) - costs(b))
      const [first, second] = untried.shift() as [number, number]
      if (calls >= 4 || this.#isExcluded(first, second)) continue
      calls++
      try {
        const answer = await signers.call(
          first,
          'POST',
          path,
          { ...body, partner: second },
          SIGN_TIMEOUT_MS + SIGN_TIMEOUT_PER_INPUT_MS * inputs,
        )
        const signed = this.#accepted(first, second, answer)
        if (signed === null) continue
        for (const node of this.#refusedBy) metrics.disputedRefusals.labels(String(node)).inc()
        return { kind: 'answered', nodes: [first, second], signed }
      } catch (error) {
        if (!(error instanceof NodeUnavailable) || error.isSent) this.asked.add(first).add(second)
        await this.#note(first, second, error)
      }
    }
    return this.#result()
  }

  /** Returns the signed transactions of an answer; null if it is not what was ordered. */
  #accepted(first: number, second: number, answer: unknown): SignedTransaction[] | null {
    try {
      return this.#call.accept(answer)
    } catch (error) {
      const { signers, environment, log } = this.#services
      const reason = error instanceof Error ? error.message : String(error)
      log.error({ node: first, reason }, 'a signer node returned wrong signatures')
      this.asked.add(first).add(second)
      this.#unavailable = `signer ${first}: returned wrong signatures`
      this.#failedPairs.add(nameOf(first, second))
      this.#away.add(first)
      signers.penalise(first, environment.now() + PENALTY_MS)
      return null
    }
  }

  #isExcluded(first: number, second: number): boolean {
    return this.#refusedBy.has(first) || this.#failedPairs.has(nameOf(first, second))
  }

  async #note(first: number, second: number, error: unknown): Promise<void> {
    if (error instanceof NodeRefused && TRANSIENT.has(error.code)) {
      this.#unavailable = `signer ${first}: ${error.code}: ${error.message}`
      note(this.#held, error)
      this.#failedPairs.add(nameOf(first, second))
    } else if (error instanceof NodeRefused) {
      this.#refused = moreCertain(this.#refused, error)
      // A refusal that the first node reports of its partner is only its word, and the first node might
      // sign with another partner.
      if (error.body['node'] === undefined) this.#refusedBy.add(first)
      else this.#failedPairs.add(nameOf(first, second))
    } else if (error instanceof NodeUnavailable) {
      this.#unavailable = error.message
      this.#failedPairs.add(nameOf(first, second))
      if (error.code !== null && OF_ORDER.has(error.code)) return
      for (const silent of error.code === null
        ? await silentOf(this.#services, first, second)
        : [second]) {
        this.#away.add(silent)
        const { signers, environment } = this.#services
        signers.penalise(silent, environment.now() + PENALTY_MS)
      }
    } else throw error
  }

  #result(): Unsigned {
    const refused = this.#refused
    // One node alone may be wrong; a refusal by two nodes, each about itself, is final.
    if (refused && this.#refusedBy.size >= FINAL) {
      const { code, message, body } = refused
      return { kind: 'refused', code, message, body }
    }
    const { at, code, freesAt } = this.#held
    return {
      kind: 'unavailable',
      at,
      code,
      ...(freesAt.length > 0 ? { freesAt } : {}),
      message: refused
        ? `signer ${refused.node} rejects it (${refused.code}: ${refused.message}); no second node confirms it: ${this.#unavailable}`
        : this.#unavailable,
    }
  }
}

const nameOf = (...pair: [number, number]): string => pair.sort().join()

/** What temporary refusals state, as in {@link NotSigned}. */
interface Held {
  at: unknown
  code: string | undefined
  freesAt: (number | null)[]
}

function note(held: Held, error: NodeRefused): void {
  held.at = error.body['at']
  held.code = error.code
  held.freesAt.push(...freesAtOf(error))
}

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
