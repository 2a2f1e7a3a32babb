import { mkdirSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { Devnet } from './devnet.ts'
import { endLeftover, writePidFile } from './processes.ts'

/** Maximum pace. Beyond it, producing a block takes longer than the pause between two. */
const PACE_MAX = 100

const { values } = parseArgs({
  options: {
    home: { type: 'string' },
    port: { type: 'string', default: '0' },
    manual: { type: 'boolean', default: false },
    pace: { type: 'string', default: '1' },
    host: { type: 'string', default: '127.0.0.1' },
  },
})
const port = Number(values.port)
const pace = Number(values.pace)
if (
  values.home === undefined ||
  !Number.isInteger(port) ||
  port < 0 ||
  port > 65_535 ||
  !(pace >= 1 && pace <= PACE_MAX)
) {
  console.error('usage: main.ts --home DIR --port N [--host ADDRESS] [--manual] [--pace N]')
  process.exit(1)
}

const home = resolve(values.home)
mkdirSync(home, { recursive: true, mode: 0o700 })
const pidFile = join(home, 'devnet.pid')
// A previous process whose parent was killed may still be closing. Two writers would damage the
// journals.
await endLeftover(pidFile)
writePidFile(pidFile, process.pid)

let devnet: Devnet | undefined
function end(code: number): void {
  devnet?.close()
  rmSync(pidFile, { force: true })
  process.exit(code)
}
process.once('SIGTERM', () => end(0))
process.once('SIGINT', () => end(0))
// The launcher has the other end of stdin, so the chains stop whenever it ends, for whatever
// reason.
process.stdin.once('end', () => end(0))
process.stdin.once('close', () => end(0))
process.stdin.once('error', () => end(0))
process.stdin.resume()

try {
  devnet = await Devnet.start(home, port, { manual: values.manual, pace, host: values.host })
  process.stdout.write(`devnet ready ${devnet.url}\n`)
} catch (error) {
  console.error(`devnet: ${(error as Error).message}`)
  end(1)
}
