import { traitsOf, type ChainBlock, type ChainClient, type Network } from '@custody/chains'
import type { Chain } from '../engine/chain.ts'
import { finalAt } from '../engine/final.ts'
import type { Services } from '../engine/services.ts'
import { contentOf, occurrences } from './identity.ts'

/**
 * A deposit at its depth, as it was recorded. `position` -1: an account-based chain's native value.
 */
export interface DeepDeposit {
  id: string
  txid: string
  position: number
  address: string
  asset: string
  amount: string
  tag: string | null
  occurrence: number
  coinbase: boolean
}

/**
 * What one endpoint shows of a block: the deposits of ours that it holds there; null: no block of
 * that height is final to it yet. The depth is each endpoint's own: by the head of another one
 * block more would be final than it has.
 */
async function shownBy(
  client: ChainClient,
  network: Network,
  { height, hash }: Pick<ChainBlock, 'height' | 'hash'>,
  deposits: readonly DeepDeposit[],
): Promise<ReadonlySet<string> | null> {
  const tip = await client.tip()
  if (height > finalAt(network, tip, tip.height)) return null
  const block = await client.block(height)
  if (block === null) return null
  if (block.hash !== hash) return new Set()
  // A coin is spent by its place in its transaction; elsewhere a place is no part of what a deposit
  // is.
  const isCoin = traitsOf(network).deposits === 'spendable'
  const nameOf = (
    transfer: Parameters<typeof contentOf>[0] & { position: number; coinbase: boolean },
    occurrence: number,
  ) =>
    `${contentOf(transfer)} ${occurrence}${isCoin ? ` ${transfer.position} ${transfer.coinbase}` : ''}`
  const shown = new Set(
    [...occurrences(block.transfers)].map(([transfer, occurrence]) => nameOf(transfer, occurrence)),
  )
  const held = new Set<string>()
  for (const deposit of deposits) {
    if (!shown.has(nameOf({ ...deposit, amount: BigInt(deposit.amount) }, deposit.occurrence)))
      continue
    if (deposit.position === -1) {
      // Native value moves only if the transaction succeeded, which blocks do not tell.
      const status = await client.status(deposit.txid, undefined, { fee: false })
      if (status.state !== 'included' || status.blockHash !== hash || !status.succeeded) continue
    }
    held.add(deposit.id)
  }
  return held
}

/**
 * Which deposits of a block so many endpoints show as the network's operator wants (`quorum`); all
 * of them where one's word is enough. The others wait, and it is told who shows them not.
 */
export async function agreedDeposits<Deposit extends DeepDeposit>(
  services: Services,
  { network, agreement }: Pick<Chain, 'network' | 'agreement'>,
  block: Pick<ChainBlock, 'height' | 'hash'>,
  deposits: readonly Deposit[],
): Promise<readonly Deposit[]> {
  if (!agreement) return deposits
  if (!agreement.isDue(block.hash, true)) return []
  const votes = new Map(deposits.map(({ id }) => [id, 0]))
  const isAgreed = ({ id }: Deposit) => (votes.get(id) ?? 0) >= agreement.quorum
  for await (const { name, answer } of agreement.votes((client) =>
    shownBy(client, network, block, deposits),
  )) {
    for (const id of answer ?? []) votes.set(id, (votes.get(id) ?? 0) + 1)
    const missing = answer === null ? [] : deposits.filter(({ id }) => !answer.has(id))
    if (missing.length > 0) {
      services.metrics.endpointDisagreements.labels(network.code, name).inc()
      services.log.error(
        {
          network: network.code,
          endpoint: name,
          block: block.hash,
          deposits: missing.map(({ id }) => id),
        },
        'an endpoint does not return deposits that another returned',
      )
    }
    if (deposits.every(isAgreed)) break
  }
  return deposits.filter(isAgreed)
}
