import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeCertificate, makeTlsKey } from '../../../../../signer/src/set-up/certificate.ts'
import { SignerCluster } from '../../../../../signer/testing/signer-cluster.ts'
import packageFile from '../../../../package.json' with { type: 'json' }
import { askDatabase, databaseFindings, doctorFacts, type DatabaseFacts } from './database.ts'
import { diagnoseDisk } from './disk.ts'
import { findingLine, type Finding } from './findings.ts'
import {
  diagnoseNodes,
  keyFindings,
  memoryFindings,
  policyFindings,
  type NodesExpected,
} from './nodes.ts'
import { diagnosePublic } from './public.ts'
import { diagnosePrices, priceLines } from '../../../custody/prices/coverage.ts'
import { useApi } from '../../../../testing/api-support.ts'

/** Tests of the doctor with real signer nodes, a real database and a real TLS server. */
const api = useApi({})
let cluster: SignerCluster
let folder: string
const none = mkdtempSync(join(tmpdir(), 'custody-doctor-'))
before(async () => {
  cluster = await SignerCluster.start()
  folder = join(cluster.home, 'platform')
  // Whether a node knows which peers it can reach, which is so only after it has compared its
  // record with theirs. These homes were created some time ago, and any request makes a node ask
  // its peers to confirm the time that has passed since.
  const isSettled = async (node: number): Promise<boolean> => {
    await cluster.post(node, '/void', {})
    const { body } = await cluster.get(node, '/status')
    return (
      body['clock_doubted'] === false &&
      (body['peers'] as { reachable: boolean }[]).every(({ reachable }) => reachable)
    )
  }
  while (!(await Promise.all([1, 2, 3].map(isSettled))).every(Boolean)) await sleep(50)
})
after(async () => {
  await cluster.stop()
  rmSync(none, { recursive: true, force: true })
})
const expected = (more: Partial<NodesExpected> = {}): NodesExpected => ({
  mode: 'local',
  version: packageFile.version,
  clock: Date.now,
  ...more,
})
const levels = (findings: Finding[]) => findings.map(({ level, message }) => `${level}: ${message}`)
/** Asserts that each finding that is not ok contains advice. */
const advised = (findings: Finding[]): Finding[] => {
  for (const each of findings) assert.equal(each.advice === null, each.level === 'ok', each.message)
  return findings
}

