import type { ChainTip, Network } from '@custody/chains'

/**
 * The highest block that is final once those up to `read` were read. Where depth decides, blocks
 * that an endpoint only tells of bury nothing; where the chain says what is final and its endpoint
 * does not, nothing is.
 */
export const finalAt = ({ confirmations }: Network, tip: ChainTip, read: number): number =>
  tip.finalHeight ?? (confirmations === null ? 0 : read - confirmations + 1)
