import type { Purpose } from '../signing/sign.ts'
import type { Replacement } from './replacement.ts'
import type { Kinds } from './interfaces/kind.ts'
import type { TransactionRow } from './transaction.ts'

interface Services {
  kinds: Kinds
}

/**
 * Returns the purpose that authorises the signer nodes to sign a transaction or its replacement, as
 * determined by its kind.
 */
export async function askPurpose(
  services: Services,
  row: TransactionRow,
  replacement?: Replacement,
): Promise<Purpose> {
  const purpose = await services.kinds[row.kind].purpose?.(
    row,
    replacement,
    (other, otherReplacement) => askPurpose(services, other, otherReplacement),
  )
  if (!purpose) throw new Error(`a transaction of the kind ${row.kind} is never signed`)
  return purpose
}
