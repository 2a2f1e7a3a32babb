import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'

/** Returns the command line of a running process, or '' if it does not exist. */
function commandLine(pid: number): string {
  if (existsSync('/proc/self/cmdline')) {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
        .replaceAll('\0', ' ')
        .replaceAll('\n', ' ')
        .trim()
    } catch {
      return ''
    }
  }
  return (
    spawnSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], {
      encoding: 'utf8',
    }).stdout?.trim() ?? ''
  )
}

/**
 * Ends a process that a killed run left behind. The pid may have been reused since, so the process
 * is ended only if its command line equals the one that was stored with the pid.
 */
export async function endLeftover(pidFile: string): Promise<void> {
  const [first = '', command = ''] = existsSync(pidFile)
    ? readFileSync(pidFile, 'utf8').split('\n')
    : []
  const pid = Number(first)
  if (Number.isInteger(pid) && pid > 1 && pid !== process.pid && command !== '') {
    for (let attempt = 0; attempt < 100 && commandLine(pid) === command; attempt += 1) {
      try {
        process.kill(pid, attempt < 20 ? 'SIGTERM' : 'SIGKILL')
      } catch {
        break
      }
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  rmSync(pidFile, { force: true })
}

export function writePidFile(path: string, pid: number): void {
  writeFileSync(path, `${pid}\n${commandLine(pid)}`, { mode: 0o600 })
}
