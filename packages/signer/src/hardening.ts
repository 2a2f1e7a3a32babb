import inspector from 'node:inspector'

const OPENS = /^--inspect(-brk|-wait)?(=|$)/

/**
 * Returns why this process may not run a node of this mode; null: it may. Access to an inspector
 * allows reading the memory and running code.
 */
export function openedBy(
  mode: string,
  execArgv: readonly string[],
  nodeOptions = '',
  url = inspector.url(),
): string | null {
  if (mode === 'local') return null
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
export function keepInspectorClosed(mode: string, onSignal: () => void): void {
  if (mode !== 'local') process.on('SIGUSR1', onSignal)
}
