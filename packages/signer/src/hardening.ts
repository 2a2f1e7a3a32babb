import { type NetworkMode, hasLocalChains } from '@custody/chains/mode'
import { chmodSync, lstatSync, readdirSync } from 'node:fs'
import inspector from 'node:inspector'
import { join } from 'node:path'

const OPENS = /^--inspect(-brk|-wait)?(=|$)/

/**
 * Removes the rights of other users from everything in the home folder. Earlier versions relied on
 * the mode of the folder alone.
 */
export function closeContents(home: string): void {
  for (const entry of readdirSync(home, { withFileTypes: true })) {
    if (entry.isSymbolicLink()) continue
    const path = join(home, entry.name)
    const state = lstatSync(path, { throwIfNoEntry: false })
    if (!state) continue
    if ((state.mode & 0o077) !== 0) chmodSync(path, state.mode & 0o700)
    if (entry.isDirectory()) closeContents(path)
  }
}

const allowsInspector = (mode: NetworkMode): boolean => hasLocalChains(mode)

/**
 * Returns why this process may not run a node of this mode; null: it may. Access to an inspector
 * allows reading the memory and running code.
 */
export function openedBy(
  mode: NetworkMode,
  execArgv: readonly string[],
  nodeOptions = '',
  url = inspector.url(),
): string | null {
  if (allowsInspector(mode)) return null
  const reportOf = (by: string) =>
    `an inspector is open (${by}), which gives full control over this node. Start the node without it; it is allowed with mode local only`
  const argument = execArgv.find((each) => OPENS.test(each))
  if (argument) return reportOf(argument)
  const option = nodeOptions.split(/\s+/).find((each) => OPENS.test(each.replace(/^["']/, '')))
  if (option) return reportOf(`NODE_OPTIONS ${option}`)
  return url === undefined ? null : reportOf(url)
}

/**
 * Prevents Node from opening an inspector on SIGUSR1, which it does unless there is a listener for
 * the signal.
 */
export function keepInspectorClosed(mode: NetworkMode, onSignal: () => void): void {
  if (!allowsInspector(mode)) process.on('SIGUSR1', onSignal)
}
