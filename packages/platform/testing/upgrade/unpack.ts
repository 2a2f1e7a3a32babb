import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeTls } from '../../../signer/src/set-up/files.ts'
import { freePorts } from '../../../signer/testing/data-dirs.ts'
import { startEmbeddedPostgres } from '../../src/core/database/embedded.ts'
import { openDatabase } from '../../src/core/database/pool.ts'
import { callerKeyOf, restoreFromText } from './text-files.ts'

export interface Fixture {
  /** Time at which the earlier version was killed, in milliseconds since 1970. */
  madeAt: number
  /** The webhook receiver in the rows of the database. */
  hook: string
  /** Destination address of every transfer, by asset. */
  payees: Record<string, string>
  /**
   * IDs of the unfinished transfers, by asset and state; `SHOWN`: state SIGNING, and the nodes have
   * signed.
   */
  ids: Record<string, Record<string, string>>
  users: { apiKey: string; workspace: string }[]
  /** PEM of the RSA key with which all users sign. */
  callerKey: string
}

export const readFixture = (folder: string): Fixture => ({
  ...(JSON.parse(readFileSync(join(folder, 'about.json'), 'utf8')) as Fixture),
  callerKey: callerKeyOf(folder),
})

/**
 * Gives the nodes and the platform new TLS keys.
 * @returns their certificates in JSON text, the new by the old
 */
async function renewTls(home: string, nowMs: number): Promise<Map<string, string>> {
  const peers = JSON.parse(
    readFileSync(join(home, 'signers', 'platform', 'peers.json'), 'utf8'),
  ) as { nodes: { node: number; certificate: string }[] }
  const { platform_certificate: platform } = JSON.parse(
    readFileSync(join(home, 'signers', 'node-1', 'config.json'), 'utf8'),
  ) as { platform_certificate: string }
  const owners: [string, string, string][] = [
    ['platform', 'custody platform', platform],
    ...peers.nodes.map(({ node, certificate }): [string, string, string] => [
      `node-${node}`,
      `custody signer ${node}`,
      certificate,
    ]),
  ]
  const renewed = new Map<string, string>()
  for (const [name, subject, old] of owners) {
    const folder = join(home, 'signers', name)
    await makeTls(folder, subject, nowMs)
    renewed.set(JSON.stringify(old), JSON.stringify(readFileSync(join(folder, 'tls.crt'), 'utf8')))
  }
  return renewed
}

/**
 * Restores a fixture into a home. Only the ports, the TLS keys, the home's own path and the webhook
 * receiver are changed.
 */
export async function unpack(folder: string, home: string, hook: string): Promise<void> {
  mkdirSync(home, { recursive: true, mode: 0o700 })
  restoreFromText(folder, home)
  const edit = (name: string, change: (text: string) => string) => {
    writeFileSync(join(home, name), change(readFileSync(join(home, name), 'utf8')), { mode: 0o600 })
  }
  const [devnet, ...signers] = await freePorts(4)
  const before = JSON.parse(readFileSync(join(home, 'ports.json'), 'utf8')) as { signers: number[] }
  const portOf = new Map(before.signers.map((port, at) => [String(port), signers[at]]))
  const certificates = await renewTls(home, readFixture(folder).madeAt)
  const moved = (text: string) =>
    [...certificates]
      .reduce((changed, [old, renewed]) => changed.replaceAll(old, renewed), text)
      .replaceAll(/"port": ?(\d+)/g, (_, port: string) => `"port": ${portOf.get(port)}`)
      .replaceAll(/"socket": ?"[^"]*(\/signers\/node-\d)/g, `"socket": "${home}$1`)
  for (const name of [
    'node-1/config.json',
    'node-2/config.json',
    'node-3/config.json',
    'platform/peers.json',
  ])
    edit(`signers/${name}`, moved)
  edit('ports.json', () => JSON.stringify({ signers, devnet }))
  const postgres = await startEmbeddedPostgres(home)
  const database = openDatabase(postgres.adminUrl, { max: 1 })
  for (const name of ['tables.sql', 'rows.sql']) {
    await database.query(
      readFileSync(join(folder, name), 'utf8').replaceAll(readFixture(folder).hook, hook),
    )
  }
  await database.close()
  await postgres.stop()
}
