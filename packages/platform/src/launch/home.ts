import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Makes the data folder, closed to others, and takes it for this process. */
export function takeHome(home: string): () => void {
  mkdirSync(home, { recursive: true, mode: 0o700 })
  chmodSync(home, 0o700)
  const file = join(home, 'platform.pid')
  if (existsSync(file)) {
    const pid = Number(readFileSync(file, 'utf8'))
    if (Number.isInteger(pid) && pid > 1 && pid !== process.pid && isPlatform(pid)) throw new Error(`the platform runs on ${home} already (process ${pid}); stop it first or set another CUSTODY_HOME`)
  }
  writeFileSync(file, String(process.pid), { mode: 0o600 })
  return () => rmSync(file, { force: true })
}

function isPlatform(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return existsSync(`/proc/${pid}/cmdline`) ? readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('platform/src/') : true
  } catch {
    return false
  }
}
