import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { Devnet } from '../../../../../devnet/src/devnet.ts'
import { devnetControl } from '../../app/local/local.ts'
import { doctor } from './doctor.ts'
import type { Diagnosis } from './networks.ts'
import type { Finding } from './findings.ts'

/**
 * Tests of the doctor for a home with real local chains. Each chain starts at its first request,
 * and a health query does not start a chain.
 */
const folder = mkdtempSync(join(tmpdir(), 'custody-doctor-local-'))
const ENV = { ...process.env }
let home: string
let devnet: Devnet
before(async () => {
  devnet = await Devnet.start(join(folder, 'devnet'), 0, { manual: true })
})
after(() => {
  process.env = ENV
  devnet.close()
  rmSync(folder, { recursive: true, force: true })
})
beforeEach(() => {
  home = mkdtempSync(join(folder, 'home-'))
  process.env = { ...ENV, CUSTODY_HOME: home, CUSTODY_NETWORK: 'local', CUSTODY_PUBLIC_URL: '' }
  delete process.env['CUSTODY_LOCAL_CHAINS']
})

/** Returns the codes of the running local chains. */
async function running(): Promise<string[]> {
  const { networks } = (await devnetControl(devnet.url)({ command: 'info' })) as {
    networks: Record<string, { height: number | null }>
  }
  return Object.entries(networks)
    .filter(([, { height }]) => height !== null)
    .map(([code]) => code)
    .sort()
}
const examined = async () => {
  const { result, text, exitCode } = await doctor()
  const { networks, findings } = result as { networks: Diagnosis[]; findings: Finding[] }
  const states = (state: string) =>
    networks
      .filter((each) => each.state === state)
      .map(({ network }) => network)
      .sort()
  return { networks, findings, text: text.join('\n'), exitCode, states }
}

test('the doctor queries running local chains, and starts none', async () => {
  const before = await running()
  assert.ok(before.includes('ETH') && before.length < 5, before.join())
  process.env['CUSTODY_LOCAL_CHAINS'] = devnet.url
  const { networks, text, exitCode, states } = await examined()
  assert.deepEqual(await running(), before)
  assert.deepEqual(
    [states('ok'), states('not started').length],
    [before, networks.length - before.length],
  )
  assert.match(text, /^TRX +not started +it starts when it is first used$/m)
  assert.match(text, /^ETH +ok +127\.0\.0\.1:\d+, block \d+, \d+ ms$/m)
  assert.equal(exitCode, 0, text)
  // Another chain is used, and the doctor queries it from then on.
  await devnetControl(devnet.url)({ command: 'mine', network: 'DOGE', blocks: 1 })
  assert.deepEqual((await examined()).states('ok'), [...before, 'DOGE'].sort())
})

test('the doctor reports an error for a running chain that fails', async () => {
  process.env['CUSTODY_LOCAL_CHAINS'] = devnet.url
  const control = devnetControl(devnet.url)
  await control({ command: 'fault', network: 'ETH', mode: 'down' })
  try {
    const { states, exitCode } = await examined()
    assert.deepEqual([states('unreachable'), exitCode], [['ETH'], 1])
  } finally {
    await control({ command: 'fault', network: 'ETH', mode: 'heal' })
  }
})

test('without a running platform, the doctor checks only the data directory and writes nothing', async () => {
  const { networks, findings, text, exitCode, states } = await examined()
  assert.equal(states('not running').length, networks.length)
  assert.match(
    text,
    /^platform +WARNING: not running: chains, signer nodes, database and prices were not checked; start it with "npm start"$/m,
  )
  assert.match(text, /^disk /m)
  assert.doesNotMatch(text, /^(TRX|prices) /m)
  assert.deepEqual([findings.filter(({ level }) => level === 'error'), exitCode], [[], 0], text)
  assert.deepEqual(readdirSync(home), [])
})

test('the doctor does not accept another program at the local chains’ port as a chain', async () => {
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    response.end('<html>')
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  try {
    writeFileSync(
      join(home, 'ports.json'),
      JSON.stringify({ signers: [1, 2, 3], devnet: (server.address() as AddressInfo).port }),
    )
    const { networks, states } = await examined()
    assert.equal(states('not running').length, networks.length)
    assert.deepEqual(requests, ['POST /control'])
  } finally {
    await new Promise((resolve) => server.close(resolve))
  }
})

test('the doctor reports an error with the reason if configured local chains do not answer', async () => {
  process.env['CUSTODY_LOCAL_CHAINS'] = 'http://127.0.0.1:1'
  const { networks, text, exitCode, states } = await examined()
  assert.deepEqual([states('unreachable').length, exitCode], [networks.length, 1])
  assert.match(
    text,
    /^ETH +unreachable +http:\/\/127\.0\.0\.1:1 does not respond: .*; the local chains run while the platform runs: start it with "npm start"$/m,
  )
  assert.doesNotMatch(text, /^prices /m, 'a public source was asked in their place')
})
