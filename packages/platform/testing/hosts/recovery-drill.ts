import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { addressAt, loadRegistry, type Network } from '@custody/chains'
import { sweeperOf } from '@custody/chains/sweep'
import { Public } from '../../../signer/src/recover/funds.ts'
import { waitFor } from '../../../../testing/wait-for.ts'

const RECOVER = fileURLToPath(new URL('../../../signer/src/recover.ts', import.meta.url))
export const registry = loadRegistry('local')

export interface Said {
  status: number | null
  stdout: string
  stderr: string
}
type PlaceAt = (subAccount: number, index: number) => { path: number[]; address: string }

/**
 * Two operators with two backups in a folder of their own, and the balances that an observer reads
 * from the chains.
 */
export class RecoveryDrill {
  readonly folder = mkdtempSync(join(tmpdir(), 'custody-recover-'))
  readonly #running: ChildProcess[] = []

  place(name: string): string {
    return join(this.folder, name)
  }

  recover(...words: string[]): Promise<Said> {
    const child = spawn(process.execPath, [RECOVER, ...words], {
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: this.folder,
    })
    const said = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', (text: string) => (said[name] += text))
    return new Promise((resolve) => child.once('close', (status) => resolve({ status, ...said })))
  }

  /**
   * Runs a command of `recover.ts` and asserts that it succeeds.
   * @returns the command's output
   */
  async done(...words: string[]): Promise<string> {
    const { status, stdout, stderr } = await this.recover(...words)
    assert.equal(status, 0, `${words.join(' ')}: ${stderr}`)
    return stdout
  }

  /** Runs `recover.ts node` until the end of the drill. Resolves when the node is ready. */
  async runNode(...words: string[]): Promise<void> {
    const child = spawn(process.execPath, [RECOVER, 'node', ...words], {
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: this.folder,
    })
    this.#running.push(child)
    let said = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (said += text))
    await waitFor(`a node: ${words.join(' ')}`, async () => {
      if (child.exitCode !== null) throw new Error(said)
      return /^recovery node \d ready, \d+ keys$/m.test(said)
    })
  }

  openNode(node: number, port: number, partner: string): Promise<void> {
    return this.runNode(
      '--home',
      this.place(`node-${node}`),
      '--backup',
      this.place(`backup-${node}.json`),
      '--recovery-secret',
      this.place(`recovery-${node}`),
      '--listen',
      `127.0.0.1:${port}`,
      '--peer',
      partner,
    )
  }

  /**
   * Returns the balances at addresses on the chain, by asset.
   * @param devnet URL of the local chains
   */
  async held(
    devnet: string,
    network: Network,
    to: string,
    placeAt: PlaceAt,
    subAccounts: number[],
    gap: number,
  ): Promise<Record<string, bigint>> {
    const result = (await sweeperOf(network).look({
      registry,
      network,
      endpoint: { url: `${devnet}/${network.code.toLowerCase()}` },
      fetch,
      subAccounts,
      gap,
      fromHeight: 0,
      to,
      placeAt,
      notify: () => undefined,
    })) as {
      coins?: { value: string }[]
      accounts?: { balance?: string; balances?: Record<string, string> }[]
    }
    const sums: Record<string, bigint> = {}
    const add = (asset: string, amount: string): void => {
      sums[asset] = (sums[asset] ?? 0n) + BigInt(amount)
    }
    for (const { value } of result.coins ?? []) add(network.native_asset, value)
    for (const { balance, balances = {} } of result.accounts ?? []) {
      if (balance !== undefined) add(network.native_asset, balance)
      for (const [asset, amount] of Object.entries(balances)) add(asset, amount)
    }
    return sums
  }

  /** Returns the balances at the addresses of a workspace, whose keys are in backup 1. */
  ofWorkspace(
    devnet: string,
    workspace: string,
    network: Network,
    to: string,
    subAccounts?: number[],
  ): Promise<Record<string, bigint>> {
    const publicKeys = new Public(this.place('backup-1.json'))
    const key = publicKeys.key(workspace, network)
    return this.held(
      devnet,
      network,
      to,
      (subAccount, index) => {
        const path = [subAccount, network.chain_index, index]
        return { path, address: addressAt(network, key, path) }
      },
      subAccounts ?? publicKeys.subAccounts(workspace),
      4,
    )
  }

  async stop(): Promise<void> {
    await Promise.all(
      this.#running.map((child) => {
        if (child.exitCode !== null || child.signalCode !== null) return undefined
        const ended = new Promise((resolve) => child.once('exit', resolve))
        child.kill('SIGTERM')
        return ended
      }),
    )
    this.#running.length = 0
  }

  async remove(): Promise<void> {
    await this.stop()
    rmSync(this.folder, { recursive: true, force: true })
  }
}
