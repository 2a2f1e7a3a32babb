import type { ExpectedTransfer, TransactionStatus } from '@custody/chains'
import type { Agreement } from './endpoint-group.ts'
import type { Services } from './services.ts'

type Included = Extract<TransactionStatus, { state: 'included' }>

/** Whether two endpoints tell the same of a transaction: its block, and its outcome. A fee counts where both tell it. */
const isSame = (a: Included, b: Included): boolean =>
  a.blockHash === b.blockHash && a.succeeded === b.succeeded && (a.fee === null || b.fee === null || a.fee === b.fee)
  && a.staking?.withdrawn === b.staking?.withdrawn

/**
 * Whether so many endpoints show a transaction in its block with its outcome as the network's operator wants (`quorum`). One that shows it
 * in no block yet is only behind. False without asking where it was asked a moment ago.
 */
export async function isAgreed(
  services: Services, agreement: Agreement, network: string, { hash, status, expected }: {
    hash: string; status: Included; expected: ExpectedTransfer | undefined
  },
): Promise<boolean> {
  if (!agreement.isDue(hash)) return false
  let count = 0
  for await (const { name, answer } of agreement.votes((client) => client.status(hash, expected))) {
    if (answer.state !== 'included') continue
    if (isSame(answer, status)) {
      if (++count >= agreement.quorum) return true
      continue
    }
    services.metrics.endpointDisagreements.labels(network, name).inc()
    services.log.error(
      { network, endpoint: name, hash, shown: status.blockHash, block: answer.blockHash, succeeded: answer.succeeded },
      'endpoints show a transaction in different blocks or with different outcomes')
  }
  return false
}
