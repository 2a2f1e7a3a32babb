import type { SignedRequest } from '@custody/request-auth'
import type { Signing } from './signing.ts'

const RECEIPT_TIMEOUT_MS = 5000

/** Shows a request to all nodes and keeps their signed receipts with what it asked for. Failures are only logged. */
export async function collectReceipts(
  services: Signing, id: string, request: SignedRequest, table: 'transactions' | 'replacements' = 'transactions'
): Promise<void> {
  const answers = await Promise.allSettled(
    services.signers.peers.map(
      ({ node }) => services.signers.call<Record<string, unknown>>(node, 'POST', '/receipt', { request }, RECEIPT_TIMEOUT_MS)
    )
  )
  const receipts = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []))
  try {
    if (receipts.length > 0) {
      await services.database.query(`update ${table} set receipts = $2 where id = $1`, [id, JSON.stringify(receipts)])
    }
  } catch (error) {
    services.log.warn({ err: error, [table]: id }, 'receipts were not stored')
  }
}