test('the doctor names each signer node with a wrong clock, version or network', async () => {
  assert.deepEqual(levels(await diagnoseNodes(folder, expected())), [
    'ok: 3 of 3 signer nodes can sign',
    'ok: signer 1 has 8 of 0 secp256k1 and 3 of 0 ed25519 keys ready for new workspaces, and 0 keys are waited for',
  ])
  assert.deepEqual(await diagnoseNodes(join(none, 'absent'), expected()), [])
  const late = levels(
    advised(await diagnoseNodes(folder, expected({ clock: () => Date.now() + 60_000 }))),
  )
  assert.equal(late.length, 5)
  for (const node of [1, 2, 3])
    assert.match(
      late[node] ?? '',
      new RegExp(`^error: the clock of signer ${node} is \\d\\d s behind this machine's$`),
    )
  const early = levels(await diagnoseNodes(folder, expected({ clock: () => Date.now() - 60_000 })))
  assert.match(early[1] ?? '', /^error: the clock of signer 1 is \d\d s ahead of this machine's$/)
  const newer = levels(advised(await diagnoseNodes(folder, expected({ version: '9.9.9' }))))
  assert.equal(
    newer[1],
    `warning: signer 1 runs version ${packageFile.version}, the platform 9.9.9`,
  )
  const other = levels(advised(await diagnoseNodes(folder, expected({ mode: 'mainnet' }))))
  assert.equal(other[1], 'error: signer 1 was set up for local, the platform runs on mainnet')
})

test('outside local mode, the doctor counts the keys that each node generated after its last backup', async () => {
  const unsaved = async () =>
    levels(advised(await diagnoseNodes(folder, expected({ mode: 'mainnet' })))).filter((line) =>
      line.includes('since its last backup'),
    )
  assert.deepEqual(
    await unsaved(),
    [1, 2, 3].map((node) => `warning: signer ${node} has generated 11 keys since its last backup`),
  )
  const file = join(cluster.home, 'backup-2.json')
  assert.equal((await cluster.operator(2, 'backup', { file })).status, 200)
  assert.deepEqual(
    (await unsaved()).map((line) => line.slice(0, 17)),
    ['warning: signer 1', 'warning: signer 3'],
  )
})

test('the doctor warns if no key of a curve is ready although the pool should have some', () => {
  const findings = (ready: number) =>
    keyFindings(
      {
        node: 1,
        status: {
          pool: { secp256k1: 2, ed25519: ready },
          key_queue: { waiting: 4, generating: 2, pool: { secp256k1: 2, ed25519: 2 } },
        },
        reason: '',
        offS: 0,
      },
      'local',
    )
  const says = 'of 2 ed25519 keys ready for new workspaces, and 4 keys are waited for'
  assert.deepEqual(levels(advised(findings(0))), [
    `warning: signer 1 has 2 of 2 secp256k1 and 0 ${says}`,
  ])
  assert.deepEqual(levels(findings(1)), [`ok: signer 1 has 2 of 2 secp256k1 and 1 ${says}`])
})

test('warns of a node that uses half of its heap or more', () => {
  const found = (heap_used_percent: unknown) =>
    memoryFindings({ node: 2, status: { heap_used_percent }, reason: '', offS: 0 })
  for (const value of [undefined, 'much', 0, 49]) assert.deepEqual(found(value), [])
  for (const value of [50, 97]) {
    const [finding] = found(value)
    assert.equal(finding?.level, 'warning')
    assert.match(finding?.message ?? '', new RegExp(`^signer 2 uses ${value} % of its heap`))
  }
  assert.deepEqual(memoryFindings({ node: 2, status: null, reason: 'away', offS: null }), [])
})

test('the doctor names a node that claims policies which it does not send', () => {
  const findings = (status: object) => policyFindings({ node: 2, status, reason: '', offS: 0 })
  assert.deepEqual(levels(advised(findings({ policies_unproven: [1] }))), [
    'warning: signer 2 ignores the policies that signer 1 claims and does not send',
  ])
  assert.deepEqual(findings({}), [], 'an earlier version does not report it')
})

test('the doctor warns about one unreachable signer node, and reports an error for two', async () => {
  await cluster.stopHere(3)
  const one = advised(await diagnoseNodes(folder, expected()))
  assert.deepEqual(levels(one).slice(0, 1), ['warning: 2 of 3 signer nodes can sign'])
  assert.ok(levels(one).includes('warning: signer 3: cannot be reached'), levels(one).join('\n'))
  await cluster.stopHere(2)
  const two = advised(await diagnoseNodes(folder, expected()))
  assert.equal(
    levels(two)[0],
    'error: 1 of 3 signer nodes can sign, 2 are required: transfers are accepted and wait',
  )
  assert.match(
    findingLine(two[0] as Finding),
    /^signers +ERROR: 1 of 3 signer nodes can sign.*; start the nodes that are listed below$/,
  )
})

test('the doctor reports database version, migrations, size, and coins without a price', async () => {
  await api.started
  const { database, unpriced } = (await doctorFacts(api.services, {})) as unknown as {
    database: DatabaseFacts
    unpriced: string[]
  }
  assert.match(
    levels(databaseFindings(database, true))[0] ?? '',
    /^ok: PostgreSQL \d+\.\d+.*, \d+ migrations, \d+ MiB$/,
  )
  assert.ok(Array.isArray(unpriced))
  const last = database.migrations.at(-1) as string
  const facts = (more: Partial<DatabaseFacts>) =>
    levels(advised(databaseFindings({ ...database, ...more }, true)))
  assert.deepEqual(facts({ migrations: database.migrations.slice(0, -1) }), [
    `error: migrations are missing: ${last}`,
  ])
  assert.deepEqual(facts({ migrations: [...database.migrations, '999_later.sql'] }), [
    'error: it was changed by a newer version (999_later.sql)',
  ])
  assert.deepEqual(facts({ version: '13.2', version_num: 130_002 }), [
    'error: PostgreSQL 13.2 is too old',
  ])
  assert.deepEqual(facts({ read_only: true }), ['error: the server is read-only: it is a standby'])
  assert.deepEqual(facts({ connections: 95, connections_max: 100 }), [
    'warning: 95 of 100 connections are in use',
  ])
  assert.match(
    levels(databaseFindings({ ...database, migrations: [] }, false))[0] ?? '',
    /^ok: .*empty: the first start creates its tables$/,
  )
})

test('the doctor reports a database that does not answer, with the reason and the setting', async () => {
  const away = await askDatabase('postgresql://nobody:secret@127.0.0.1:1/custody', false).catch(
    (error: unknown) => ({ error }),
  )
  const [finding] = advised(databaseFindings(away, false)) as [Finding]
  assert.equal(finding.level, 'error')
  assert.match(
    findingLine(finding),
    /^database +ERROR: cannot be queried: .*; check that the server runs, and check DATABASE_URL/,
  )
  assert.doesNotMatch(findingLine(finding), /secret/)
})

test('the doctor reports an error below 512 MiB of disk, and a warning below 5 GiB', () => {
  const at = (bytes: number, filesFree = 1e6, files = 1e7) =>
    levels(advised(diagnoseDisk('the data folder', '/home', () => ({ bytes, files, filesFree }))))
  assert.deepEqual(at(100 * 1024 ** 3), ['ok: 100 GiB free on the disk of the data folder /home'])
  assert.deepEqual(at(5 * 1024 ** 3 - 1), [
    'warning: 4 GiB free on the disk of the data folder /home',
  ])
  assert.deepEqual(at(511 * 1024 ** 2), [
    'error: 511 MiB free on the disk of the data folder /home',
  ])
  assert.deepEqual(
    at(100 * 1024 ** 3, 12)[1],
    'error: only 12 more files fit on the disk of the data folder /home',
  )
  assert.equal(at(100 * 1024 ** 3, 0, 0).length, 1, 'a file system that counts no files')
  assert.match(
    levels(diagnoseDisk('the data folder', none))[0] ?? '',
    /free on the disk of the data folder/,
  )
  assert.match(
    levels(diagnoseDisk('the data folder', join(none, 'absent')))[0] ?? '',
    /^ok: .*does not exist yet$/,
  )
})

test('the doctor reports a public certificate that expires soon, has expired or is not trusted', async () => {
  const key = makeTlsKey()
  const days = 100
  const cert = await makeCertificate({ key, name: 'localhost', days })
  const server = createServer({ key, cert }, (socket) => socket.end())
  await new Promise<void>((resolve) => {
    server.listen(0, 'localhost', resolve)
  })
  const url = `https://localhost:${(server.address() as AddressInfo).port}`
  const later = (by: number) => () => Date.now() + by * 86_400_000
  const finding = async (clock: () => number, ca?: string) =>
    levels(advised(await diagnosePublic(url, clock, ca)))[0] ?? ''
  try {
    assert.match(
      await finding(later(0), cert),
      /^ok: the certificate of https:\/\/localhost:\d+ is valid until \d{4}-\d\d-\d\d$/,
    )
    assert.match(
      await finding(later(days - 7), cert),
      /^warning: the certificate of .* expires on /,
    )
    assert.match(await finding(later(days + 1), cert), /^error: the certificate of .* expired on /)
    assert.match(
      await finding(later(0)),
      /^error: the certificate of .* is not trusted by callers: /,
    )
  } finally {
    await new Promise((resolve) => server.close(resolve))
  }
  assert.match(
    levels(advised(await diagnosePublic(url, Date.now, cert)))[0] ?? '',
    /^error: https:\/\/localhost:\d+ cannot be reached: /,
  )
  assert.deepEqual(
    [await diagnosePublic(null), await diagnosePublic('http://shop.example')],
    [[], []],
  )
})

test('the doctor names each coin whose newest price is older than five minutes, with its time', async () => {
  const now = Date.UTC(2031, 0, 2)
  const source = (name: string, ageMs: number) => ({
    name,
    quotes: async () => [{ coin: 'ETH', price: 1n, at: now - ageMs }],
  })
  const both = await diagnosePrices([source('a', 400_000), source('b', 1000)], ['ETH'], () => now)
  assert.deepEqual([both.stale, both.missing], [[], []])
  const away = await diagnosePrices(
    [
      {
        name: 'a',
        quotes: async () => {
          throw new Error('cannot be reached')
        },
      },
    ],
    ['ETH', 'BTC'],
    () => now,
  )
  assert.deepEqual(priceLines(away), [
    'prices  a cannot be reached',
    'prices  no source responds, so there is no price of ETH, BTC: check the network and the sources named above',
  ])
  const old = await diagnosePrices([source('a', 400_000), source('b', 500_000)], ['ETH'], () => now)
  assert.deepEqual(old.stale, [{ coin: 'ETH', at: now - 400_000 }])
  assert.match(
    priceLines(old)[0] ?? '',
    /^prices  the newest price of ETH is of 2031-01-01T23:53:20\.000Z, too old for charging fees: /,
  )
})
