import { readdirSync, readFileSync } from 'node:fs'

/**
 * Returns the processor time in seconds that a process and all its descendants have used, by kind
 * of process. Linux only.
 */
export const cpuSeconds = (root: number): Record<string, number> =>
  summed(root, ({ seconds }) => seconds)

/** Returns the memory of these processes in MB; shared pages count proportionally. Linux only. */
export const memoryMb = (root: number): Record<string, number> =>
  summed(root, ({ pid }) => {
    try {
      return (
        Number(/^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]) /
        1024
      )
    } catch {
      return 0 // The process has ended since it was listed.
    }
  })

function summed(
  root: number,
  of: (process: { pid: number; seconds: number }) => number,
): Record<string, number> {
  const parents = new Map<number, number>()
  const used = new Map<number, { seconds: number; name: string }>()
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8')
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      const command = readFileSync(`/proc/${entry}/cmdline`, 'utf8').replaceAll('\0', ' ')
      parents.set(Number(entry), Number(fields[1]))
      // Includes ended child processes, of which PostgreSQL has many.
      const seconds = fields.slice(11, 13).reduce((sum, ticks) => sum + Number(ticks), 0) / 100
      used.set(Number(entry), { seconds, name: nameOf(command) })
    } catch {
      /* The process has ended. */
    }
  }
  const isOurs = (pid: number): boolean =>
    pid === root || (pid > 1 && parents.has(pid) && isOurs(parents.get(pid) as number))
  const sums: Record<string, number> = {}
  for (const [pid, { seconds, name }] of used)
    if (isOurs(pid)) sums[name] = (sums[name] ?? 0) + of({ pid, seconds })
  return sums
}

function nameOf(command: string): string {
  if (command.includes('postgres')) return 'database'
  if (command.startsWith('npm ')) return 'npm'
  if (/signer\/src|node-[123]/.test(command)) return 'nodes'
  return command.includes('devnet') ? 'chains' : 'platform'
}
