import { appendFileSync, readFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

/**
 * Loaded before a test file. When its process ends, it records the processor seconds of the process
 * and of all descendants that were waited for. Without /proc, only those of the file's own process.
 */
const TICKS_PER_S = 100

function spentS() {
  try {
    // utime, stime, cutime, cstime; the second field, in brackets, may contain spaces.
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').pop().split(' ')
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_S
  } catch {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  }
}

const file = process.env.CUSTODY_TEST_TIMES
// Files that run together are recorded under the first one.
const [, own, first] = process.argv
const name = own?.endsWith('test-group.mjs') ? first : own
if (isMainThread && file)
  process.once('exit', () => appendFileSync(file, `${name}\t${spentS().toFixed(2)}\n`))
