import { PolicyError } from './error.ts'
import type { Action } from './document/rules.ts'
import type { PolicyAsset, PolicyRegistry } from './registry.ts'

/** Own addresses that a destination is: of the paying sub-account, or of another one. */
export type Own = 'sub_account' | 'workspace'

/**
 * What a node knows about a destination. Null: not an own address. `unknown`: the node cannot decide
 * it. Then the destination is foreign to every `allow`, and an own address to all other rules. A
 * destination with a tag may be an own address too.
 */
export type Ownership = Own | null | 'unknown'

/**
 * What a policy judges, as a signer node derives it from the caller's signed request and from the
 * transaction that it has decoded itself. Amounts are in the smallest unit of their asset.
 *
 * A speed-up, and any other transaction of the same payment, is the same act with the fee of that
 * transaction.
 */
export interface Act {
  /** Public ID of the transaction. */
  readonly id: string
  /** Hash of the signed request's content, in hex. People approve this content only. */
  readonly subject: string
  /** Name of the step. Windows count a step once, whatever the number of its transactions. */
  readonly step: string
  readonly action: Action
  readonly workspace: string
  readonly sub_account: string
  /** API key that signed the request. */
  readonly api_key: string
  /**
   * Person of the API key's enrolment, as the node that judges has recorded it from its own operator;
   * absent: it names none, or the caller does not know. The document takes precedence (`ownerOf`).
   */
  readonly person?: string
  readonly asset: string
  readonly network: string
  /** Of a forward: what this one forward moves. */
  readonly amount: bigint
  readonly to: {
    /** Canonical address. */
    readonly address: string
    readonly tag: string | null
    /** `workspace`: an own address of another sub-account of the same workspace. */
    readonly own: Ownership
  }
  readonly fee: {
    /** Largest fee of this transaction, in the network's native coin. */
    readonly max: bigint
    /**
     * Largest fee of a cancellation that is not judged again. Absent: the network replaces no signed
     * transactions.
     */
    readonly replacement?: bigint
    /** Largest fee of any transaction of this act. It is in the facts that people approve. */
    readonly limit: bigint
  }
  /** Unix seconds at which the request was issued. */
  readonly issued_at: number
  /** Of a forward: the standing rule that the caller signed. Null for other actions. */
  readonly standing: Standing | null
  /** Of a stake: the resource. Null for other actions. */
  readonly resource: 'ENERGY' | 'BANDWIDTH' | null
}

/** A standing rule for forwards. */
export interface Standing {
  readonly min_amount: bigint
  readonly daily_cap: bigint
  /** Unix seconds. */
  readonly ends_at: number
}

/** Returns an asset of the registry. @throws PolicyError `UNKNOWN_ASSET` */
export function assetOf(registry: PolicyRegistry, name: string, path: string): PolicyAsset {
  const asset = registry.asset(name)
  if (asset === undefined)
    throw new PolicyError('UNKNOWN_ASSET', path, `${name} is not an asset of the registry`)
  return asset
}

/**
 * Checks that an act does not contradict itself.
 * @throws PolicyError `ACT` or `UNKNOWN_ASSET` with the field
 */
export function assertAct(registry: PolicyRegistry, act: Act): void {
  const refuse = (path: string, message: string): never => {
    throw new PolicyError('ACT', path, message)
  }
  const asset = assetOf(registry, act.asset, 'asset')
  assetOf(registry, asset.fee_asset, 'asset')
  if (asset.network !== act.network) refuse('network', `must be ${asset.network}`)
  if (act.amount < 0n) refuse('amount', 'must not be negative')
  if (act.fee.max < 0n) refuse('fee.max', 'must not be negative')
  if (act.fee.max > act.fee.limit) refuse('fee.max', 'must not be above fee.limit')
  if ((act.action === 'forward') !== (act.standing !== null))
    refuse('standing', 'must be present for a forward, and null otherwise')
  if ((act.action === 'stake') !== (act.resource !== null))
    refuse('resource', 'must be present for a stake, and null otherwise')
  if (registry.canonicalAddress(act.network, act.to.address) !== act.to.address)
    refuse('to.address', 'must be a canonical address of the network')
}
