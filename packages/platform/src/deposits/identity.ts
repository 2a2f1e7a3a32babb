import type { ChainTransfer } from '@custody/chains'

/** The tag that a deposit came with: senders also write its digits as a memo text. */
export function tagOf({ tag }: Pick<ChainTransfer, 'tag'>): string | null {
  return tag?.replace(/^text:(?=\d+$)/, '') ?? null
}

/** Transaction, address, asset, amount and tag of a transfer. */
export const contentOf = (
  transfer: Pick<ChainTransfer, 'txid' | 'address' | 'asset' | 'amount' | 'tag'>,
): string => {
  const { txid, address, asset, amount } = transfer
  return JSON.stringify([txid, address, asset, amount.toString(), tagOf(transfer)])
}

/**
 * Tells equal transfers of one transaction apart: their number among each other, in the order of
 * their positions. With transaction, address, asset, amount and tag it makes a deposit what it is.
 * A position alone does not: on EVM chains it is a log's place in its block, so that a
 * reorganisation puts another customer's transfer there.
 */
export function occurrences(transfers: readonly ChainTransfer[]): Map<ChainTransfer, number> {
  const seen = new Map<string, number>()
  return new Map(
    [...transfers]
      .sort((a, b) => a.position - b.position)
      .map((transfer) => {
        const content = contentOf(transfer)
        const number = seen.get(content) ?? 0
        seen.set(content, number + 1)
        return [transfer, number]
      }),
  )
}
