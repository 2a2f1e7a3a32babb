import { hasLocalChains } from '@custody/chains/mode'
import { fingerprintOfKey, parsePublicKey } from '@custody/request-auth'
import type { KeyMaterial, Vault } from '@custody/threshold'
import { existsSync, readFileSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { z } from 'zod'
import { sha256hex } from '../canonical.ts'
import type { Config } from '../config.ts'
import { Refusal } from '../errors.ts'
import type { Log } from '../log.ts'
import type { NewEntry } from '../store/entries/index.ts'
import { writeNewFile } from '../store/new-file.ts'
import type { Store } from '../store/index.ts'
import { State } from '../store/state.ts'
import type { Peers } from '../transport/peers.ts'
import {
  readAuthentic,
  signedBackup,
  type BackedDrain,
  type BackedEnrolment,
  type BackedPolicy,
  type BackupFile,
  type NewBackupFile,
  type ReadBackup,
} from './backup-file.ts'
import { bindingBytes, isSignedByAll, readyBytes, verifyCertificates } from './certificate.ts'
import { drainHash, enrolmentHash, type Confirmation } from './confirmation.ts'
import type { Keyring } from './keyring.ts'
import { PeerRecords, type Compared } from './peer-records.ts'
import { recoveryPublicKey, sealText } from './sealed.ts'

const backupSchema = z.strictObject({ file: z.string().max(4096).optional() })
const openSchema = z.strictObject({
  file: z.string().max(4096),
  recovery_secret_file: z.string().max(4096),
})
const restoreSchema = openSchema.extend({
  /** Returns what would be restored, and changes nothing. */
  preview: z.boolean().default(false),
  /** Code of the preview that the operator read. Required outside `local`. */
  confirm: z.string().max(64).optional(),
  /** A peer whose record is not read, because it is gone or hostile. */
  without: z.int().min(1).max(3).optional(),
  /** Restrictions that one peer alone has and that are not taken over, as `NODE:HEIGHT`. */
  drop: z
    .array(z.string().regex(/^[123]:[1-9][0-9]{0,12}$/))
    .max(1000)
    .default([]),
})
type Choices = Pick<z.infer<typeof restoreSchema>, 'without' | 'drop'>

/** Reads the recovery secret from a file of 64 hex digits, or from the local setup's JSON. */
export function readRecoverySecret(path: string): Uint8Array {
  const text = readFileSync(path, 'utf8').trim()
  const digits = text.startsWith('{')
    ? String((JSON.parse(text) as { secret?: unknown }).secret)
    : text
  if (!/^[0-9a-f]{64}$/.test(digits))
    throw new Refusal('BAD_REQUEST_FIELD', 'recovery_secret_file must contain 32 bytes in hex')
  return new Uint8Array(Buffer.from(digits, 'hex'))
}

interface Parts {
  config: Config
  store: Store
  peers: Peers
  keyring: Keyring
  vault: Vault
  log: Log
  confirmation: Confirmation
  /** Returns the policy of each workspace that has one in force. */
  policies: () => BackedPolicy[]
}

/**
 * The parts of a backup that are restored, and the parts that are not, because a peer does not have
 * the same data.
 */
interface Plan {
  enrolments: BackedEnrolment[]
  drains: BackedDrain[]
  left_out: { api_key?: string; order?: string; workspace: string; missing_at: number[] }[]
  /**
   * Number of enrolments and orders that both peers have and the backup does not, because they were
   * made later or were never entered at this node.
   */
  not_in_backup: number
}

/** Returns what the comparison of the peers' records has found, which grows while they sign. */
const foundBy = ({ onlyAtOne, others }: Compared) => ({
  only_at_one_peer: onlyAtOne,
  other_records: others,
})

export class Backups {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /**
   * Writes a signed backup to a new file.
   * @throws Refusal BAD_ORDER if the file is not allowed, exists or cannot be written
   */
  async backup(body: unknown): Promise<unknown> {
    const { config, store } = this.#parts
    const path = this.#newFile(body)
    const recovery = new Uint8Array(Buffer.from(config.recovery_public_key, 'hex'))
    const file = this.#backupOf(await this.#keysFor(recovery))
    try {
      writeNewFile(path, signedBackup(file, config.identity))
    } catch (error) {
      throw new Refusal(
        'BAD_ORDER',
        `${path} cannot be written (${String((error as NodeJS.ErrnoException).code)})`,
      )
    }
    store.append('backup', { keys: file.keys.length, made_at: file.made_at })
    return { file: path, keys: file.keys.length, enrolments: file.enrolments.length }
  }

  /**
   * Returns the path of the backup's file.
   * @throws Refusal BAD_ORDER if it is not absolute, or the file exists
   */
  #newFile(body: unknown): string {
    const { config, store } = this.#parts
    const parsed = backupSchema.safeParse(body)
    if (!parsed.success)
      throw new Refusal('BAD_ORDER', 'backup accepts file, an absolute path, or no parameter')
    const path =
      parsed.data.file ?? join(config.home, `backup-${config.node}-${store.seconds()}.json`)
    if (!isAbsolute(path)) throw new Refusal('BAD_ORDER', 'file must be an absolute path')
    // An existing backup may be the only readable one.
    if (existsSync(path))
      throw new Refusal('BAD_ORDER', `${path} already exists; choose another file`)
    return path
  }

  /** Returns the keys of which this node has a share, each with its share sealed for `recovery`. */
  async #keysFor(recovery: Uint8Array): Promise<BackupFile['keys']> {
    const { store, keyring, vault } = this.#parts
    const keys: BackupFile['keys'] = []
    for (const key of store.state.keys.values()) {
      const material = store.shareOf(key.key_id, key.epoch)
      if (!material) continue
      const { engine, curve, keyId, epoch, party } = material
      const sealed = await vault.sealBackup(
        material.sealedShare,
        { engine, curve, keyId, epoch, party },
        recovery,
      )
      keys.push({
        ...keyring.readyOf(key),
        share: {
          engine,
          engine_version: material.engineVersion,
          epoch,
          party,
          sealed: Buffer.from(sealed).toString('base64'),
          ...(key.session === null ? {} : { session: key.session }),
        },
      })
    }
    return keys
  }

  /** Returns the content of a backup: the given keys, the data folder's files and the record. */
  #backupOf(keys: BackupFile['keys']): NewBackupFile {
    const { config, store } = this.#parts
    const policies = this.#parts.policies()
    const { state } = store
    const read = (name: string): string => readFileSync(join(config.home, name), 'utf8')
    const home = JSON.stringify(
      Object.fromEntries(
        ['config.json', 'identity.key', 'identity.pub', 'tls.key', 'tls.crt'].map((name) => [
          name,
          read(name),
        ]),
      ),
    )
    return {
      version: 2,
      node: config.node,
      mode: config.mode,
      made_at: store.seconds(),
      home: sealText(home, config.recovery_public_key),
      keys,
      sets: [...state.allocations.values()].flatMap(
        ({ workspace, curve, key_id, epoch, certificates }) =>
          certificates ? [{ workspace, curve, key_id, epoch, certificates }] : [],
      ),
      sub_accounts: [...state.subAccounts].flatMap(([key, { index, certificates }]) => {
        const [workspace, name] = JSON.parse(key) as [string, string]
        return certificates ? [{ workspace, name, index, certificates }] : []
      }),
      enrolments: [...state.enrolments.values()],
      drains: [...state.drains.values()].map(
        ({ order, workspace, network, to_address, expires_at }) => ({
          order,
          workspace,
          network,
          to_address,
          expires_at,
        }),
      ),
      bans: state.bans.flatMap(({ node, identity, at, reason, cause }) =>
        identity === null ? [] : [{ node, identity, at, reason, cause }],
      ),
      ...(policies.length === 0 ? {} : { policies }),
    }
  }

  /**
   * Restores a node whose record is lost. Shares come from the file; the record of later signatures
   * comes from both peers, before any request is served. Requests that were issued before now are
   * rejected, because the lost record may have contained them. Enrolments and orders are restored
   * if the file and both peers agree, so that a person who stores a backup cannot use it to enrol
   * themselves. With `without`, one peer is sufficient. Outside `local` the first call is a preview, and the second call must contain its
   * code.
   */
  async restore(body: unknown): Promise<unknown> {
    const { config, store, confirmation } = this.#parts
    const parsed = restoreSchema.safeParse(body)
    if (!parsed.success)
      throw new Refusal(
        'BAD_ORDER',
        'restore accepts file, recovery_secret_file, preview, confirm, without (a peer) and drop (a list of NODE:HEIGHT)',
      )
    const { preview, confirm, without, drop, ...named } = parsed.data
    const sources = this.#sourcesOf({ without, drop })
    const backup = this.#read(named)
    const { content } = backup
    // A node that had no data has nothing to confirm, and its peers may have no data either.
    const isEmpty = [content.keys, content.enrolments, content.drains].every(
      (each) => each.length === 0,
    )
    const vouched =
      content.version === 1
        ? []
        : [...content.enrolments.map(enrolmentHash), ...content.drains.map(drainHash)]
    confirmation.claim(vouched)
    const plan = this.#plan(content, isEmpty ? new Map() : await confirmation.ask(sources))
    const compared = await new PeerRecords(this.#parts).compare(sources, drop)
    const chosen = this.#choicesOf(compared)
    // Without what both records contain meanwhile, which grows between the two calls.
    const seen = { file: backup.hash, ...chosen, ...this.#report(content, plan) }
    const code = sha256hex(JSON.stringify(seen)).slice(0, 16)
    if (preview || (confirm === undefined && !hasLocalChains(config.mode)))
      return { restored: false, confirm: code, ...seen, ...foundBy(compared) }
    if (confirm !== undefined && confirm !== code) {
      throw new Refusal(
        'BAD_REQUEST_FIELD',
        'confirm belongs to another preview: request the preview again and check it',
        { confirm: code },
      )
    }
    // A policy only forbids, so the file is sufficient. It is recorded before any data of peers.
    const policies = content.policies.map((body): NewEntry => ({ kind: 'policy-known', body }))
    const keys = await this.#load(content, named.recovery_secret_file, policies)
    const taken = await this.takeRecords(compared, () => this.#entriesOf(plan))
    confirmation.unclaim()
    return {
      restored: true,
      ...taken,
      keys,
      missing: this.#missing(),
      ...chosen,
      ...this.#report(content, plan),
      ...foundBy(compared),
      enrolled: store.state.enrolments.size,
    }
  }

  /**
   * Restores only the shares without a record, for a recovery without the platform. No peer is
   * called, and afterwards this node signs only recovery orders of its own operator.
   */
  async open(body: unknown): Promise<unknown> {
    const { store } = this.#parts
    if (store.state.recovering) return { keys: store.state.keys.size }
    const parsed = openSchema.safeParse(body)
    if (!parsed.success)
      throw new Refusal('BAD_ORDER', 'recover-open accepts file and recovery_secret_file')
    const keys = await this.#load(this.#read(parsed.data).content, parsed.data.recovery_secret_file)
    store.append('recovering', { made_at: store.seconds() })
    return { keys }
  }

  /** Returns the peers whose records are read. @throws Refusal BAD_ORDER */
  #sourcesOf({ without, drop }: Choices): number[] {
    const { nodes } = this.#parts.peers
    if (without === undefined) return nodes
    if (!nodes.includes(without))
      throw new Refusal('BAD_REQUEST_FIELD', 'without must be another node')
    if (drop.length > 0)
      throw new Refusal(
        'BAD_REQUEST_FIELD',
        'drop: an entry can be dropped only if the record of the other peer was read',
      )
    return nodes.filter((node) => node !== without)
  }

  /** Returns what the operator has chosen, and what is missing because of it. */
  #choicesOf({ sources, dropped, rules }: Compared) {
    const { config, peers } = this.#parts
    const without = peers.nodes.find((node) => !sources.includes(node))
    return {
      dropped,
      ...(without === undefined
        ? {}
        : {
            not_read: {
              node: without,
              missing: `what only node ${without} has: signatures that the nodes ${[config.node, without].sort().join(' and ')} made together, with their charges to limits, and voids and revocations that were entered at these two nodes only`,
              rules: [...rules].sort(),
            },
          }),
    }
  }

  /** Checks file, node and recovery secret; changes nothing. */
  #read({ file, recovery_secret_file }: z.infer<typeof openSchema>): ReadBackup {
    const { config, store } = this.#parts
    const { state } = store
    if (state.keys.size > 0 && !state.restoring) {
      throw new Refusal(
        'KEY_CONFLICT',
        'This node has keys; only a node that lost its record can be restored',
      )
    }
    const backup = readAuthentic(file, config.identityPublic)
    const { node, mode } = backup.content
    if (node !== config.node || mode !== config.mode)
      throw new Refusal('BAD_REQUEST_FIELD', `The file belongs to node ${node}, ${mode}`)
    const secret = readRecoverySecret(recovery_secret_file)
    const isItsOwn = recoveryPublicKey(secret) === config.recovery_public_key
    secret.fill(0)
    if (!isItsOwn)
      throw new Refusal(
        'BAD_REQUEST_FIELD',
        "The recovery secret does not belong to this node's recovery public key",
      )
    return backup
  }

  #plan({ enrolments, drains }: BackupFile, held: ReadonlyMap<number, ReadonlySet<string>>): Plan {
    const missingAt = (hash: string): number[] =>
      [...held].flatMap(([node, hashes]) => (hashes.has(hash) ? [] : [node])).sort()
    const leftOut = [
      ...enrolments.map((each) => ({
        api_key: each.api_key,
        workspace: each.workspace,
        missing_at: missingAt(enrolmentHash(each)),
      })),
      ...drains.map((each) => ({
        order: each.order,
        workspace: each.workspace,
        missing_at: missingAt(drainHash(each)),
      })),
    ]
    const own = new Set([...enrolments.map(enrolmentHash), ...drains.map(drainHash)])
    const [first = new Set<string>(), second = new Set<string>()] = held.values()
    return {
      not_in_backup: [...first].filter((hash) => second.has(hash) && !own.has(hash)).length,
      enrolments: enrolments.filter((each) => missingAt(enrolmentHash(each)).length === 0),
      drains: drains.filter((each) => missingAt(drainHash(each)).length === 0),
      left_out: leftOut.filter(({ missing_at }) => missing_at.length > 0),
    }
  }

  /** Returns the summary for the operator: what is restored, and what must be entered again. */
  #report(
    { made_at, version, keys, sets, policies }: BackupFile,
    { enrolments, drains, left_out, not_in_backup }: Plan,
  ) {
    return {
      made_at,
      signed: version === 2,
      key_ids: keys.map(({ ready }) => ready.key_id),
      workspaces: [...new Set(sets.map(({ workspace }) => workspace))].sort(),
      enrolments: enrolments.map(({ public_key_pem, ...each }) => ({
        ...each,
        key_fingerprint: fingerprintOfKey(parsePublicKey(public_key_pem)),
      })),
      drains,
      policies: policies.map(({ chain: _chain, ...each }) => each),
      left_out,
      not_in_backup,
    }
  }

  /**
   * An enrolment includes the sub-account's name if a peer's record or the certificates bind the
   * name to this index.
   */
  #entriesOf({ enrolments, drains }: Plan): NewEntry[] {
    const { state } = this.#parts.store
    return [
      ...enrolments.flatMap(({ revoked, sub_account_name, ...enrolment }): NewEntry[] => {
        const { api_key, workspace, sub_account } = enrolment
        const bound =
          sub_account_name === null
            ? undefined
            : state.subAccounts.get(State.subAccountKey(workspace, sub_account_name))
        const name = bound?.index === sub_account ? sub_account_name : null
        return [
          { kind: 'enrol', body: { ...enrolment, sub_account_name: name } },
          ...(revoked ? [{ kind: 'revoke' as const, body: { api_key } }] : []),
        ]
      }),
      ...drains.map((body): NewEntry => ({ kind: 'drain', body })),
    ]
  }

  /**
   * Loads shares, keys, certified bindings and bans from the file.
   * @param more entries that are recorded in addition
   * @throws Refusal if a key is not certified, or its share belongs to another node
   */
  async #load(file: BackupFile, secretFile: string, more: NewEntry[] = []): Promise<number> {
    const { store } = this.#parts
    const secret = readRecoverySecret(secretFile)
    const entries: NewEntry[] = [{ kind: 'restoring', body: { made_at: file.made_at } }]
    try {
      for (const key of file.keys) entries.push(...(await this.#loadKey(key, secret)))
    } finally {
      secret.fill(0)
    }
    entries.push(...this.#certifiedKeySets(file), ...this.#certifiedSubAccounts(file))
    // Written after the keys, so that all keys count as older than the bans: the file does not
    // state whether a key was generated after the banned node had been replaced.
    for (const ban of file.bans) entries.push({ kind: 'ban', body: ban })
    store.appendAll([...entries, ...more])
    return file.keys.length
  }

  /**
   * Stores the share of a key and returns the key's entries.
   * @throws Refusal if the key is not certified, or the share belongs to another node
   */
  async #loadKey(
    { ready, signatures, share }: BackupFile['keys'][number],
    secret: Uint8Array,
  ): Promise<NewEntry[]> {
    const { config, store, keyring, vault } = this.#parts
    if (
      ready.mode !== config.mode ||
      !isSignedByAll(readyBytes(ready), signatures, keyring.identities)
    ) {
      throw new Refusal(
        'BAD_REQUEST_FIELD',
        `The key ${ready.key_id} is not certified by all three nodes`,
      )
    }
    const meta = {
      engine: share.engine,
      curve: ready.curve,
      keyId: ready.key_id,
      epoch: share.epoch,
      party: share.party,
    }
    if (share.party !== config.node)
      throw new Refusal('BAD_REQUEST_FIELD', 'The share belongs to another node')
    const material: KeyMaterial = {
      ...meta,
      engineVersion: share.engine_version,
      publicKey: new Uint8Array(Buffer.from(ready.public_key, 'hex')),
      chainCode: new Uint8Array(Buffer.from(ready.chain_code, 'hex')),
      sealedShare: await vault.restoreBackup(
        new Uint8Array(Buffer.from(share.sealed, 'base64')),
        secret,
        meta,
      ),
    }
    const session = share.session === undefined ? {} : { session: share.session }
    store.shares.replace(material, share.session ?? null)
    const entries: NewEntry[] = [
      {
        kind: 'key',
        body: { ...ready, signatures, ...(share.epoch === ready.epoch ? session : {}) },
      },
    ]
    if (share.epoch > ready.epoch) {
      entries.push({
        kind: 'refreshed',
        body: { key_id: ready.key_id, epoch: share.epoch, ...session },
      })
    }
    return entries
  }

  /** Returns the entries of the workspaces' keys that all three nodes have certified. */
  #certifiedKeySets(file: BackupFile): NewEntry[] {
    const { config, keyring } = this.#parts
    const byId = new Map(file.keys.map((key) => [key.ready.key_id, key.ready]))
    return file.sets.flatMap((set): NewEntry[] => {
      const ready = byId.get(set.key_id)
      if (!ready) return []
      const { workspace, curve, key_id, epoch, certificates } = set
      const { public_key, chain_code } = ready
      const certified = {
        workspace,
        curve: ready.curve,
        key_id,
        public_key,
        chain_code,
        mode: config.mode,
        epoch,
        certificates,
      }
      if (!verifyCertificates(certified, keyring.identities)) return []
      return [
        { kind: 'allocate', body: { workspace, curve, key_id, epoch } },
        { kind: 'certificates', body: { workspace, curve, key_id, certificates } },
      ]
    })
  }

  /** Returns the entries of the sub-accounts that all three nodes have certified. */
  #certifiedSubAccounts(file: BackupFile): NewEntry[] {
    const { config, keyring } = this.#parts
    return file.sub_accounts.flatMap(({ certificates, ...binding }): NewEntry[] => {
      const { workspace, name, index } = binding
      const bytes = bindingBytes({ workspace, sub_account: name, index, mode: config.mode })
      if (!isSignedByAll(bytes, certificates, keyring.identities)) return []
      return [
        { kind: 'sub-account', body: binding },
        { kind: 'sub-account-set', body: { ...binding, certificates } },
      ]
    })
  }

  #missing(): string[] {
    const { state } = this.#parts.store
    return [...state.allocations.values()]
      .filter((each) => !state.keys.has(each.key_id))
      .map((each) => each.key_id)
  }

  /**
   * Reads the peers' records and verifies their chains; only then does this node serve requests
   * again.
   * @param compared result of the comparison that the operator has confirmed; null: both peers
   * @param last entries that are written together with the end of the restoration
   */
  async takeRecords(
    compared: Compared | null = null,
    last: () => NewEntry[] = () => [],
  ): Promise<{ imported: number; generation: number }> {
    const records = new PeerRecords(this.#parts)
    return records.take(compared ?? (await records.compare(this.#parts.peers.nodes, [])), last)
  }
}
