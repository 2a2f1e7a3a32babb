import { prepareKeys } from '../../signer/testing/data-dirs.ts'
import { callerKey } from '../../signer/testing/prepared.ts'
import { SERVER_URL, startTestServer, type TestServer } from './test-database.ts'

/**
 * Runs before and after all test files of a run, in the process of the runner: starts the
 * PostgreSQL server that the files share, and creates the keys that all of them copy, so that they
 * do not create them concurrently.
 */
/** Environment variable that the runner sets to `1` if it runs files that use the real engine. */
export const NEEDS_REAL_KEYS = 'CUSTODY_TEST_REAL_KEYS'
let server: TestServer | null = null

export async function globalSetup(): Promise<void> {
  await callerKey()
  await prepareKeys('double')
  // The keys of the real engine take half a minute of processor time.
  if (process.env[NEEDS_REAL_KEYS] === '1') await prepareKeys()
  server = await startTestServer()
  process.env[SERVER_URL] = server.url
  // The run is ended by a signal. Nothing on the server is needed any more.
  process.prependOnceListener('exit', () => {
    const pid = server?.pid() ?? null
    if (pid !== null) process.kill(pid, 'SIGQUIT')
  })
}

export async function globalTeardown(): Promise<void> {
  await server?.remove()
  server = null
}
