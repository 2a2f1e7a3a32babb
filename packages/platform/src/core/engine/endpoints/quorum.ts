import type { ChainClient, ExpectedTransfer, Network, TransactionStatus } from '@custody/chains'
import type { Agreement } from './agreement.ts'
import { finalAt } from '../outcomes/final.ts'
import type { Metrics } from '../../metrics.ts'
import type { Logger } from 'pino'

interface Services {
  metrics: Metrics
  log: Logger
}

type Included = Extract<TransactionStatus, { state: 'included' }>

/**
 * Whether two endpoints report the same block and outcome of a transaction. Fees are compared only
 * if both report one.
 */
const isSame = (a: Included, b: Included): boolean =>
  a.blockHash === b.blockHash &&
  a.height === b.height &&
  a.succeeded === b.succeeded &&
  (a.fee === null || b.fee === null || a.fee === b.fee) &&
  a.staking?.withdrawn === b.staking?.withdrawn

/**
 * Whether at least `quorum` endpoints report a transaction in its block with its outcome, and with
 * `isFinal` each of them reports the block as final. An endpoint that does not report the
 * transaction in a block, or not as final, is taken to lag behind. Returns false without querying
 * if the same hash was queried a moment ago.
 * @param client the client that reported the status; its endpoint is distrusted if a quorum agrees
 *   on another final status
 */
export async function isConfirmedByQuorum(
  services: Services,
  agreement: Agreement,
  network: Network,
  {
    client,
    hash,
    status,
    expected,
    isFinal,
  }: {
    client: ChainClient
    hash: string
    status: Included
    expected: ExpectedTransfer | undefined
    isFinal: boolean
  },
): Promise<boolean> {
  if (!agreement.isDue(hash)) return false
  let count = 0
  const others: { answer: Included; count: number }[] = []
  const votes = agreement.votes(async (each) => {
    // The head is read first: with a head read later, a block that was reorganised in between could
    // appear final.
    const tip = isFinal ? await each.tip() : null
    const answer = await each.status(hash, expected)
    return answer.state !== 'included' || (tip && answer.height > finalAt(network, tip, tip.height))
      ? null
      : answer
  })
  for await (const { name, answer } of votes) {
    if (answer === null) continue
    if (isSame(answer, status)) {
      if (++count >= agreement.quorum) return true
      continue
    }
    services.metrics.endpointDisagreements.labels(network.code, name).inc()
    services.log.error(
      {
        network: network.code,
        endpoint: name,
        hash,
        shown: status.blockHash,
        block: answer.blockHash,
        succeeded: answer.succeeded,
      },
      'endpoints return a transaction in different blocks or with different outcomes',
    )
    let other = others.find((each) => isSame(each.answer, answer))
    if (!other) others.push((other = { answer, count: 0 }))
    if (++other.count < agreement.quorum || !isFinal) continue
    agreement.distrust(
      client,
      `${agreement.quorum} other endpoints return ${hash} in another block or with another outcome`,
    )
    return false
  }
  return false
}
