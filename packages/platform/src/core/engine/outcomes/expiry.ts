import { traitsOf, type UnsignedTransaction, type Registry } from '@custody/chains'
import type { Chain } from '../chain.ts'
import { startFailing } from './fail.ts'
import { advance } from '../lease.ts'
import type { Environment } from '../../environment.ts'
import type { Database } from '../../database/pool.ts'
import type { Networks } from '../networks.ts'
import type { SignerNodes } from '../../signing/nodes.ts'
import type { Metrics } from '../../metrics.ts'
import type { Logger } from 'pino'
import type { Kinds } from '../interfaces/kind.ts'
import { generationOf, REORGANISED } from '../settlement.ts'
import { ASKED_FOR, type TransactionRow } from '../transaction.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  signers: SignerNodes
  metrics: Metrics
  log: Logger
  kinds: Kinds
}

interface Expiring {
  id: string
  hash: string
  valid_until: string | null
  account: string | null
  unsigned: UnsignedTransaction
}

/**
 * Whether the chain has neither nonces nor coins, so that no later transaction can make an expired
 * one permanently invalid.
 */
export const nothingExcludes = ({ network }: Chain): boolean => traitsOf(network).nothingExcludes

const AGAIN =
  'it expired before the chain included it; the amount was released, and it can be sent again as a new transfer'

const GONE = `${REORGANISED}: a reorganisation removed the block that contained it, and it can no longer be included; the amount was released, and it can be sent again as a new transfer`

/**
 * Gives up a signed transaction that has expired and that the chain proves to be absent. The
 * transfer is built again with the same nonce or the same coins, which excludes the first
 * transaction; on chains that have neither, the transfer fails.
 * @returns false if the transaction may still be included
 */
export async function buryDead(
  services: Services,
  row: TransactionRow,
  dead: Expiring,
): Promise<boolean> {
  if (dead.valid_until === null) return false
  const chain = services.networks.get(row.network)
  if (!(await chain.isDead?.(dead.hash, Number(dead.valid_until)))) return false
  const other = await chain.findSigned?.(
    dead.account ?? (row.source_id as string),
    dead.unsigned.bytes,
    Number(dead.valid_until),
  )
  if (other) {
    await adoptHash(services, row, dead, other)
    return true
  }
  const kind = services.kinds[row.kind]
  // A transfer that was confirmed once is not built again: its request is old, and its caller decides
  // whether to pay again.
  const isReorganised = generationOf(row) > 0 && ASKED_FOR.has(row.kind)
  // Whether the transfer is built again. The signer nodes sign nothing more for a transfer that was
  // adopted without its caller's request.
  const again =
    !isReorganised &&
    (kind.isAskedFor?.(row) ?? true) &&
    (!nothingExcludes(chain) || kind.retriesFailure === true)
  services.log.warn(
    { transaction: row.id, hash: dead.hash },
    `a transaction expired before it was included in a block; ${again ? 'it is built again' : 'the transfer fails'}`,
  )
  await services.database.transaction(async (tx) => {
    await tx.query(
      `update chain_transactions set state = 'EXPIRED', block_height = null, block_hash = null
      where workspace_id = $2 and id = $1`,
      [dead.id, row.workspace_id],
    )
    // The expired transaction's change will never exist.
    await tx.query(
      `update utxos set spendable = false, block_height = null
       where workspace_id = $3 and network = $1 and txid = $2 and origin = 'change'`,
      [row.network, dead.hash, row.workspace_id],
    )
    // On chains where nothing excludes the expired transaction, the signer nodes sign no other
    // transaction for this transfer.
    if (!again)
      return startFailing(
        services,
        tx,
        row,
        isReorganised
          ? GONE
          : kind.action?.(row)
            ? 'one of its transactions expired before the chain included it'
            : AGAIN,
      )
    await advance(tx, row, {
      state: 'QUEUED',
      confirmations: 0,
      last_error: 'it expired before the chain included it',
      run_in_ms: 0,
    })
  })
  services.environment.checkpoint('transaction.expired')
  return true
}

/**
 * Continues with another signature of the same message, which was published: the signer nodes may have
 * signed it twice, and the platform does not have that signature. The payment was made.
 */
async function adoptHash(
  services: Services,
  row: TransactionRow,
  dead: Expiring,
  other: { hash: string; raw: string },
): Promise<void> {
  const match = { transaction: row.id, hash: dead.hash, found: other.hash }
  services.log.error(
    match,
    'the transaction was published with another signature; the platform now uses that hash',
  )
  await services.database.transaction(async (tx) => {
    await tx.query(
      `update chain_transactions set hash = $2, signed = $3 where workspace_id = $4 and id = $1`,
      [dead.id, other.hash, other.raw, row.workspace_id],
    )
    const reason = 'it was published with another signature'
    await advance(tx, row, {
      state: 'CONFIRMING',
      hash: other.hash,
      last_error: reason,
      run_in_ms: 0,
    })
  })
}
