import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts } from '../../../signer/test/homes.ts'
import { copyOf } from '../../../signer/test/prepared.ts'
import { startEmbeddedPostgres } from '../../src/database/embedded.ts'
import { openDatabase } from '../../src/database/pool.ts'

export interface Left {
  /** Unix ms */
  madeAt: number; hook: string; payees: Record<string, string>
  /** Ids of the transfers under way, by asset and state; `SHOWN`: SIGNING, and the nodes have signed. */
  ids: Record<string, Record<string, string>>; users: { apiKey: string; workspace: string }[]; callerKey: string
}

export const aboutOf = (file: string): Left => {
  const read = (name: string) => spawnSync('tar', ['-xzOf', file, name], { encoding: 'utf8' }).stdout
  return { ...JSON.parse(read('./about.json')) as Left, callerKey: read('./caller.pem') }
}

/** Puts what a version left behind into a home: only ports, the home's own path and the receiver of webhooks are changed. */
export async function unpack(file: string, home: string, hook: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'custody-left-'))
  try {
    const { status } = spawnSync('tar', ['-xzf', file, '-C', folder], { stdio: 'inherit' })
    if (status !== 0) throw new Error(`cannot unpack ${file}`)
    copyOf(join(folder, 'home'), home)
    const edit = (name: string, change: (text: string) => string) => {
      writeFileSync(join(home, name), change(readFileSync(join(home, name), 'utf8')), { mode: 0o600 })
    }
    const [devnet, ...signers] = await freePorts(4)
    const before = JSON.parse(readFileSync(join(home, 'ports.json'), 'utf8')) as { signers: number[] }
    const portOf = new Map(before.signers.map((port, at) => [String(port), signers[at]]))
    const moved = (text: string) => text
      .replaceAll(/"port": ?(\d+)/g, (_, port: string) => `"port": ${portOf.get(port)}`)
      .replaceAll(/"socket": ?"[^"]*(\/signers\/node-\d)/g, `"socket": "${home}$1`)
    for (const name of ['node-1/config.json', 'node-2/config.json', 'node-3/config.json', 'platform/peers.json']) {
      edit(`signers/${name}`, moved)
    }
    edit('ports.json', () => JSON.stringify({ signers, devnet }))
    const postgres = await startEmbeddedPostgres(home)
    const database = openDatabase(postgres.url, { max: 1 })
    await database.query(readFileSync(join(folder, 'database.sql'), 'utf8').replaceAll(aboutOf(file).hook, hook))
    await database.close()
    await postgres.stop()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
