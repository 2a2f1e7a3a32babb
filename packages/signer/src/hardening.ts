import inspector from 'node:inspector'

const OPENS = /^--inspect(-brk|-wait)?(=|$)/

/**
 * Why this process may not run a node of this mode; null: it may. Whoever reaches an inspector
 * reads the memory and runs code.
 */
export function openedBy(
  mode: string,
  execArgv: readonly string[],
  nodeOptions = '',
  url = inspector.url(),
): string | null {
  if (mode === 'local') return null
  const told = (by: string) =>
    `an inspector is open (${by}), which gives full control over this node. Start the node without it; it is allowed with mode local only`
  const argument = execArgv.find((each) => OPENS.test(each))
  if (argument) return told(argument)
  const option = nodeOptions.split(/\s+/).find((each) => OPENS.test(each.replace(/^["']/, '')))
  if (option) return told(`NODE_OPTIONS ${option}`)
  return url === undefined ? null : told(url)
}

/** Node opens an inspector on SIGUSR1, unless somebody listens for it. */
export function keepInspectorClosed(mode: string, onSignal: () => void): void {
  if (mode !== 'local') process.on('SIGUSR1', onSignal)
}
