import type { ChainTip, Network } from '@custody/chains'

/**
 * Returns the height of the highest final block once blocks up to `read` have been read. Where
 * finality is defined by depth, blocks that an endpoint only reports do not count. Where the chain
 * itself defines finality but the endpoint does not report it, no block is final.
 */
export const finalAt = ({ confirmations }: Network, tip: ChainTip, read: number): number =>
  tip.finalHeight ?? (confirmations === null ? 0 : read - confirmations + 1)
