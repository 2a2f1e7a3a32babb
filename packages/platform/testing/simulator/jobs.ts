import { fork, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { SimulatedServer } from './setup-mode.ts'
import { playSeed, type SeedOptions, type SeedResult } from './play-seed.ts'

/** Runs seeds one after the other in this process. */
export async function* inThisProcess(
  first: number,
  count: number,
  terms: SeedOptions,
): AsyncGenerator<SeedResult> {
  const databaseServer = new SimulatedServer()
  const ended = (code: number) => () => void databaseServer.stop().finally(() => process.exit(code))
  process.once('SIGINT', ended(130))
  process.once('SIGTERM', ended(143))
  try {
    if (terms.mode === 'faults') await databaseServer.start()
    for (let seed = first; seed < first + count; seed++)
      yield await playSeed(databaseServer, seed, terms)
  } finally {
    await databaseServer.stop()
  }
}

/**
 * Runs seeds in several processes, each with a database server of its own, and yields their results
 * in order.
 */
export async function* inProcesses(
  first: number,
  count: number,
  jobs: number,
  terms: SeedOptions,
): AsyncGenerator<SeedResult> {
  const results = Array.from({ length: count }, () => Promise.withResolvers<SeedResult>())
  for (const { promise } of results) promise.catch(() => undefined)
  let next = first
  const children: ChildProcess[] = []
  const ended: Promise<void>[] = []
  for (let job = 0; job < Math.min(jobs, count); job++) {
    const child = fork(
      fileURLToPath(new URL('worker.ts', import.meta.url)),
      [JSON.stringify(terms)],
      { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] },
    )
    children.push(child)
    const give = () => (next < first + count ? child.send(next++) : child.send('end'))
    child.on('message', (message: SeedResult | 'ready') => {
      if (message !== 'ready') results[message.seed - first]?.resolve(message)
      give()
    })
    ended.push(
      new Promise((resolve) =>
        child.once('exit', (code, signal) => {
          if (code !== 0)
            for (const { reject } of results)
              reject(new Error(`a process of the simulation ended: ${String(signal ?? code)}`))
          resolve()
        }),
      ),
    )
  }
  try {
    for (const { promise } of results) yield await promise
  } finally {
    for (const child of children) if (child.connected) child.disconnect()
    await Promise.all(ended)
  }
}
