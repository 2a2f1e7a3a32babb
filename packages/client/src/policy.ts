import type { PolicyQuestion, StatedPolicy } from './approvals/types.ts'
import type { RequestSender } from './transport.ts'
import type { Trust } from './trust/trust.ts'
import type {
  PolicyChange,
  PolicyChangeDetail,
  PolicyChangeFilter,
  PolicyChangePage,
  PolicyEvaluation,
  PolicyEvaluationRequest,
  PolicyInForce,
  PolicyPossession,
  PolicyProposalRequest,
  PolicyResumeRequest,
  PolicyResumeResult,
  PolicySimulation,
  PolicySimulationRequest,
  PolicyStop,
  PolicyStopRequest,
  PolicyStopResult,
  PolicySuspendRequest,
  PolicySuspendResult,
  PolicyVersionFilter,
  PolicyVersionPage,
  PolicyVetoRequest,
  PolicyVetoResult,
  PolicyWindows,
} from './types.ts'
import { query } from './wire.ts'

/** The policy of the workspace, and the changes that people have proposed. */
export class Policy {
  readonly #client: RequestSender

  readonly #trust: Trust | undefined

  constructor(client: RequestSender, trust?: Trust) {
    this.#client = client
    this.#trust = trust
  }

  /**
   * Returns the document in force, with the pending change and the stops.
   * @throws CustodyError `SIGNERS_UNAVAILABLE`
   */
  read(): Promise<PolicyInForce> {
    return this.#client.request('GET', '/dac/v1/policy')
  }

  /**
   * Reads the document in force, and verifies with the trust file that at least two signer nodes state
   * it.
   * @throws ApprovalError `NOT_STATED`, `DOCUMENT` or `OTHER_PLACE`; CustodyError; TypeError without
   *   the option `trust` of the client
   */
  async verify(options: Pick<PolicyQuestion, 'max_age_s' | 'now_s'> = {}): Promise<StatedPolicy> {
    const trust = this.#trust
    if (trust === undefined) throw new TypeError('policy.verify requires the option trust')
    const { requireStated } = await import('./approvals/in-force.ts')
    return requireStated({ ...options, policy: await this.read(), trust })
  }

  /**
   * Lists the documents that were in force, with the people who signed each change. Newest first;
   * pass the result's `next` as `after` to continue.
   * @throws CustodyError `SIGNERS_UNAVAILABLE`
   */
  versions(filter: PolicyVersionFilter = {}): Promise<PolicyVersionPage> {
    return this.#client.request('GET', `/dac/v1/policy/versions${query(filter)}`)
  }

  /**
   * Lists what counts now in the time windows of the policy, the most used first.
   * @throws CustodyError `SIGNERS_UNAVAILABLE`
   */
  windows(): Promise<PolicyWindows> {
    return this.#client.request('GET', '/dac/v1/policy/windows')
  }

  /**
   * States what the policy would decide about a request, without making it.
   * @throws CustodyError `INVALID_REQUEST` with the field, such as `body.amount`, or
   *   `SIGNERS_UNAVAILABLE`
   */
  evaluate(request: PolicyEvaluationRequest): Promise<PolicyEvaluation> {
    return this.#client.request('POST', '/dac/v1/policy/evaluate', request)
  }

  /**
   * Judges past transfers and forwards of the workspace by another document.
   * @throws CustodyError `INVALID_REQUEST` with the field of the document, or `SIGNERS_UNAVAILABLE`
   */
  simulate(request: PolicySimulationRequest): Promise<PolicySimulation> {
    return this.#client.request('POST', '/dac/v1/policy/simulate', request)
  }

  /**
   * Proposes the next document. People approve it with {@link Approvals.give}. A document that is
   * proposed already returns the existing change.
   * @throws CustodyError `INVALID_REQUEST` with the field of the document, `POLICY_CHANGE_LIMIT`, or
   *   `SIGNERS_UNAVAILABLE`
   */
  propose(proposal: PolicyProposalRequest): Promise<PolicyChangeDetail> {
    return this.#client.request('POST', '/dac/v1/policy/changes', proposal)
  }

  /**
   * Lists proposed changes, newest first; pass the result's `next` as `after` to continue.
   */
  changes(filter: PolicyChangeFilter = {}): Promise<PolicyChangePage> {
    return this.#client.request('GET', `/dac/v1/policy/changes${query(filter)}`)
  }

  /**
   * Returns a proposed change with its document, and what its approvals sign.
   * @throws CustodyError `NOT_FOUND`
   */
  change(id: PolicyChange['id']): Promise<PolicyChangeDetail> {
    return this.#client.request('GET', `/dac/v1/policy/changes/${encodeURIComponent(id)}`)
  }

  /**
   * Sends the proof that a person holds a key that the proposed document adds.
   * @param id of the change
   * @throws CustodyError `APPROVAL_REFUSED` if it does not verify, `APPROVAL_CLOSED` if the change
   *   does not wait for it, or `SIGNERS_UNAVAILABLE`
   */
  prove(id: PolicyChange['id'], possession: PolicyPossession): Promise<PolicyChangeDetail> {
    const path = `/dac/v1/policy/changes/${encodeURIComponent(id)}/possessions`
    return this.#client.request('POST', path, possession)
  }

  /**
   * Sends a person's signed stop of the workspace or one sub-account.
   * @throws CustodyError `APPROVAL_REFUSED` or `SIGNERS_UNAVAILABLE`
   */
  stop(statement: PolicyStopRequest): Promise<PolicyStopResult> {
    return this.#client.request('POST', '/dac/v1/policy/stop', statement)
  }

  /**
   * Returns a stop that was sent over the API, with its signed text.
   * @throws CustodyError `NOT_FOUND` or `SIGNERS_UNAVAILABLE`
   */
  readStop(hash: string): Promise<PolicyStop> {
    return this.#client.request('GET', `/dac/v1/policy/stops/${encodeURIComponent(hash)}`)
  }

  /**
   * Sends a person's signed approval of the end of a stop that was sent over the API.
   * @throws CustodyError `APPROVAL_REFUSED`, `APPROVAL_CLOSED` if the stop is not in force,
   *   `NOT_FOUND`, or `SIGNERS_UNAVAILABLE`
   */
  resume(statement: PolicyResumeRequest): Promise<PolicyResumeResult> {
    return this.#client.request('POST', '/dac/v1/policy/resume', statement)
  }

  /**
   * Sends a person's signed veto of a change that the signer nodes hold.
   * @throws CustodyError `APPROVAL_REFUSED` or `SIGNERS_UNAVAILABLE`
   */
  veto(statement: PolicyVetoRequest): Promise<PolicyVetoResult> {
    return this.#client.request('POST', '/dac/v1/policy/veto', statement)
  }

  /**
   * Sends a person's signed suspension of another person's key.
   * @throws CustodyError `APPROVAL_REFUSED` or `SIGNERS_UNAVAILABLE`
   */
  suspend(statement: PolicySuspendRequest): Promise<PolicySuspendResult> {
    return this.#client.request('POST', '/dac/v1/policy/suspend', statement)
  }
}
