import { join } from 'node:path'
import { RecordError } from '../store/entries/error.ts'
import { Store } from '../store/index.ts'
import { CLOCK_MS_MAX, peerClocks } from './check.ts'
import { SetupError } from './files.ts'

/**
 * The operator's repair of a node whose clock was hours ahead once: it refuses requests until the
 * true time has come there. The node must stand still, and both peers must say the time that this
 * host says, so that nobody takes a node back to an earlier one. Requests issued before the repair
 * are refused from then on.
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
