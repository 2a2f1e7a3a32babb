import { traitsOf, type ChainTransfer, type Network } from '@custody/chains'

/**
 * Returns the tag of a transfer. A memo text that consists of digits counts as a numeric tag,
 * because senders write tags that way too.
 */
export function tagOf({ tag }: Pick<ChainTransfer, 'tag'>): string | null {
  return tag?.replace(/^text:(?=\d+$)/, '') ?? null
}

/** Returns a string of a transfer's transaction, address, asset, amount and tag. */
export const contentOf = (
  transfer: Pick<ChainTransfer, 'txid' | 'address' | 'asset' | 'amount' | 'tag'>,
): string => {
  const { txid, address, asset, amount } = transfer
  return JSON.stringify([txid, address, asset, amount.toString(), tagOf(transfer)])
}

/**
 * Identifies a transfer within a block. A coin is spent by its position in its transaction. On other
 * chains the position does not identify a deposit.
 */
export function nameInBlock(
  network: Network,
  transfer: Parameters<typeof contentOf>[0] & { position: number; coinbase: boolean },
  occurrence: number,
): string {
  const isCoin = traitsOf(network).deposits === 'spendable'
  return `${contentOf(transfer)} ${occurrence}${isCoin ? ` ${transfer.position} ${transfer.coinbase}` : ''}`
}

/** Columns of a recorded deposit that identify it within its block. */
export interface RecordedPayment {
  txid: string
  position: number
  address: string
  asset: string
  amount: string
  tag: string | null
  occurrence: number
  coinbase: boolean
}

/** Like {@link nameInBlock}, of a recorded deposit. */
export const recordedName = (network: Network, deposit: RecordedPayment): string =>
  nameInBlock(network, { ...deposit, amount: BigInt(deposit.amount) }, deposit.occurrence)

/**
 * First number of what contracts paid. These payments are numbered separately from the plain
 * transfers of their transaction, because not every endpoint reports them: the identity of a plain
 * deposit must not depend on it. No transaction has as many plain transfers.
 */
export const FRAMES_FROM = 1_000_000

/**
 * Numbers equal transfers of one transaction, in the order of their positions, and equal payments
 * of contracts from {@link FRAMES_FROM}. Together with transaction, address, asset, amount and tag,
 * the number identifies a deposit. A position alone does not: on EVM chains it is the index of a log
 * in its block, so after a reorganisation another customer's transfer may have it.
 */
export function occurrences(transfers: readonly ChainTransfer[]): Map<ChainTransfer, number> {
  const [plain, frames] = [new Map<string, number>(), new Map<string, number>()]
  return new Map(
    [...transfers]
      .sort((a, b) => a.position - b.position)
      .map((transfer) => {
        const content = contentOf(transfer)
        const seen = transfer.frame ? frames : plain
        const number = seen.get(content) ?? 0
        seen.set(content, number + 1)
        return [transfer, transfer.frame ? FRAMES_FROM + number : number]
      }),
  )
}
