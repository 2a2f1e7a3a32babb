import {
  addressAt,
  loadRegistry,
  publicKeysBelow,
  TANK_SUB_ACCOUNT,
  validateAddress,
  type Network,
  type RpcEndpoint,
  type SignedTransaction,
} from '@custody/chains'
import { sweeperOf, type Found } from '@custody/chains/sweep'
import { fromHex, sha256hex } from '../canonical.ts'
import { readBackup, type BackupFile } from '../keys/backup-file.ts'
import type { GatheredFile, PreparedFile, SignedFile } from './recovery-files.ts'

/** The public part of any node's backup, which is sufficient to derive every address. */
export class Public {
  readonly #backup: BackupFile

  /**
   * @throws Error if the file is not a backup. Its signature is checked by the node that is opened
   *   from it, not here.
   */
  constructor(file: string) {
    this.#backup = readBackup(file).content
  }

  get registry() {
    return loadRegistry(this.#backup.mode)
  }
  get node(): number {
    return this.#backup.node
  }
  get workspaces(): string[] {
    return [...new Set(this.#backup.sets.map(({ workspace }) => workspace))].sort()
  }

  network(code: string): Network {
    const network = this.registry.network(code)
    if (!network)
      throw new Error(
        `--network: ${code} is not one of ${this.registry.networks.map((each) => each.code).join(', ')}`,
      )
    return network
  }

  /**
   * Returns the sub-accounts for which the node has enrolled callers, and that of the gas tanks.
   */
  subAccounts(workspace: string): number[] {
    const enrolled = this.#backup.enrolments
      .filter((each) => each.workspace === workspace)
      .map((each) => each.sub_account)
    return [...new Set([TANK_SUB_ACCOUNT, ...enrolled])].sort((a, b) => a - b)
  }

  key(workspace: string, network: Network) {
    const set = this.#backup.sets.find(
      (each) => each.workspace === workspace && each.curve === network.curve,
    )
    const ready = this.#backup.keys.find((each) => each.ready.key_id === set?.key_id)?.ready
    if (!ready)
      throw new Error(
        `the backup of node ${this.#backup.node} contains no key of ${workspace} for ${network.code}`,
      )
    return {
      curve: network.curve,
      publicKey: fromHex(ready.public_key),
      chainCode: fromHex(ready.chain_code),
    }
  }
}

export interface Look {
  workspace: string
  network: string
  endpoint: RpcEndpoint
  to: string
  tag: string | null
  gap: number
  fromHeight: number
  /** Indexes of the sub-accounts. Null: those in the backup. */
  subAccounts: number[] | null
  notify(line: string): void
}

/** Queries the chain. Only this step and the broadcast need a network connection. */
export async function gather(existing: Public, o: Look): Promise<GatheredFile> {
  const { registry } = existing
  const network = existing.network(o.network)
  const to = validateAddress(registry, network.native_asset, o.to, o.tag)
  if (!to.valid) throw new Error(`--to: ${to.reason}`)
  const key = existing.key(o.workspace, network)
  const match = await sweeperOf(network).look({
    registry,
    network,
    endpoint: o.endpoint,
    fetch,
    subAccounts: o.subAccounts ?? existing.subAccounts(o.workspace),
    gap: o.gap,
    fromHeight: o.fromHeight,
    to: to.address,
    notify: o.notify,
    placeAt: (subAccount, index) => {
      const path = [subAccount, network.chain_index, index]
      return { path, address: addressAt(network, key, path) }
    },
  })
  return {
    version: 1,
    workspace: o.workspace,
    network: network.code,
    to: to.address,
    tag: to.address_tag,
    at: new Date().toISOString(),
    found: match,
  }
}

/** Builds the transactions from the gathered data, offline. */
export function prepare(
  existing: Public,
  { found: match, ...gathered }: GatheredFile,
): PreparedFile {
  const network = existing.network(gathered.network)
  const publicKeyAt = publicKeysBelow(existing.key(gathered.workspace, network))
  const { to, tag } = gathered
  return {
    ...gathered,
    ...sweeperOf(network).plan({
      registry: existing.registry,
      network,
      publicKeyAt,
      scan: match as Found,
      to,
      tag,
    }),
  }
}

/**
 * Returns the ID of the order that both operators entered, as their nodes compute it.
 * @param feeMax in the smallest native unit
 */
const orderName = ({ workspace, network, to, tag }: PreparedFile, feeMax: bigint): string =>
  sha256hex(JSON.stringify([workspace, network, to, tag, feeMax.toString()])).slice(0, 32)

/**
 * Has each transaction signed, one after the other.
 * @throws Error with the message of the node that rejected it
 */
export async function sign(
  prepared: PreparedFile,
  o: {
    feeMax: bigint
    partner: number
    ask(body: Record<string, unknown>): Promise<Record<string, unknown>>
  },
): Promise<SignedFile> {
  const { transactions, ...rest } = prepared
  const signed: SignedTransaction[] = []
  for (const { unsigned, fuel } of transactions) {
    const purpose = {
      kind: 'recover',
      order: orderName(prepared, o.feeMax),
      ...(fuel ? { to_path: fuel } : {}),
    }
    signed.push(
      (await o.ask({
        workspace: prepared.workspace,
        partner: o.partner,
        purpose,
        unsigned,
      })) as unknown as SignedTransaction,
    )
  }
  return { ...rest, signed }
}

const POLL_MS = 1000

export interface Sending {
  endpoint: RpcEndpoint
  /** Maximum time in milliseconds to wait for a block. */ waitMs: number
  notify(line: string): void
}

/**
 * Broadcasts the signed transactions, and waits until each is in a block.
 * @returns the transactions that the chain did not accept, with its reasons
 */
export async function send(
  existing: Public,
  { network: code, signed }: Pick<SignedFile, 'network' | 'signed'>,
  o: Sending,
): Promise<{ hash: string; reason: string }[]> {
  const network = existing.network(code)
  const client = sweeperOf(network).client(existing.registry, network, o.endpoint, fetch)
  await client.probe()
  const reasons = new Map<string, string>()
  for (const { raw, hash } of signed) {
    const result = await client.broadcast(raw)
    reasons.set(hash, result.kind === 'accepted' ? 'is not in a block yet' : result.reason)
    o.notify(`${hash}: ${result.kind}${result.kind === 'accepted' ? '' : ` (${result.reason})`}`)
  }
  const until = Date.now() + o.waitMs
  const waiting = new Set(signed.map(({ hash }) => hash))
  while (waiting.size > 0 && Date.now() < until) {
    for (const hash of waiting) {
      const status = await client.status(hash)
      if (status.state !== 'included') continue
      waiting.delete(hash)
      if (!status.succeeded) reasons.set(hash, 'is in a block, but the chain reverted it')
      else reasons.delete(hash)
    }
    if (waiting.size > 0) await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  return [...reasons].map(([hash, reason]) => ({ hash, reason }))
}
