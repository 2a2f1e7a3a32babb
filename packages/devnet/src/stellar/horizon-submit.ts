import type { Faults } from '../faults.ts'
import type { StellarChain } from './chain.ts'
import { Problem } from './horizon-problem.ts'
import type { StellarPlace } from './horizon-records.ts'
import {
  NotATransaction,
  readTransaction,
  resultXdr,
  type Outcome,
  type StellarTransaction,
} from './rules.ts'

/** Maximum time in milliseconds that Horizon waits until a ledger contains the transaction. */
const WAIT_MS = 30_000

/**
 * Submits a transaction and waits for its ledger. Undefined closes the connection without a
 * response.
 * @throws Problem
 */
export async function submitTransaction(
  chain: StellarChain,
  faults: Faults,
  envelope: string | null,
): Promise<StellarPlace | undefined> {
  let tx: StellarTransaction
  try {
    tx = readTransaction(envelope ?? '')
  } catch (error) {
    if (!(error instanceof NotATransaction)) throw error
    throw new Problem(
      400,
      'transaction_malformed',
      'Transaction Malformed',
      'Horizon could not decode the transaction envelope in this request.',
      { envelope_xdr: envelope },
    )
  }
  if (faults.mode === 'reject')
    throw new Problem(
      503,
      'server_over_capacity',
      'Server Over Capacity',
      'This horizon server is currently overloaded. Please wait for several minutes before trying your request again.',
    )
  const { ledgers } = chain
  const deadline = Date.now() + WAIT_MS
  // A repeated submission returns the result of the first one.
  if (!ledgers.places.has(tx.hash) && !ledgers.waiting.some(({ hash }) => hash === tx.hash)) {
    // An account can have one waiting transaction; the next one waits for the ledger.
    while (ledgers.waiting.some(({ account }) => account === tx.account))
      await nextLedger(chain, deadline)
    const { verdict, outcome } = ledgers.submit(tx)
    if (verdict !== 'in') throw failed(tx, outcome)
  }
  if (faults.mode === 'drop-answer') return undefined
  while (!ledgers.places.has(tx.hash)) await nextLedger(chain, deadline)
  const place = ledgers.places.get(tx.hash) as StellarPlace
  if (place.outcome.code !== 'tx_success') throw failed(tx, place.outcome)
  return place
}

async function nextLedger({ ledgers }: StellarChain, deadline: number): Promise<void> {
  let end = () => {}
  const closed = new Promise<boolean>((resolve) => {
    const timer = setTimeout(() => resolve(false), Math.max(0, deadline - Date.now())).unref()
    const unwatch = ledgers.watch(() => resolve(true))
    end = () => {
      clearTimeout(timer)
      unwatch()
    }
  })
  const inTime = await closed.finally(() => end())
  if (!inTime)
    throw new Problem(
      504,
      'timeout',
      'Timeout',
      'Your request timed out before completing. Please try your request again.',
    )
}

function failed(tx: StellarTransaction, outcome: Outcome): Problem {
  const operations =
    outcome.operations === null ? {} : { operations: outcome.operations.map(operationCode) }
  return new Problem(
    400,
    'transaction_failed',
    'Transaction Failed',
    'The transaction failed when submitted to the stellar network. ' +
      'The `extras.result_codes` field on this response contains further details.',
    {
      envelope_xdr: tx.raw,
      result_codes: { transaction: outcome.code, ...operations },
      result_xdr: resultXdr(outcome),
    },
  )
}

/** Converts `{op_inner: {payment: 'underfunded'}}` to Horizon's form `op_underfunded`. */
function operationCode(result: unknown): string {
  if (typeof result === 'string') return result
  const [code = 'failed'] = Object.values(
    (result as { op_inner: Record<string, unknown> }).op_inner,
  ).map(String)
  return code === 'already_exist' ? 'op_already_exists' : `op_${code}`
}
