import { join } from 'node:path'
import { RecordError } from '../store/entries/error.ts'
import { Store } from '../store/index.ts'
import { CLOCK_MS_MAX, peerClocks } from './check.ts'
import { SetupError } from './files.ts'

/**
 * Repairs a node whose clock was once hours ahead, by an order of its operator. Such a node rejects
 * requests until the real time has reached that value. The node must be stopped, and both peers
 * must report the same time as this host, so that a node cannot be set back to an earlier time.
 * Requests that were issued before the repair are rejected from then on.
 * @returns a line for the operator
 * @throws SetupError
 */
export async function repairClock(home: string): Promise<string> {
  for (const { node, offsetMs } of await peerClocks(home)) {
    if (Math.abs(offsetMs) <= CLOCK_MS_MAX) continue
    const seconds = Math.abs(Math.round(offsetMs / 1000))
    throw new SetupError(
      `the clock of signer node ${node} is ${seconds} s ${offsetMs > 0 ? 'ahead' : 'behind'}: synchronise both by NTP first`,
    )
  }
  let store: Store
  try {
    store = new Store(join(home, 'record.sqlite'), () => Date.now())
  } catch (error) {
    if (/locked|busy/i.test(String(error)))
      throw new SetupError('the node is running: stop it first')
    throw error
  }
  try {
    const { from, to } = store.repairClock()
    return `the clock was changed from ${new Date(from).toISOString()} to ${new Date(to).toISOString()}; start the node`
  } catch (error) {
    if (error instanceof RecordError) throw new SetupError(error.message)
    throw error
  } finally {
    store.close()
  }
}
