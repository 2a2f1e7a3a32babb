import type { SimulatedEnvironment } from './environment.ts'

/**
 * Matches faults that interrupt an attempt or delay it beyond its lease, so that another delivery
 * may come first.
 */
const DISTURBS = /^(a process|all connections)/

/**
 * Checks that every event reaches every subscriber at least once. First deliveries of one object
 * come in order, unless a process ended between taking a delivery and making it.
 */
export async function wrongInEvents(environment: SimulatedEnvironment): Promise<string[]> {
  const problems: string[] = []
  const isDisturbed = [...environment.faults.keys()].some((kind) => DISTURBS.test(kind))
  const hooks = await environment.database.query<{
    url: string
    workspace_id: string
    sub_account_id: string
    after_event: string
    disabled_at: Date | null
  }>(
    `select url, workspace_id, sub_account_id, after_event::text, disabled_at from webhooks
      where invoice_origin is null`,
  )
  for (const hook of hooks) {
    const received = environment.externalServices.received.filter(
      ({ webhook }) => webhook === hook.url,
    )
    const seen = new Set<string>()
    const taken = received.filter(({ isTaken }) => isTaken).map(({ event }) => event)
    const versions = new Map<string, number>()
    for (const { event, object, version } of received) {
      if (seen.has(event)) continue
      seen.add(event)
      if (!isDisturbed && version < (versions.get(object) ?? 0))
        problems.push(`${object}: its event ${version} came after ${String(versions.get(object))}`)
      versions.set(object, Math.max(version, versions.get(object) ?? 0))
    }
    if (hook.disabled_at !== null) continue
    const missing = await environment.database.query<{ uid: string; type: string }>(
      `select uid, type from events
       where workspace_id = $4 and (sub_account_id = $1 or sub_account_id is null) and id > $2
         and not (uid = any($3))`,
      [hook.sub_account_id, hook.after_event, taken, hook.workspace_id],
    )
    if (missing.length > 0)
      problems.push(`events that nobody was told of: ${JSON.stringify(missing).slice(0, 500)}`)
  }
  return problems
}
