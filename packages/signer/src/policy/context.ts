import { hashOfUnsigned } from '@custody/request-auth/orders'
import {
  ChainError,
  decode,
  verifySigned,
  type Network,
  type Registry,
  type UnsignedTransaction,
} from '@custody/chains'
import type { KeyObject } from 'node:crypto'
import { Refusal, type Code } from '../errors.ts'
import type { CertifiedKey } from '../keys/keyring.ts'
import type { Store } from '../store/index.ts'
import {
  type Charge,
  type Covered,
  type Order,
  type Purpose,
  type Subject,
  type Verdict,
} from './order.ts'

/**
 * Data on which a node bases its verdicts: its registry, its record, its peers' identities, and the
 * certified keys.
 */
export interface Context {
  registry: Registry
  store: Store
  identities: ReadonlyMap<number, KeyObject>
  budgetFeeCaps: number
  /**
   * Returns the workspace's certified key; may request a certificate set that this node missed from
   * its peers.
   */
  keyOf(workspace: string, curve: Network['curve']): Promise<CertifiedKey>
}

/**
 * Evaluates an order of one purpose by everything that does not depend on the record, and returns
 * the conditions on the record.
 */
export type Authority<P extends Purpose = Purpose> = (
  context: Context,
  order: Order,
  purpose: P,
) => Promise<Verdict>

const CHAIN_CODES: Record<string, Code> = {
  CHAIN_ID: 'CHAIN_ID_MISMATCH',
  CONTRACT: 'CONTRACT_MISMATCH',
  CHANGE: 'CHANGE_MISMATCH',
  NETWORK: 'NETWORK_MISMATCH',
  PREVIOUS_TRANSACTION: 'PREVIOUS_TRANSACTION',
  PATH: 'FOREIGN_PATH',
}

/**
 * Returns the network with a code.
 * @throws Refusal if this node does not support the network
 */
export function networkNamed({ registry }: Context, code: string): Network {
  const network = registry.network(code)
  if (!network)
    throw new Refusal('NETWORK_MISMATCH', `The network ${code} is not in this node's registry`)
  return network
}

/**
 * Returns the network of an asset.
 * @throws Refusal if this node does not support the asset
 */
export function networkOf(context: Context, ticker: string): Network {
  const asset = context.registry.asset(ticker)
  if (!asset)
    throw new Refusal('UNKNOWN_ASSET', `The asset ${ticker} is not in this node's registry`)
  return networkNamed(context, asset.network)
}

/**
 * Returns the transaction as this node decodes it, with the workspace's own key.
 * @throws Refusal if it is on another network, or has a form that is not allowed
 */
export async function decodedOn(
  context: Context,
  order: Order,
  network: Network,
): Promise<Subject> {
  if (order.unsigned.network !== network.code)
    throw new Refusal('NETWORK_MISMATCH', `The transaction must be on ${network.code}`)
  const key = await context.keyOf(order.workspace, network.curve)
  return ofChain(() => ({
    order,
    network,
    key,
    decoded: decode(context.registry, order.unsigned, key.publicKeyAt),
  }))
}

/**
 * Verifies that a transaction is signed by the keys of its inputs.
 * @param signed hex, as it is broadcast
 * @throws Refusal if it is another transaction, or a signature does not verify
 */
export const assertSigned = (
  { registry }: Context,
  unsigned: UnsignedTransaction,
  signed: string,
  { publicKeyAt }: CertifiedKey,
): void => void ofChain(() => verifySigned(registry, unsigned, signed, publicKeyAt))

/** Reports errors of the chain layer as refusals. */
function ofChain<T>(call: () => T): T {
  try {
    return call()
  } catch (error) {
    if (error instanceof ChainError)
      throw new Refusal(CHAIN_CODES[error.code] ?? 'SHAPE', error.message, {
        chain_code: error.code,
      })
    throw error
  }
}

/**
 * What limits a transaction, besides its step and its effects: its fee and value are charged to a
 * budget; it is an act that a policy judges and charges, once for each of the caller's requests; the
 * node's own operator ordered it; or it replaces a payment within what that payment was charged.
 */
type Limits =
  | { charges: readonly [Charge, ...Charge[]] }
  | Pick<Verdict, 'acts' | 'isAct'>
  | Pick<Verdict, 'ordered'>
  | { isPaidFor: true }

/** Returns a verdict with the results of an authority; missing fields are empty. */
export function verdictOf(
  subject: Covered,
  part: Pick<Verdict, 'step' | 'repeatable' | 'serves'> & Limits & Partial<Verdict>,
): Verdict {
  const { isPaidFor: _, ...stated } = { isPaidFor: false, ...part }
  return {
    intent: null,
    seen: [],
    callers: [],
    assertAge: () => {},
    voidNames: [],
    voids: [],
    beside: [],
    charges: [],
    leftover: null,
    fuelled: null,
    rule: null,
    ordered: null,
    policy: null,
    acts: () => [],
    isAct: false,
    ...subject,
    unsignedHash: hashOfUnsigned(subject.order.unsigned),
    ...stated,
  }
}
