import { paginate } from '../paginate.ts'
import { CustodyError } from '../errors.ts'
import { decimals, isGiven, query } from '../wire.ts'
import type { FailureProof, OwnRequest } from '../trust/proof.ts'
import type { OnceOptions, RequestOptions } from '../transport.ts'
import type {
  Decimal,
  FeeEstimate,
  FeeRates,
  NewTransaction,
  SpeedUp,
  Transaction,
  TransactionFilter,
  TransactionPage,
} from '../types.ts'
import { WalletMethods } from './wallets.ts'

/** Options of {@link CustodyClient.waitForTransaction}; times in milliseconds. */
export interface WaitOptions {
  timeoutMs?: number
  intervalMs?: number
  signal?: AbortSignal
}

/** Transfers and their network fees. */
export abstract class TransferMethods extends WalletMethods {
  /**
   * Creates an outgoing transfer. Set `sequence_id`: then the client repeats a request whose
   * response was lost, and the transfer is created only once. Without it nothing is repeated, and
   * after an error of status 0 or 5xx the outcome is *unknown*.
   * @param transaction transfer; `amount` in whole units of the asset
   * @param options.onSigned is called with the request's nonce and the transaction's id before the
   *   request is sent
   * @returns the created transaction, or that of an earlier request with the same `sequence_id` and
   *   payload (see {@link isReplayed})
   * @throws IdempotencyMismatch if the `sequence_id` was used for another transfer (all methods
   *   that accept {@link OnceOptions} throw it); CustodyError for other failures
   */
  async createTransaction(
    transaction: NewTransaction,
    options: OnceOptions & Pick<RequestOptions, 'onSigned'> = {},
  ): Promise<Transaction> {
    const body = {
      source_type: 'INTERNAL',
      destination_type: 'EXTERNAL',
      ...decimals(transaction, 'amount', 'fee_rate'),
    }
    return this.request('POST', '/dac/v1/transaction', body, {
      repeatable: isGiven(transaction.sequence_id),
      ...options,
    })
  }

  /**
   * Reads a transaction. With `trust`, a failed one has `failure_proof`, also in the results of
   * {@link transactions}.
   * @param id UUID of the transaction
   * @throws CustodyError `NOT_FOUND`
   */
  async transaction(id: string): Promise<Transaction> {
    const transaction = await this.request<Transaction>(
      'GET',
      `/dac/v1/transaction/${encodeURIComponent(id)}`,
    )
    return this.checks?.proven(transaction, this.apiKey, id) ?? transaction
  }

  /** Lists transactions, newest first. */
  async transactions(filter: TransactionFilter = {}): Promise<TransactionPage> {
    const page = await this.request<TransactionPage>('GET', `/dac/v1/transactions${query(filter)}`)
    const checks = this.checks
    return checks
      ? {
          ...page,
          data: await Promise.all(page.data.map((each) => checks.proven(each, this.apiKey))),
        }
      : page
  }

  /** Iterates over all matching transactions, newest first, and reads pages as needed. */
  eachTransaction(filter: Omit<TransactionFilter, 'page'> = {}): AsyncGenerator<Transaction> {
    return paginate((page) => this.transactions({ ...filter, ...page }), filter.limit)
  }

  /**
   * Polls until the transaction is `confirmed` or `failed`, and returns it; check its `status`.
   * @param id UUID of the transaction
   * @param options.timeoutMs maximum wait in milliseconds, one hour by default
   * @param options.intervalMs time between two requests in milliseconds, 2000 by default
   * @throws CustodyError `TIMEOUT`, although the transfer continues; the reason of `signal` if it
   *   aborts
   */
  async waitForTransaction(id: string, options: WaitOptions = {}): Promise<Transaction> {
    const deadline = this.transport.now() + (options.timeoutMs ?? 3_600_000)
    const interval = options.intervalMs ?? 2000
    for (;;) {
      const transaction = await this.transaction(id)
      if (transaction.status !== 'pending') return transaction
      if (this.transport.now() + interval > deadline) {
        throw new CustodyError(`transaction ${id} is still ${transaction.sub_status}`, {
          status: 0,
          code: 'TIMEOUT',
        })
      }
      options.signal?.throwIfAborted()
      await this.transport.sleep(interval)
    }
  }

  /**
   * Checks whether the pinned signer nodes prove that a failed transaction was not paid and never
   * will be. If `proven` is false, it may have been paid: `reason` says why, and `signed` lists the
   * hashes to look up on the chain. Works offline.
   *
   * @param own what the caller knows of the transfer independently: the nonce of their request, the
   *   id that `onSigned` reported, or their forward rule that created it
   * @throws TypeError without `trust`
   */
  async verifyFailed(transaction: Transaction, own: OwnRequest): Promise<FailureProof> {
    if (!this.checks) throw new TypeError('verifyFailed requires the option trust')
    return this.checks.failure(transaction, own, this.apiKey)
  }

  /**
   * Raises the fee of a transfer that waits on the chain, to a given fee rate or level.
   * @param id UUID of the transaction
   * @param options.fee_rate in the asset's fee rate unit
   * @throws CustodyError `NOT_REPLACEABLE` if the chain does not support it
   */
  async speedUp(id: string, options: SpeedUp = {}): Promise<Transaction> {
    return this.request(
      'POST',
      `/dac/v1/transaction/${encodeURIComponent(id)}/speed-up`,
      decimals(options, 'fee_rate'),
    )
  }

  /**
   * Cancels a transfer. Before it is signed this is free; afterwards a competing payment to the own
   * wallet replaces it. Cancelling twice has no further effect.
   * @param id UUID of the transaction
   */
  cancel(id: string): Promise<Transaction> {
    return this.request(
      'POST',
      `/dac/v1/transaction/${encodeURIComponent(id)}/cancel`,
      {},
      { repeatable: true },
    )
  }

  /**
   * Returns the current network fee rates of three levels, in the unit `fee_rate_unit`.
   * @param asset ticker
   * @throws CustodyError 503 if no estimate is available
   */
  networkFeeRates(asset: string): Promise<FeeRates> {
    return this.request('GET', `/dac/v1/network-fee-rates/${encodeURIComponent(asset)}`)
  }

  /**
   * Estimates the network fee of a transfer. Without an amount, a UTXO estimate is that of a
   * typical transfer.
   * @param asset ticker
   * @param feeRate in the asset's fee rate unit
   * @param options.amount in whole units of the asset
   */
  async estimateFee(
    asset: string,
    feeRate: Decimal,
    options: { amount?: Decimal; destination_address?: string } = {},
  ): Promise<FeeEstimate> {
    const body = decimals({ asset, fee_rate: feeRate, ...options }, 'fee_rate', 'amount')
    return this.request('POST', '/dac/v1/estimate-fee', body, { repeatable: true })
  }
}
