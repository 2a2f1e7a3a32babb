import type { RequestSender } from './transport.ts'
import type {
  Approval,
  ApprovalDecision,
  ApprovalDetail,
  ApprovalFilter,
  ApprovalPage,
  ApprovalResult,
} from './types.ts'
import { query } from './wire.ts'

/** Transfers of the sub-account that require approvals by the policy of the workspace. */
export class Approvals {
  readonly #client: RequestSender

  constructor(client: RequestSender) {
    this.#client = client
  }

  /**
   * Lists transfers that require approvals, by default those that are open. Newest first; pass the
   * result's `next` as `after` to continue.
   */
  list(filter: ApprovalFilter = {}): Promise<ApprovalPage> {
    return this.#client.request('GET', `/dac/v1/approvals${query(filter)}`)
  }

  /**
   * Returns a transfer with the statement that each approval signs.
   * @param id of the transfer
   * @throws CustodyError `NOT_FOUND`
   */
  read(id: Approval['id']): Promise<ApprovalDetail> {
    return this.#client.request('GET', `/dac/v1/approvals/${encodeURIComponent(id)}`)
  }

  /**
   * Sends a person's signed decision. The API key only carries it.
   * @param id of the transfer
   * @param decision with the signature over the statement of {@link read}
   * @throws CustodyError `APPROVAL_REFUSED` if it does not count, `APPROVAL_CLOSED` if the transfer
   *   does not wait for approvals, or `SIGNERS_UNAVAILABLE`
   */
  give(id: Approval['id'], decision: ApprovalDecision): Promise<ApprovalResult> {
    return this.#client.request('POST', `/dac/v1/approvals/${encodeURIComponent(id)}`, decision)
  }
}
