import type { Transaction } from '../types.ts'
import type { PinnedTrust } from './trust.ts'
import type { AddressVerifier, ShownAddress } from './verifier.ts'
import type { FailureProof, OwnRequest } from './proof.ts'

const OWN_IDS_MAX = 100_000

/**
 * Checks responses of the service against a trust object. The code that derives addresses or
 * verifies signatures is loaded on first use.
 */
export class Checks {
  readonly trust: PinnedTrust
  readonly #fetchKeys: () => Promise<unknown>
  #verifier: Promise<AddressVerifier> | null = null
  /** Ids that follow from this client's own requests. */
  readonly #own = new Set<string>()

  constructor(trust: PinnedTrust, fetchKeys: () => Promise<unknown>) {
    this.trust = trust
    this.#fetchKeys = fetchKeys
  }

  /**
   * Records a request that this client signed, so that later responses about its id can be
   * verified.
   */
  signed(id: string): void {
    if (this.#own.size >= OWN_IDS_MAX) this.#own.delete(this.#own.values().next().value as string)
    this.#own.add(id)
  }

  async failure(transaction: Transaction, own: OwnRequest, apiKey: string): Promise<FailureProof> {
    const { proveFailure } = await import('./voids.ts')
    return proveFailure(this.trust, transaction, own, apiKey)
  }

  /**
   * Adds the proof to a failed transaction; returns others unchanged.
   * @param id the requested id
   */
  async proven<T extends Transaction>(
    transaction: T,
    apiKey: string,
    id: string = transaction.id,
  ): Promise<T> {
    if (transaction.status !== 'failed') return { ...transaction, failure_proof: undefined }
    const proof = this.#own.has(id)
      ? await this.failure(transaction, { id }, apiKey)
      : {
          proven: false,
          nodes: [],
          signed: [],
          reason: 'this client did not send the request: pass it to verifyFailed',
        }
    return { ...transaction, failure_proof: proof }
  }

  async #with(curveIn: (verifier: AddressVerifier) => string): Promise<AddressVerifier> {
    this.#verifier ??= import('./verifier.ts').then(
      ({ AddressVerifier: Verifier }) => new Verifier(this.trust),
    )
    const verifier = await this.#verifier
    const curve = curveIn(verifier)
    // A workspace's key never changes, so a verified key is cached and never replaced.
    if (!verifier.hasKey(curve)) verifier.takeKey(await this.#fetchKeys(), curve)
    return verifier
  }

  /**
   * Verifies deposit addresses.
   * @throws VerificationError for the first address that is not the pinned sub-account's own
   */
  async addresses(asset: string, shown: readonly ShownAddress[]): Promise<void> {
    if (shown.length === 0) return
    const verifier = await this.#with((each) => each.curveOf(asset))
    for (const each of shown) await verifier.verifyAddress(asset, each)
  }

  /**
   * Verifies omnibus addresses.
   * @throws VerificationError
   */
  async wallets(
    asset: string,
    shown: readonly { asset: string; omnibus_address: unknown; path: unknown }[],
  ): Promise<void> {
    if (shown.length === 0) return
    const verifier = await this.#with((each) => each.curveOf(asset))
    for (const each of shown) await verifier.verifyOmnibus(asset, each)
  }

  /**
   * Verifies addresses of gas tanks.
   * @throws VerificationError
   */
  async tanks(shown: readonly { network: string; address: string | null }[]): Promise<void> {
    for (const { network, address } of shown) {
      if (address === null) continue
      const verifier = await this.#with((each) => each.curveOfNetwork(network))
      await verifier.verifyTank(network, address)
    }
  }
}
