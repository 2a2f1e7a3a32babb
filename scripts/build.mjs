// Builds everything that the platform needs besides the packages that `npm ci` installs. Commands
// run it on first use (scripts/built.mjs), and `npm run compile` runs it directly. Each step skips
// what is up to date. Concurrent builds wait for each other.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inputsHash, isBuilt, STAMP } from './built.mjs'
import { root, underPinnedNode } from './pinned-node.mjs'

await underPinnedNode(fileURLToPath(import.meta.url))

// Every user of the machine may read what is built, whatever the umask of the command that needs it.
process.umask(0o022)

const STEPS = [
  ['trim-install', 'remove unused files of the installed packages'],
  ['link-postgres', "create the links of PostgreSQL's libraries"],
  ['build-native', 'build the signing engine and the PKCS#11 addon (Rust: some minutes at first)'],
  ['build-sites', 'build the pages'],
]
const LOCK_TIMEOUT_MS = 3_600_000

/**
 * Waits until no other process builds this checkout. The lock is a SQLite transaction, which the
 * operating system ends with its process.
 */
async function lock() {
  // An older Node, which starts the pinned one above, has no SQLite to import.
  const { DatabaseSync } = await import('node:sqlite')
  const database = new DatabaseSync(`${STAMP}.lock`)
  try {
    database.exec('begin exclusive')
  } catch {
    console.error('another process builds this checkout: waiting for it')
    database.exec(`pragma busy_timeout = ${LOCK_TIMEOUT_MS}; begin exclusive`)
  }
  return database
}

mkdirSync(dirname(STAMP), { recursive: true })
const database = await lock()
if (isBuilt()) console.log('the checkout is built')
else {
  // Read before the build, so that a change during the build is detected.
  const hash = inputsHash()
  rmSync(STAMP, { force: true })
  for (const [index, [script, does]] of STEPS.entries()) {
    console.log(`build ${index + 1}/${STEPS.length}: ${does}`)
    const path = join(root, 'scripts', `${script}.mjs`)
    const { status } = spawnSync(process.execPath, [path], { cwd: root, stdio: 'inherit' })
    if (status !== 0) process.exit(1)
  }
  writeFileSync(STAMP, hash)
}
database.close()
