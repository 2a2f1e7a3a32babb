import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, mock, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeCertificate } from '../../../../signer/src/set-up/certificate.ts'
import { renewCertificate } from '../../../../signer/src/set-up/renew.ts'
import { SignerCluster } from '../../../../signer/testing/signer-cluster.ts'
import { collectNodes } from '../../server/app/health/collectors/nodes.ts'
import { systemEnvironment } from '../environment.ts'
import { createMetrics } from '../metrics.ts'
import {
  certificateLines,
  diagnoseCertificates,
} from '../../server/operator/doctor/certificates.ts'
import { NodeUnavailable, SignerNodes } from './nodes.ts'

/**
 * Tests of the expiry of TLS certificates: the platform's own and those of three real nodes. Node
 * 2's certificate expires soon, and node 3's has expired.
 */
const DAY_MS = 86_400_000
let cluster: SignerCluster
let folder: string
const open: SignerNodes[] = []

async function replace(home: string, fromNowDays: number): Promise<void> {
  const key = readFileSync(join(home, 'tls.key'), 'utf8')
  const start = Math.min(0, fromNowDays - 1)
  const certificate = await makeCertificate({
    key,
    name: 'custody test',
    nowMs: Date.now() + start * DAY_MS,
    days: fromNowDays - start,
  })
  writeFileSync(join(home, 'tls.crt'), certificate)
}

const connect = (clock?: () => number): SignerNodes => {
  const signers = new SignerNodes(folder, clock)
  open.push(signers)
  return signers
}
const status = (signers: SignerNodes, node: number) =>
  signers.call<{ node: number; certificate_expires_at: string }>(
    node,
    'GET',
    '/status',
    undefined,
    5000,
  )
const expiryOf = (home: string): Date =>
  new X509Certificate(readFileSync(join(home, 'tls.crt'))).validToDate

before(async () => {
  cluster = await SignerCluster.start({
    engine: 'double',
    beforeStart: async (parent) => {
      await replace(join(parent, 'node-2'), 20)
      await replace(join(parent, 'node-3'), -2)
    },
  })
  folder = join(cluster.home, 'platform')
})
after(async () => {
  for (const signers of open) signers.close()
  await cluster.stop()
})

test('a call to a node with an expired certificate reports the expiry date', async () => {
  const signers = connect()
  assert.equal((await status(signers, 1)).node, 1)
  assert.equal((await status(signers, 2)).node, 2)
  await assert.rejects(
    status(signers, 3),
    (error) =>
      error instanceof NodeUnavailable &&
      /signer 3: the TLS certificate expired on \d{4}-\d\d-\d\d$/.test(error.message),
  )
  const { platform, nodes } = signers.certificateExpiries()
  assert.deepEqual(
    [1, 2, 3].map((node) => nodes.get(node)),
    [1, 2, 3].map((node) => expiryOf(join(cluster.home, `node-${node}`))),
  )
  assert.deepEqual(platform, expiryOf(folder))
})

test("certificates are checked against the platform's injected clock", async () => {
  const signers = connect(() => expiryOf(join(cluster.home, 'node-1')).getTime() + 1)
  await assert.rejects(status(signers, 1), /signer 1: the TLS certificate expired on/)
})

test('the metrics contain the expiry of each certificate in Unix seconds', async () => {
  const metrics = createMetrics()
  await collectNodes({
    signers: connect(),
    metrics,
    environment: systemEnvironment(),
  })
  const text = await metrics.text()
  for (const node of [1, 2, 3]) {
    const seconds = expiryOf(join(cluster.home, `node-${node}`)).getTime() / 1000
    assert.ok(
      text.includes(
        `custody_signer_certificate_expiry_timestamp_seconds{node="${node}"} ${seconds}\n`,
      ),
      text,
    )
  }
  assert.ok(
    text.includes(
      `custody_platform_certificate_expiry_timestamp_seconds ${expiryOf(folder).getTime() / 1000}\n`,
    ),
  )
})

test('the doctor reports certificates within 30 days of expiry, with the command to renew them', async () => {
  const diagnosis = await diagnoseCertificates(folder)
  assert.deepEqual(
    diagnosis.map(({ of, state }) => [of, state]),
    [
      ['platform', 'ok'],
      ['signer 1', 'ok'],
      ['signer 2', 'expires soon'],
      ['signer 3', 'expired'],
    ],
  )
  const lines = diagnosis.flatMap(certificateLines)
  assert.equal(lines.length, 2)
  assert.match(
    lines[0] as string,
    /^signer 2: the TLS certificate expires on \d{4}-\d\d-\d\d; on its host, run: custody tls renew --home HOME; the node needs no restart$/,
  )
  assert.match(lines[1] as string, /^signer 3: the TLS certificate expired on /)
  // The clock is set to one day before the platform's certificate expires. The nodes use the real
  // clock and still respond.
  const late = await diagnoseCertificates(folder, () => expiryOf(folder).getTime() - DAY_MS)
  assert.equal(late[0]?.state, 'expires soon')
  assert.ok(certificateLines(late[0]!)[0]?.includes(`custody tls renew --home ${folder}`))
  assert.deepEqual(await diagnoseCertificates(join(cluster.home, 'none')), [])
})

test('a renewed certificate of the platform is used without a restart', async () => {
  const original = readFileSync(join(folder, 'tls.crt'))
  try {
    await replace(folder, -2)
    const signers = connect()
    await assert.rejects(
      status(signers, 1),
      /signer 1: cannot be reached; the platform's own TLS certificate expired on \d{4}-\d\d-\d\d/,
    )
    const { expires_at } = await renewCertificate(folder)
    assert.equal((await status(signers, 1)).node, 1)
    assert.equal(signers.certificateExpiries().platform.toISOString(), expires_at)
    // A file that is not a certificate, or a certificate of another key, is not used.
    for (const text of ['none', readFileSync(join(cluster.home, 'node-1', 'tls.crt'), 'utf8')]) {
      writeFileSync(join(folder, 'tls.crt'), text)
      assert.equal(signers.certificateExpiries().platform.toISOString(), expires_at)
    }
  } finally {
    writeFileSync(join(folder, 'tls.crt'), original)
  }
})

test('a node’s renewed certificate is detected within ten minutes, even on open connections', async () => {
  const signers = connect()
  const home = join(cluster.home, 'node-1')
  const before = expiryOf(home)
  await status(signers, 1)
  const { expires_at } = await renewCertificate(home, 200)
  while ((await status(signers, 1)).certificate_expires_at !== expires_at) await sleep(50)
  assert.deepEqual(
    signers.certificateExpiries().nodes.get(1),
    before,
    'the connection is still the first',
  )
  const now = performance.now.bind(performance)
  const later = mock.method(performance, 'now', () => now() + 601_000)
  try {
    await status(signers, 1)
    await status(signers, 1)
    assert.equal(signers.certificateExpiries().nodes.get(1)?.toISOString(), expires_at)
  } finally {
    later.mock.restore()
  }
})
