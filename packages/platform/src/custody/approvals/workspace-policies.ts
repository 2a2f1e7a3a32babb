import type { SignedRequest } from '@custody/request-auth'
import type { CarriedApproval } from '@custody/policy'
import type { Environment } from '../../core/environment.ts'
import { NodeRefused, NodeUnavailable, type SignerNodes } from '../../core/signing/nodes.ts'
import { JudgePace } from './judge-again.ts'
import { judgementShape, NO_POLICY, type Judgement } from './judgement.ts'

interface Services {
  environment: Environment
  signers: SignerNodes
}

/**
 * What two signer nodes say about a request. `none`: the workspace has no policy, or the nodes say
 * nothing about it, so the signature decides. `later`: they allow it later, or cannot tell now.
 */
export type Outcome =
  | { kind: 'none' }
  | { kind: 'allowed'; judgement: Judgement }
  | { kind: 'approval'; judgement: Judgement }
  | { kind: 'denied'; message: string; judgement: Judgement }
  | Later

/**
 * The nodes allow it later, or cannot tell now. `freesAt`: Unix seconds from which the nodes would
 * allow it that state a full window; null: never, as the windows are now. Absent: another reason.
 */
interface Later {
  kind: 'later'
  message: string
  freesAt?: readonly (number | null)[]
}

/** What accompanies a request that the nodes judge. */
export interface Details {
  /** Decisions of people about it. */
  decisions?: readonly CarriedApproval[]
  /** Derivation path of the destination, if it is an address of the workspace. */
  to_path?: number[] | undefined
  /** Of a forwarding rule: amount of the planned forward, in the smallest unit. */
  amount?: string | undefined
  /** Largest fee of its transaction, in the smallest unit; absent: no transaction was built yet. */
  fee_max?: string
}

const JUDGE_TIMEOUT_MS = 5000
/**
 * Time for which a workspace without a policy is taken to have none, in milliseconds. A transfer that
 * is built within this time after the first document is installed is refused by the nodes, and is
 * then judged.
 */
const NO_POLICY_MS = 1000
/** Greatest number of workspaces that are remembered. */
const REMEMBERED_MAX = 10_000
/**
 * Codes by which a node does not judge now, or refuses until people end a stop or approve the
 * enrolment of the API key.
 */
const LATER = new Set([
  'ENROLMENT_APPROVAL',
  'POLICY_STOPPED',
  'POLICY_BEHIND',
  'RESTORING',
  'TOO_BUSY',
  'STARTING',
])

/** Response of one node. */
type Answer =
  | { node: number; judgement: Judgement | typeof NO_POLICY }
  | { node: number; later: string }
  | { node: number; silent: string }

/**
 * The policies of workspaces, as the signer nodes judge by them. The platform stores no document: a
 * node judges again before it signs, so nothing here is authority.
 */
export class WorkspacePolicies {
  readonly #services: Services
  /** What was found out about workspaces, with the time in milliseconds. */
  readonly #known = new Map<string, { isGoverned: boolean; at: number }>()
  readonly #pace = new JudgePace()

  constructor(services: Services) {
    this.#services = services
  }

  /**
   * Lets two nodes judge a caller's request.
   * @param workspace ID of the caller's workspace
   * @param detailsOf reads what accompanies the request; not called if the workspace is known to
   *   have no policy
   */
  async judge(
    workspace: string,
    request: SignedRequest,
    detailsOf: () => Promise<Details>,
  ): Promise<Outcome> {
    const now = this.#services.environment.now()
    const known = this.#known.get(workspace)
    if (known?.isGoverned === false && Math.abs(now - known.at) < NO_POLICY_MS)
      return { kind: 'none' }
    const answers = await this.#askTwo({ request, ...(await detailsOf()) })
    const outcome = combine(answers)
    const isSilent = answers.filter((answer) => !('silent' in answer)).length < 2
    // A workspace that is not known to have a policy is treated as one without.
    if (isSilent) return this.isGoverned(workspace) ? outcome : { kind: 'none' }
    this.#remember(workspace, { isGoverned: outcome.kind !== 'none', at: now })
    return outcome
  }

  /** Returns whether a waiting transfer of a workspace may be judged again now. */
  mayJudgeAgain(workspace: string): boolean {
    return this.#pace.take(workspace, this.#services.environment.now())
  }

  /** Whether a workspace is known to have a policy. */
  isGoverned(workspace: string): boolean {
    return this.#known.get(workspace)?.isGoverned === true
  }

  /** Remembers that a workspace has a policy, because a node has refused a signature by it. */
  noteGoverned(workspace: string): void {
    this.#remember(workspace, { isGoverned: true, at: this.#services.environment.now() })
  }

