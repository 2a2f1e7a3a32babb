import { appendFileSync, readFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

/**
 * Loaded before a test file: when its process ends it writes down how many seconds of a processor
 * it took, with all children that it, or they, have waited for. Where there is no /proc, the file's
 * own process alone.
 */
const TICKS_PER_S = 100

function spentS() {
  try {
    // utime, stime, cutime, cstime; the second field, in brackets, may hold spaces.
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').pop().split(' ')
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_S
  } catch {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  }
}

const file = process.env.CUSTODY_TEST_TIMES
// Of files that run together the first is named.
const [, own, first] = process.argv
const name = own?.endsWith('test-group.mjs') ? first : own
if (isMainThread && file)
  process.once('exit', () => appendFileSync(file, `${name}\t${spentS().toFixed(2)}\n`))
