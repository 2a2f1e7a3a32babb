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
  /** The sub-account's own; without it the statement alone is checked. */
  proof?: ReservesProof | undefined
  /** Whom to believe. Without it nobody's signature is checked, and `signed_by` is null. */
  trust?: Trust | undefined
  /** The list of addresses, as text; it needs `trust`. */
  holdings?: string | undefined
}

export interface VerifiedReserves {
  statement: Statement
  /** SHA-256 of the statement, hex: compare it with what others were shown. */
  hash: string
  /** Pinned nodes that signed it. */
  signed_by: number[] | null
  /**
   * Balances of the proof that are in what is owed. An asset that is missing here is not counted as
   * owed to its owner.
   */
  proven: ProvenBalance[]
  /** How many addresses were derived from certified keys; null: their list was not given. */
  addresses: number | null
  /** Assets of which more is owed than is held beside what is the operator's own. */
  short: string[]
}

const SIGNATURES_NEEDED = 2

/**
 * By how much each asset is covered: held without what is the operator's own, less what is owed.
 * Smallest unit; negative: short.
 */
export const surplusOf = ({ held, operating, owed }: Statement['assets'][number]): bigint =>
  BigInt(held) - BigInt(operating) - BigInt(owed)

/**
 * Checks a statement of reserves, who signed it, a sub-account's proof of what it is owed, and the
 * addresses that hold it, all of it offline. That more is owed than held is no error: read `short`.
 *
 * @throws VerificationError `RESERVES`, or what does not hold of trust, keys and addresses;
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
