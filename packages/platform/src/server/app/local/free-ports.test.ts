import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { freePorts } from './free-ports.ts'

const MODULE = new URL('./free-ports.ts', import.meta.url).href
const COUNT = 20

/** Listens on a port. Returns a function that closes the server. */
async function listen(port: number): Promise<() => void> {
  const server = createServer().listen(port, '127.0.0.1')
  await once(server, 'listening')
  return () => {
    server.close()
  }
}

test('processes that search for ports concurrently get different ports before servers listen', async (t) => {
  const [from] = (await freePorts(1)) as [number]
  const script = `const { freePorts } = await import(${JSON.stringify(MODULE)})
    process.stdout.write(JSON.stringify(await freePorts(${COUNT}, ${from})))
    process.stdout.end()
    process.stdin.resume()`
  const children = Array.from({ length: 3 }, () =>
    spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['pipe', 'pipe', 'inherit'],
    }),
  )
  t.after(() => {
    for (const child of children) child.kill('SIGKILL')
  })
  const ports = (await Promise.all(children.map((child) => text(child.stdout)))).flatMap(
    (each) => JSON.parse(each) as number[],
  )
  assert.equal(new Set(ports).size, 3 * COUNT)
  assert.ok(!ports.includes(from), 'the port of this process is reserved too')
  // A reserved port has no TCP socket yet, so a server can listen on each of them.
  for (const port of ports) (await listen(port))()
})

test('concurrent calls of one process get different ports', async () => {
  const ports = (await Promise.all([freePorts(10), freePorts(10), freePorts(10)])).flat()
  assert.equal(new Set(ports).size, 30)
})

test('a port on which a server listens is skipped', async () => {
  const [busy] = (await freePorts(1)) as [number]
  const script = `const { freePorts } = await import(${JSON.stringify(MODULE)}); console.log(await freePorts(1, ${busy}))`
  const close = await listen(busy)
  try {
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    assert.doesNotMatch(await text(child.stdout), new RegExp(`\\b${busy}\\b`))
  } finally {
    close()
  }
})
