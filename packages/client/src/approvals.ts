import type { Place } from './approvals/place.ts'
import type { StatementSigner } from './approvals/signer.ts'
import type {
  DecisionOptions,
  DocumentSource,
  StatedPolicy,
  VerifiedApproval,
} from './approvals/types.ts'
import type { RequestSender } from './transport.ts'
import type { Trust } from './trust/trust.ts'
import type {
  Approval,
  ApprovalDecision,
  ApprovalDetail,
  ApprovalFilter,
  ApprovalPage,
  ApprovalResult,
  PolicyInForce,
  PolicyVersionPage,
} from './types.ts'
import { query } from './wire.ts'

/** Options of {@link Approvals.verify}. */
export interface VerifyApprovalOptions {
  /**
   * Policy documents that you have of their authors: documents or policy files, as text or parsed.
   * The document in the statement must be among them, so an empty list accepts none. If the option
   * is absent, the documents that the platform returns are used, and `policy.is_own` is false. Then
   * `policy.stated_by` contains the signer nodes that state that the document is in force.
   */
  documents?: readonly DocumentSource[]
  /** Public keys in PEM of the API keys whose requests you accept. Absent: no signature is verified. */
  callers?: Readonly<Record<string, string>>
  /** Present time in Unix seconds; by default that of this computer. */
  now_s?: number
  /** Greatest age of a signer node's statement about the document in seconds, by default 300. */
  max_age_s?: number
}

/** Greatest number of earlier documents that are read. */
const VERSIONS_MAX = 20

/** Transfers of the sub-account that require approvals by the policy of the workspace. */
export class Approvals {
  readonly #client: RequestSender
  readonly #trust: Trust | undefined
  #place: Promise<Place> | null = null

  constructor(client: RequestSender, trust?: Trust) {
    this.#client = client
    this.#trust = trust
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

  /**
   * Reads a transfer, and verifies it and all decisions about it: the installation, the policy
   * document, the facts by the signed request of the caller, and each signature. Works for closed
   * transfers too.
   * @param approval ID of the transfer, or the result of {@link read}
   * @throws ApprovalError with the reason why it must not be signed; CustodyError; TypeError without
   *   the option `trust` of the client
   */
  async verify(
    approval: Approval['id'] | ApprovalDetail,
    { documents, callers, now_s, max_age_s }: VerifyApprovalOptions = {},
  ): Promise<VerifiedApproval> {
    const trust = this.#trust
    if (trust === undefined) throw new TypeError('approvals.verify requires the option trust')
    const id = typeof approval === 'string' ? approval : approval.id
    const detail = typeof approval === 'string' ? await this.read(approval) : approval
    const { ApprovalError } = await import('./approvals/errors.ts')
    const { placeOf } = await import('./approvals/place.ts')
    const { verifyAt } = await import('./approvals/verify-approval.ts')
    // A load that fails, for example without a network, is repeated by the next call.
    this.#place ??= placeOf(trust).catch((error: unknown) => {
      this.#place = null
      throw error
    })
    const place = await this.#place
    const question = { approval: detail, documents: documents ?? [], callers, id, now_s }
    if (documents !== undefined) return verifyAt(place, question)
    const policy = await this.#client.request<PolicyInForce>('GET', '/dac/v1/policy')
    const claimed = policy.document ? [policy.document] : []
    const { statedDocument } = await import('./approvals/in-force.ts')
    let stated: StatedPolicy | null = null
    try {
      if (policy.document) stated = statedDocument(place, { policy, trust, now_s, max_age_s })
      const verified = await verifyAt(place, { ...question, claimed, stated })
      if (verified.decisions.every(({ status }) => status !== 'ignored')) return verified
    } catch (error) {
      if (!(error instanceof ApprovalError) || error.code !== 'DOCUMENT') throw error
    }
    // The transfer was judged, or a person decided, under an earlier document.
    const versions = await this.#client.request<PolicyVersionPage>(
      'GET',
      `/dac/v1/policy/versions${query({ limit: VERSIONS_MAX })}`,
    )
    const earlier = Array.isArray(versions.data) ? versions.data.map((each) => each.document) : []
    return verifyAt(place, { ...question, stated, claimed: [...claimed, ...earlier] })
  }

  /**
   * Signs an approval of a verified transfer, and sends it.
   * @param verified from {@link verify}
   * @param signer of a key of a person in the policy document, such as `keySigner(pem)` of
   *   `@custody/client/approvals`
   * @throws ApprovalError `CLOSED` or `SIGNER`; CustodyError as {@link give}
   */
  approve(
    verified: VerifiedApproval,
    signer: StatementSigner,
    options?: DecisionOptions,
  ): Promise<ApprovalResult> {
    return this.#decide(verified, 'approve', signer, options)
  }

  /**
   * Signs a rejection of a verified transfer, and sends it. It ends the transfer.
   * @throws ApprovalError `CLOSED` or `SIGNER`; CustodyError as {@link give}
   */
  reject(
    verified: VerifiedApproval,
    signer: StatementSigner,
    options?: DecisionOptions,
  ): Promise<ApprovalResult> {
    return this.#decide(verified, 'reject', signer, options)
  }

  async #decide(
    verified: VerifiedApproval,
    decision: 'approve' | 'reject',
    signer: StatementSigner,
    options?: DecisionOptions,
  ): Promise<ApprovalResult> {
    const { decide } = await import('./approvals/decide.ts')
    const signed = await decide(verified, decision, signer, options)
    return this.give(verified.id, signed.decision)
  }
}
