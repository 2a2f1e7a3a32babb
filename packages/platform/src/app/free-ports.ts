import { createServer } from 'node:net'

/** Below what systems give to connections that go out (Linux from 32768 on), which would take a port before it is listened at. */
const [FIRST, LAST] = [15_000, 32_000]
/** Each process looks in a part of its own first, so that two that look at once do not find the same. */
const PART = 40
let next = FIRST + (process.pid * PART) % (LAST - FIRST)

const isFree = (port: number): Promise<boolean> => new Promise((resolve) => {
  const server = createServer()
  server.once('error', () => resolve(false))
  server.listen(port, '127.0.0.1', () => { server.close(() => resolve(true)) })
})

/** Ports of 127.0.0.1 that nobody listens at, for a process that is still to be started. @throws Error where too few are free */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = []
  for (let tried = 0; ports.length < count; tried++) {
    if (tried >= LAST - FIRST) throw new Error(`no port from ${FIRST} to ${LAST} is free`)
    const port = next
    next = next + 1 < LAST ? next + 1 : FIRST
    if (await isFree(port)) ports.push(port)
  }
  return ports
}
