import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Database } from '../../src/core/database/pool.ts'
import { PUBLIC_KEY } from '../../testing/harness.ts'
import type { FloorUser } from './server.ts'

const RICH = '1000000000000000000000000000'

/** The floor, in a process of its own on the platform's database server. */
export interface Floor {
  base: string
  pid: number
  stop(): Promise<void>
}

/**
 * Gives each API key a wallet of the floor's, and starts it. @param url of the platform's database
 */
export async function startFloor(
  database: Database,
  url: string,
  apiKeys: readonly string[],
): Promise<Floor> {
  await database.query(readFileSync(new URL('tables.sql', import.meta.url), 'utf8'))
  const users: Record<string, FloorUser> = {}
  for (const apiKey of apiKeys) {
    const owner = await database.one<{ workspace: string; sub_account: string }>(
      `select s.workspace_id workspace, s.id sub_account from api_users u
        join sub_accounts s on s.id = u.sub_account_id where u.api_key = $1`,
      [apiKey],
    )
    const { workspace, sub_account: subAccount } = owner as {
      workspace: string
      sub_account: string
    }
    const wallet = (
      await database.one<{ id: string }>(
        `insert into floor.wallets (workspace_id, sub_account_id, asset, network)
          values ($1, $2, 'ETH', 'ETH') returning id`,
        [workspace, subAccount],
      )
    )?.id as string
    const account = async (walletId: string | null, asset: string, kind: string) =>
      (
        await database.one<{ id: string }>(
          `insert into floor.ledger_accounts as a (workspace_id, wallet_id, asset, kind, balance)
            values ($1, $2, $3, $4, $5)
       on conflict (workspace_id, wallet_id, asset, kind, address) do update set balance = a.balance
         returning id`,
          [workspace, walletId, asset, kind, RICH],
        )
      )?.id as string
    users[apiKey] = {
      workspace,
      subAccount,
      wallet,
      available: await account(wallet, 'ETH', 'available'),
      reserved: await account(wallet, 'ETH', 'reserved'),
      prepaid: await account(null, 'USD', 'prepaid'),
      prepaidReserved: await account(null, 'USD', 'prepaid_reserved'),
    }
  }
  const folder = mkdtempSync(join(tmpdir(), 'custody-floor-'))
  writeFileSync(join(folder, 'key.pem'), PUBLIC_KEY)
  writeFileSync(join(folder, 'users.json'), JSON.stringify(users))
  const child: ChildProcess = spawn(
    process.execPath,
    [fileURLToPath(new URL('server.ts', import.meta.url))],
    {
      // With the channel it ends when this process does.
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
      env: {
        ...process.env,
        FLOOR_DATABASE: url,
        FLOOR_KEY: join(folder, 'key.pem'),
        FLOOR_USERS: join(folder, 'users.json'),
      },
    },
  )
  const base = await new Promise<string>((resolve, reject) => {
    let printed = ''
    child.stdout?.on('data', (chunk: Buffer) => {
      printed += chunk.toString()
      const match = /^ready (http:\S+)/m.exec(printed)
      if (match) resolve(match[1] as string)
    })
    child.once('exit', (code) => reject(new Error(`the floor ended with ${String(code)}`)))
  })
  return {
    base,
    pid: child.pid as number,
    async stop() {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGTERM')
      await ended
      rmSync(folder, { recursive: true })
    },
  }
}
