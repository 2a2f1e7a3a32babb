// Starts scripts with the Node that package.json pins, whatever version `npm` uses.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const OLDEST_MAJOR = 24

/** Folder of the package that contains the pinned Node for this platform. */
const PACKAGE = join(root, 'node_modules', `node-${process.platform}-${process.arch}`)

/** Path of the pinned Node; null if its package has no build for this platform. */
export const pinnedNode = () => {
  const binary = join(PACKAGE, 'bin', 'node')
  return existsSync(binary) ? binary : null
}

/**
 * Continues with the pinned Node: returns if this process already uses it, otherwise runs the
 * script again with it, forwards signals and exits with its status.
 */
export async function underPinnedNode(script) {
  const pinned = pinnedNode()
  const major = Number(process.versions.node.split('.')[0])
  if (pinned === null) {
    if (major >= OLDEST_MAJOR) return
    console.error(
      `Node ${process.versions.node} is too old to run this, and the pinned Node is not installed. ` +
        `Run: npm ci. Where npm has no package of it (macOS), install Node ${OLDEST_MAJOR}.`,
    )
    process.exit(1)
  }
  const { version } = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8'))
  if (version === process.versions.node) return
  const child = spawn(pinned, [script, ...process.argv.slice(2)], {
    stdio: 'inherit',
    cwd: process.cwd(),
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  const code = await new Promise((resolve) => {
    child.once('error', (error) => {
      console.error(`The pinned Node cannot be started: ${error.message}`)
      resolve(1)
    })
    child.once('exit', (status, signal) => resolve(signal ? 1 : status))
  })
  process.exit(code)
}
