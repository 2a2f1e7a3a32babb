import { readdirSync, readFileSync } from 'node:fs'

/** What a process and all that descend from it have used of a processor, in seconds, by what they are. Linux only. */
export function cpuSeconds(root: number): Record<string, number> {
  const parents = new Map<number, number>()
  const used = new Map<number, { seconds: number; name: string }>()
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8')
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      const command = readFileSync(`/proc/${entry}/cmdline`, 'utf8').replaceAll('\0', ' ')
      parents.set(Number(entry), Number(fields[1]))
      // Of ended children too: PostgreSQL has many.
      const seconds = fields.slice(11, 13).reduce((sum, ticks) => sum + Number(ticks), 0) / 100
      used.set(Number(entry), { seconds, name: nameOf(command) })
    } catch { /* it has ended */ }
  }
  const isOurs = (pid: number): boolean => pid === root || (pid > 1 && parents.has(pid) && isOurs(parents.get(pid) as number))
  const sums: Record<string, number> = {}
  for (const [pid, { seconds, name }] of used) if (isOurs(pid)) sums[name] = (sums[name] ?? 0) + seconds
  return sums
}

function nameOf(command: string): string {
  if (command.includes('postgres')) return 'database'
  if (/signer\/src|node-[123]/.test(command)) return 'nodes'
  return command.includes('devnet') ? 'chains' : 'platform'
}
