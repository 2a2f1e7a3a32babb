import { KekError } from '@custody/key-encryption'
import type { Vault } from '@custody/threshold'
import { rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../config.ts'
import { createServer } from '../http.ts'
import type { Log } from '../log.ts'
import { reason } from '../log.ts'
import { answer } from '../transport/body.ts'
import { openDataDir } from './data-dir.ts'

const PAUSE_MS = 1000
const PAUSE_MS_MAX = 30_000

/** Binds a node's operator socket. */
type Listen = (server: ReturnType<typeof createServer>, path: string) => Promise<void>

/**
 * Opens the data folder's vault as soon as the key-encryption provider responds. Until then the
 * operator socket reports what the node waits for, and the port stays closed, so that platform and
 * peers treat this node as unavailable and use the other two. Errors that waiting cannot resolve
 * (no permission, a different key, a setting) are thrown immediately.
 */
export async function awaitVault(
  config: Config,
  env: NodeJS.ProcessEnv,
  log: Log,
  now: () => number,
  listen: Listen,
): Promise<Vault> {
  let waitingFor = ''
  const since = new Date(now()).toISOString()
  const server = createServer((request, response) => {
    const isStatus = request.url === '/status'
    request.resume()
    answer(
      response,
      isStatus ? 200 : 503,
      JSON.stringify(
        isStatus
          ? { node: config.node, ready: false, mode: config.mode, waiting_for: waitingFor, since }
          : {
              error: 'STARTING',
              rule: 0,
              message: `This node waits for its key-encryption key: ${waitingFor}`,
            },
      ),
    )
  })
  try {
    for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX)) {
      try {
        const vault = await openDataDir(config.home, config, env)
        if (waitingFor) log('info', 'the key-encryption key is available', {})
        return vault
      } catch (error) {
        if (!(error instanceof KekError) || error.code !== 'AWAY') throw error
        waitingFor = error.message
        log('warn', 'waiting for the key-encryption key; this node signs nothing until then', {
          reason: reason(error),
          again_ms: pauseMs,
        })
      }
      if (!server.listening) await listen(server, config.socket)
      await sleep(pauseMs)
    }
  } finally {
    if (server.listening) {
      server.closeAllConnections()
      await new Promise((resolve) => {
        server.close(resolve)
      })
      rmSync(config.socket, { force: true })
    }
  }
}
