import { RpcRefused } from '../rpc.ts'
import { isNotServed, type Report } from './report.ts'

/**
 * Adds the line `broadcast`. No transaction is sent: the check submits bytes that are not a
 * transaction, which the endpoint must reject as malformed.
 * @param submit submits them; returns true if they are accepted
 */
export async function checkBroadcast(
  report: Report,
  what: string,
  advice: string,
  submit: () => Promise<boolean>,
): Promise<void> {
  await report.check({ code: 'broadcast', what, advice }, async (say) => {
    let isAccepted = false
    try {
      isAccepted = await submit()
    } catch (error) {
      if (!(error instanceof RpcRefused) || isNotServed(error, report.questions.last)) throw error
    }
    if (isAccepted)
      throw new Error(
        `${what} accepts a malformed transaction: its other responses cannot be trusted`,
      )
    say.note(`${what} is served: it rejects a malformed transaction`)
  })
}
