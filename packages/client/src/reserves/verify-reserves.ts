import { signersOf } from '../trust/signatures.ts'
import { readTrust, type Trust } from '../trust/trust.ts'
import { verifyProof, type ProvenBalance, type ReservesProof } from './proof.ts'
import {
  attestationText,
  readStatement,
  wrong,
  type PublishedStatement,
  type Statement,
} from './statement.ts'

export { VerificationError } from '../trust/errors.ts'
export type { ProvenBalance, ReservesProof } from './proof.ts'
export type { AssetReserves, Holdings, PublishedStatement, Statement } from './statement.ts'

export interface ReservesQuestion {
  published: PublishedStatement
  /** Proof of the own sub-account; without it only the statement is checked. */
  proof?: ReservesProof | undefined
  /** Trust object. Without it no signature is checked, and `signed_by` is null. */
  trust?: Trust | undefined
  /** The list of addresses, as text. It requires `trust`. */
  holdings?: string | undefined
}

export interface VerifiedReserves {
  statement: Statement
  /** SHA-256 of the statement, hex. Compare it with the hash that others received. */
  hash: string
  /** Pinned nodes that signed the statement. */
  signed_by: number[] | null
  /**
   * Balances of the proof that are included in the liabilities. An asset that is missing here is
   * not counted as owed to its owner.
   */
  proven: ProvenBalance[]
  /**
   * Number of addresses that were derived from certified keys; null if their list was not passed.
   */
  addresses: number | null
  /** Assets of which more is owed than is held, apart from the operator's own funds. */
  short: string[]
}

const SIGNATURES_NEEDED = 2

/**
 * Returns the surplus of an asset in the smallest unit: the held amount, less the operator's own
 * funds, less the liabilities. A negative value is a shortfall.
 */
export const surplusOf = ({ held, operating, owed }: Statement['assets'][number]): bigint =>
  BigInt(held) - BigInt(operating) - BigInt(owed)

/**
 * Verifies a statement of reserves, its signatures, a sub-account's proof of its balances, and the
 * addresses that hold the assets. Works offline. A shortfall is not an error: read `short`.
 *
 * @throws VerificationError `RESERVES`, or the code of an invalid trust object, key or address;
 *   TypeError for `holdings` without `trust`
 */
export async function verifyReserves({
  published,
  proof,
  trust,
  holdings,
}: ReservesQuestion): Promise<VerifiedReserves> {
  const { statement, hash } = readStatement(
    (published as Partial<PublishedStatement> | null)?.statement,
  )
  const pinned = trust === undefined ? null : readTrust(trust)
  if (holdings !== undefined && pinned === null)
    throw new TypeError('verifying holdings requires the option trust')
  let signedBy: number[] | null = null
  if (pinned) {
    if (statement.mode !== pinned.network)
      wrong(`the statement is for another network mode: ${statement.mode}`)
    signedBy = signersOf(
      pinned,
      attestationText(hash),
      Array.isArray(published.signatures) ? published.signatures : [],
    )
    if (signedBy.length < SIGNATURES_NEEDED) {
      wrong(
        `the statement is signed by ${signedBy.length} of the pinned signer nodes; ${SIGNATURES_NEEDED} are required`,
      )
    }
  }
  const proven = proof === undefined ? [] : verifyProof(statement, proof, pinned)
  let addresses: number | null = null
  if (holdings !== undefined && pinned) {
    const { verifyHoldings } = await import('./holdings.ts')
    addresses = (await verifyHoldings(statement, holdings, pinned)).addresses.length
  }
  const short = statement.assets.filter((each) => surplusOf(each) < 0n).map(({ asset }) => asset)
  return { statement, hash, signed_by: signedBy, proven, addresses, short }
}
