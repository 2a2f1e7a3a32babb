import type { Payment } from '../local-chain.ts'
import { contractPaymentOf } from './contract.ts'
import type { StellarLedger } from './rules.ts'
import { readKey } from './strkey.ts'

/** Returns the number or the text of a memo; a hash is not a tag. */
function tagOf(memo: unknown): string | null {
  if (typeof memo !== 'object' || memo === null) return null
  const { id, text } = memo as { id?: string | number; text?: string }
  return id !== undefined ? String(id) : (text ?? null)
}

/**
 * Returns the amounts that a ledger's payments and new accounts received. The number of a muxed
 * address is a tag too.
 */
export function paymentsOf({ transactions }: StellarLedger): Payment[] {
  return transactions.flatMap(({ tx: { hash, body: transaction }, outcome }) =>
    outcome.code !== 'tx_success'
      ? []
      : transaction.operations.flatMap(({ body }, index): Payment[] => {
          const { payment, create_account: create } = body
          const paid =
            payment?.['asset'] === 'native'
              ? { to: payment['destination']!, amount: payment['amount']! }
              : null
          const made = create
            ? { to: create['destination']!, amount: create['starting_balance']! }
            : null
          const { to, amount } = paid ?? made ?? contractPaymentOf(body) ?? {}
          const key = to === undefined ? undefined : readKey(to)
          if (!key || amount === undefined) return []
          const tag = key.id === null ? tagOf(transaction.memo) : key.id.toString()
          return [{ hash, index, asset: 'XLM', address: key.account, tag, amount: BigInt(amount) }]
        }),
  )
}