  #remember(workspace: string, found: { isGoverned: boolean; at: number }): void {
    if (this.#known.size >= REMEMBERED_MAX) this.#known.clear()
    this.#known.set(workspace, found)
  }

  /** Asks two nodes, and the third one if they do not agree: one of them may be wrong. */
  async #askTwo(body: object): Promise<Answer[]> {
    const { environment, signers } = this.#services
    const cost = (node: number) => (signers.isPenalised(node, environment.now()) ? 1 : 0)
    const nodes = signers.peers.map(({ node }) => node).sort((a, b) => cost(a) - cost(b))
    const first = await Promise.all(nodes.slice(0, 2).map((node) => this.#ask(node, body)))
    if (agreed(first) !== undefined) return first
    const rest = await Promise.all(nodes.slice(2).map((node) => this.#ask(node, body)))
    return [...first, ...rest]
  }

  async #ask(node: number, body: object): Promise<Answer> {
    const { signers } = this.#services
    try {
      const answer = await signers.call(node, 'POST', '/policy/judge', body, JUDGE_TIMEOUT_MS)
      const parsed = judgementShape.safeParse(answer)
      if (!parsed.success) return { node, silent: `signer ${node} returned an unknown judgement` }
      return { node, judgement: parsed.data }
    } catch (error) {
      if (error instanceof NodeUnavailable) return { node, silent: error.message }
      if (!(error instanceof NodeRefused)) throw error
      if (LATER.has(error.code))
        return { node, later: `signer ${node}: ${error.code}: ${error.message}` }
      // A node of an earlier version, or a request that it does not sign at all: the signature says.
      return { node, judgement: NO_POLICY }
    }
  }
}

/** What two nodes say. `isMixed`: one of them allows the act, and the other one misses approvals. */
type Combined = Outcome & { isMixed?: true }

const pairsOf = (answers: readonly Answer[]): Combined[] =>
  answers.flatMap((a, at) => answers.slice(at + 1).map((b) => combinePair([a, b])))

/** Returns what any two of the responses agree on; undefined if no two agree. */
const agreed = (answers: readonly Answer[]): Outcome | undefined =>
  pairsOf(answers).find(({ kind, isMixed }) => kind !== 'later' && !isMixed)

/** Returns what the responses say together; without agreement, the approvals that one misses. */
function combine(answers: readonly Answer[]): Outcome {
  const pairs = pairsOf(answers)
  return (
    agreed(answers) ??
    pairs.find(({ kind }) => kind === 'approval') ??
    pairs[0] ?? { kind: 'later', message: 'fewer than two signer nodes are configured' }
  )
}

/** Combines two responses. Nothing is certain unless both agree under the same document. */
function combinePair(answers: readonly [Answer, Answer]): Combined {
  const judged = answers.flatMap((answer) => ('judgement' in answer ? [answer.judgement] : []))
  if (judged.length < 2) {
    const other = answers.find((answer) => 'later' in answer || 'silent' in answer)
    return { kind: 'later', message: other ? reasonOf(other) : 'a signer node did not judge' }
  }
  const governed = judged.filter((each) => each.policy !== null)
  if (governed.length === 0) return { kind: 'none' }
  const [a, b] = governed as [Judgement, Judgement | undefined]
  if (b?.policy.hash !== a.policy.hash)
    return { kind: 'later', message: 'two signer nodes have different policies in force' }
  const refused = [a, b].filter(({ refusal }) => refusal !== null)
  const [first] = refused
  if (!first?.refusal) return { kind: 'allowed', judgement: a }
  const has = (code: string) => refused.filter(({ refusal }) => refusal?.code === code).length
  const { message } = first.refusal
  if (has('POLICY_DENIED') === 2) return { kind: 'denied', message, judgement: a }
  if (has('POLICY_APPROVAL') === 2) return { kind: 'approval', judgement: first }
  if (has('POLICY_APPROVAL') === refused.length)
    return { kind: 'approval', judgement: first, isMixed: true }
  const { refusal } = refused.find((each) => each.refusal?.code !== 'POLICY_APPROVAL') ?? first
  const later: Later = { kind: 'later', message: `${refusal?.code}: ${refusal?.message}` }
  const full = refused.filter((each) => each.refusal?.code === 'POLICY_WINDOW')
  if (full.length < refused.length - has('POLICY_APPROVAL')) return later
  return { ...later, freesAt: full.map((each) => each.refusal?.frees_at ?? null) }
}

const reasonOf = (answer: Answer): string =>
  'later' in answer ? answer.later : 'silent' in answer ? answer.silent : 'no reason'
