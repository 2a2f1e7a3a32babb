import { traitsOf, type ChainBlock, type ChainClient, type Network } from '@custody/chains'
import type { Chain } from '../../core/engine/chain.ts'
import { finalAt } from '../../core/engine/outcomes/final.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { Logger } from 'pino'
import { contentOf, occurrences } from './identity.ts'

interface Services {
  metrics: Metrics
  log: Logger
}

/** A recorded deposit at its depth. `position` -1: native value of an account-based chain. */
export interface ConfirmedDeposit {
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
 * Returns the ids of those given deposits that one endpoint reports in a block; null if the
 * endpoint has no final block at that height yet. Each endpoint is judged by its own head: with the
 * head of another endpoint, a block that it does not have could appear final.
 */
async function shownBy(
  client: ChainClient,
  network: Network,
  { height, hash }: Pick<ChainBlock, 'height' | 'hash'>,
  deposits: readonly ConfirmedDeposit[],
): Promise<ReadonlySet<string> | null> {
  const tip = await client.tip()
  if (height > finalAt(network, tip, tip.height)) return null
  const block = await client.block(height)
  if (block === null) return null
  if (block.hash !== hash) return new Set()
  // A coin is spent by its position in its transaction. On other chains the position does not
  // identify a deposit.
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
      // Native value moves only if the transaction succeeded, and blocks do not contain whether it
      // did.
      const status = await client.status(deposit.txid, undefined, { fee: false })
      if (status.state !== 'included' || status.blockHash !== hash || !status.succeeded) continue
    }
    held.add(deposit.id)
  }
  return held
}

/**
 * Returns the deposits of a block that a quorum of endpoints reports; all of them if one endpoint
 * is sufficient. The other deposits wait, and the endpoints that do not report them are logged.
 */
export async function depositsConfirmedByQuorum<Deposit extends ConfirmedDeposit>(
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
