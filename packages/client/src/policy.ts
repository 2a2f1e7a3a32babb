import type { RequestSender } from './transport.ts'
import type {
  PolicyEvaluation,
  PolicyEvaluationRequest,
  PolicyInForce,
  PolicySimulation,
  PolicySimulationRequest,
  PolicyVersionFilter,
  PolicyVersionPage,
} from './types.ts'
import { query } from './wire.ts'

/** The policy of the workspace. It is changed with `npx custody policy` only. */
export class Policy {
  readonly #client: RequestSender

  constructor(client: RequestSender) {
    this.#client = client
  }

  /**
   * Returns the document in force, with the pending change and the stops.
   * @throws CustodyError `SIGNERS_UNAVAILABLE`
   */
  read(): Promise<PolicyInForce> {
    return this.#client.request('GET', '/dac/v1/policy')
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
   * States what the policy would decide about a request, without making it.
   * @throws CustodyError `INVALID_REQUEST` with the field, such as `body.amount`, or
   *   `SIGNERS_UNAVAILABLE`
   */
  evaluate(request: PolicyEvaluationRequest): Promise<PolicyEvaluation> {
    return this.#client.request('POST', '/dac/v1/policy/evaluate', request)
  }

  /**
   * Judges past transfers of the workspace by another document.
   * @throws CustodyError `INVALID_REQUEST` with the field of the document, or `SIGNERS_UNAVAILABLE`
   */
  simulate(request: PolicySimulationRequest): Promise<PolicySimulation> {
    return this.#client.request('POST', '/dac/v1/policy/simulate', request)
  }
}
