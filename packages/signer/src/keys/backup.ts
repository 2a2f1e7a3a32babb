import type { KeyMaterial, Vault } from '@custody/threshold'
import { existsSync, readFileSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { z } from 'zod'
import type { Config } from '../config.ts'
import { Refusal } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Body, NewEntry } from '../store/entries/index.ts'
import { entryOf } from '../store/entries/index.ts'
import { PEOPLE } from '../store/entries/people.ts'
import { RecordError } from '../store/entries/error.ts'
import { takenFrom } from '../store/imported.ts'
import { writeNewFile } from '../store/new-file.ts'
import { RecordStore } from '../store/record.ts'
import type { Store } from '../store/index.ts'
import { ownBanFrom } from '../sessions/ban-reports.ts'
import { PAGE_ROWS, type Peers } from '../transport/peers.ts'
import { isSignedByAll, readyBytes, verifyCertificates } from './certificate.ts'
import type { Keyring } from './keyring.ts'
import { recoveryPublicKey, sealText } from './sealed.ts'

const signaturesSchema = z.array(z.strictObject({ node: z.int(), signature: z.string() }))
const readySchema = z.strictObject({
  curve: z.enum(['secp256k1', 'ed25519']), key_id: z.string(), public_key: z.string(), chain_code: z.string(), mode: z.string(),
  epoch: z.int(),
})
const sealedSchema = z.strictObject({ ephemeral: z.string(), nonce: z.string(), text: z.string(), tag: z.string() })

/** The file: shares and the home's keys are readable with the recovery key only; the rest is public. */
export const backupFileSchema = z.strictObject({
  version: z.literal(1),
  node: z.int(),
  mode: z.string(),
  made_at: z.int(),
  /** config.json, identity and TLS keys. */
  home: sealedSchema,
  keys: z.array(z.strictObject({
    ready: readySchema,
    signatures: signaturesSchema,
    share: z.strictObject({
      engine: z.enum(['dkls23-secp256k1', 'frost-ed25519']), engine_version: z.string(), epoch: z.int(), party: z.int(), sealed: z.string(),
      /** Of the run that made it; absent in files of earlier versions. */
      session: z.string().regex(/^[0-9a-f]{64}$/).optional(),
    }),
  })),
  sets: z.array(z.strictObject({
    workspace: z.string(), curve: z.enum(['secp256k1', 'ed25519']), key_id: z.string(), epoch: z.int(), certificates: signaturesSchema,
  })),
  enrolments: z.array(z.strictObject({
    api_key: z.string(), public_key_pem: z.string(), role: z.enum(['full', 'read-only']), workspace: z.string(), sub_account: z.int(),
    sub_account_name: z.string().nullable().default(null), revoked: z.boolean(),
  })),
  drains: z.array(z.strictObject({
    order: z.string(), workspace: z.string(), network: z.string(), to_address: z.string(), expires_at: z.int(),
  })),
  /** The node's own bans; absent in files of earlier versions. */
  bans: z.array(PEOPLE.ban.required()).default([]),
})
export type BackupFile = z.infer<typeof backupFileSchema>

const backupSchema = z.strictObject({ file: z.string().max(4096).optional() })
const restoreSchema = z.strictObject({ file: z.string().max(4096), recovery_secret_file: z.string().max(4096) })

const rowSchema = z.strictObject({ height: z.int(), at: z.int(), kind: z.string(), body: z.string(), hash: z.string() })
/** The recovery secret: a file of 64 hex digits, or the local setup's JSON. */
export function readRecoverySecret(path: string): Uint8Array {
  const text = readFileSync(path, 'utf8').trim()
  const digits = text.startsWith('{') ? String((JSON.parse(text) as { secret?: unknown }).secret) : text
  if (!/^[0-9a-f]{64}$/.test(digits)) throw new Refusal('BAD_REQUEST_FIELD', 'recovery_secret_file must hold 32 bytes in hex')
  return new Uint8Array(Buffer.from(digits, 'hex'))
}

/** A peer's entry that this version cannot read may be a step or a void: the node stays at rest, and takes part in nothing. */
function readFrom(node: number, row: z.infer<typeof rowSchema>): Body<'imported'> | null {
  try {
    return takenFrom(node, row)
  } catch (error) {
    if (!(error instanceof RecordError)) throw error
    throw new Refusal('RECORD_UNREADABLE', `From node ${node}: ${error.message}`, { node })
  }
}

export class Backups {
  readonly #parts: { config: Config; store: Store; peers: Peers; keyring: Keyring; vault: Vault; log: Log }

  constructor(parts: { config: Config; store: Store; peers: Peers; keyring: Keyring; vault: Vault; log: Log }) { this.#parts = parts }

  async backup(body: unknown): Promise<unknown> {
    const { config, store, keyring, vault } = this.#parts
    const parsed = backupSchema.safeParse(body)
    if (!parsed.success) throw new Refusal('BAD_ORDER', 'backup takes file, an absolute path, or nothing')
    const path = parsed.data.file ?? join(config.home, `backup-${config.node}-${store.seconds()}.json`)
    if (!isAbsolute(path)) throw new Refusal('BAD_ORDER', 'file must be an absolute path')
    // An older backup may be the last one that can be read.
    if (existsSync(path)) throw new Refusal('BAD_ORDER', `${path} exists already; name another file`)
    const { state } = store
    const recovery = new Uint8Array(Buffer.from(config.recovery_public_key, 'hex'))
    const keys: BackupFile['keys'] = []
    for (const key of state.keys.values()) {
      const material = store.shareOf(key.key_id, key.epoch)
      if (!material) continue
      const { engine, curve, keyId, epoch, party } = material
      const sealed = await vault.sealBackup(material.sealedShare, { engine, curve, keyId, epoch, party }, recovery)
      keys.push({
        ...keyring.readyOf(key),
        share: {
          engine, engine_version: material.engineVersion, epoch, party, sealed: Buffer.from(sealed).toString('base64'),
          ...(key.session === null ? {} : { session: key.session }),
        },
      })
    }
    const read = (name: string): string => readFileSync(join(config.home, name), 'utf8')
    const home = JSON.stringify(
      Object.fromEntries(['config.json', 'identity.key', 'identity.pub', 'tls.key', 'tls.crt'].map((name) => [name, read(name)]))
    )
    const file: BackupFile = {
      version: 1, node: config.node, mode: config.mode, made_at: store.seconds(), home: sealText(home, config.recovery_public_key), keys,
      sets: [...state.allocations.values()].flatMap(({ workspace, curve, key_id, epoch, certificates }) => (
        certificates ? [{ workspace, curve, key_id, epoch, certificates }] : [])),
      enrolments: [...state.enrolments.values()],
      drains: [...state.drains.values()].map(({ order, workspace, network, to_address, expires_at }) => ({
        order, workspace, network, to_address, expires_at,
      })),
      bans: state.bans.flatMap(({ node, identity, at, reason, cause }) => (
        identity === null ? [] : [{ node, identity, at, reason, cause }])),
    }
    try {
      writeNewFile(path, JSON.stringify(file))
    } catch (error) {
      throw new Refusal('BAD_ORDER', `${path} cannot be written (${String((error as NodeJS.ErrnoException).code)})`)
    }
    store.append('backup', { keys: keys.length, made_at: file.made_at })
    return { file: path, keys: keys.length, enrolments: file.enrolments.length }
  }

  /**
   * For a node whose record is lost. Shares come from the file; what was signed meanwhile comes from both peers, before
   * anything is served; requests issued before now are refused, for the lost record may have known them.
   */
  async restore(body: unknown): Promise<unknown> {
    const keys = await this.#load(body)
    return { ...(await this.takeRecords()), keys, missing: this.#missing() }
  }

  /**
   * The shares without any record, for a recovery without the platform: no peer is asked, and from here on this node signs
   * its own operator's recovery orders and nothing else.
   */
  async open(body: unknown): Promise<unknown> {
    const { store } = this.#parts
    if (store.state.recovering) return { keys: store.state.keys.size }
    const keys = await this.#load(body)
    store.append('recovering', { made_at: store.seconds() })
    return { keys }
  }

  /** Shares, keys, enrolments and orders of the file. */
  async #load(body: unknown): Promise<number> {
    const { config, store, keyring, vault } = this.#parts
    const parsed = restoreSchema.safeParse(body)
    if (!parsed.success) throw new Refusal('BAD_ORDER', 'restore takes file and recovery_secret_file')
    const { state } = store
    if (state.keys.size > 0 && !state.restoring) {
      throw new Refusal('KEY_CONFLICT', 'This node has keys; restoring is for a node that lost its record')
    }
    let file: BackupFile
    try {
      file = backupFileSchema.parse(JSON.parse(readFileSync(parsed.data.file, 'utf8')))
    } catch {
      throw new Refusal('BAD_REQUEST_FIELD', 'The file is not a backup')
    }
    if (file.node !== config.node || file.mode !== config.mode) {
      throw new Refusal('BAD_REQUEST_FIELD', `The file is of node ${file.node}, ${file.mode}`)
    }
    const secret = readRecoverySecret(parsed.data.recovery_secret_file)
    if (recoveryPublicKey(secret) !== config.recovery_public_key) {
      throw new Refusal('BAD_REQUEST_FIELD', "The recovery secret does not belong to this node's recovery public key")
    }
    const entries: NewEntry[] = [{ kind: 'restoring', body: { made_at: file.made_at } }]
    try {
      for (const { ready, signatures, share } of file.keys) {
        if (ready.mode !== config.mode || !isSignedByAll(readyBytes(ready), signatures, keyring.identities)) {
          throw new Refusal('BAD_REQUEST_FIELD', `The key ${ready.key_id} is not certified by all three nodes`)
        }
        const meta = { engine: share.engine, curve: ready.curve, keyId: ready.key_id, epoch: share.epoch, party: share.party }
        if (share.party !== config.node) throw new Refusal('BAD_REQUEST_FIELD', 'A share of another node')
        const material: KeyMaterial = {
          ...meta,
          engineVersion: share.engine_version,
          publicKey: new Uint8Array(Buffer.from(ready.public_key, 'hex')),
          chainCode: new Uint8Array(Buffer.from(ready.chain_code, 'hex')),
          sealedShare: await vault.restoreBackup(new Uint8Array(Buffer.from(share.sealed, 'base64')), secret, meta),
        }
        const session = share.session === undefined ? {} : { session: share.session }
        store.shares.replace(material, share.session ?? null)
        entries.push({ kind: 'key', body: { ...ready, signatures, ...(share.epoch === ready.epoch ? session : {}) } })
        if (share.epoch > ready.epoch) {
          entries.push({ kind: 'refreshed', body: { key_id: ready.key_id, epoch: share.epoch, ...session } })
        }
      }
    } finally {
      secret.fill(0)
    }
    const byId = new Map(file.keys.map((key) => [key.ready.key_id, key.ready]))
    for (const set of file.sets) {
      const ready = byId.get(set.key_id)
      if (!ready) continue
      const { workspace, curve, key_id, epoch, certificates } = set
      const { public_key, chain_code } = ready
      const certified = { workspace, curve: ready.curve, key_id, public_key, chain_code, mode: config.mode, epoch, certificates }
      if (!verifyCertificates(certified, keyring.identities)) continue
      entries.push({ kind: 'allocate', body: { workspace, curve, key_id, epoch } })
      entries.push({ kind: 'certificates', body: { workspace, curve, key_id, certificates } })
    }
    for (const { revoked, ...enrolment } of file.enrolments) {
      if (enrolment.sub_account_name !== null) {
        entries.push({
          kind: 'sub-account', body: { workspace: enrolment.workspace, name: enrolment.sub_account_name, index: enrolment.sub_account },
        })
      }
      entries.push({ kind: 'enrol', body: enrolment })
      if (revoked) entries.push({ kind: 'revoke', body: { api_key: enrolment.api_key } })
    }
    for (const drain of file.drains) entries.push({ kind: 'drain', body: drain })
    // After the keys, so all of them count as older: whether one was made after the banned node had been replaced is not in the file.
    for (const ban of file.bans) entries.push({ kind: 'ban', body: ban })
    store.appendAll(entries)
    return file.keys.length
  }

  #missing(): string[] {
    const { state } = this.#parts.store
    return [...state.allocations.values()].filter((each) => !state.keys.has(each.key_id)).map((each) => each.key_id)
  }

  /**
   * A ban that this node had told the peer of, before it lost its record. It comes after the backup's keys, so all of them count as
   * older.
   */
  #ownBanIn(row: z.infer<typeof rowSchema>): Body<'ban'> | null {
    const { config, store } = this.#parts
    const entry = row.kind === 'ban-told' ? entryOf(row) : null
    const ban = entry?.kind === 'ban-told' ? ownBanFrom(entry.body, config) : null
    return ban && !store.state.bans.some((known) => known.node === ban.node && known.identity === ban.identity) ? ban : null
  }

  /** Both peers' records, their chains verified; then, and only then, this node serves again. */
  async takeRecords(): Promise<{ imported: number; generation: number }> {
    const { config, store, peers, log } = this.#parts
    const timeout = config.timeouts_ms.keygen
    let imported = 0
    let generation = store.state.generation
    for (const node of peers.nodes) {
      const answer = await peers.call<{ generation: number }>(node, '/peer/generation', {}, { timeout })
      generation = Math.max(generation, z.int().min(0).parse(answer.generation))
      let from = 1
      let previous = RecordStore.genesis
      for (;;) {
        const rows = z.array(rowSchema).parse((await peers.call<{ rows: unknown }>(node, '/peer/record', { from }, { timeout })).rows)
        const entries: NewEntry[] = []
        for (const row of rows) {
          if (row.height !== from || RecordStore.hashOf(row.height, row.at, row.kind, row.body, previous) !== row.hash) {
            throw new Refusal('HEAD_WENT_BACK', `The record of node ${node} is broken at ${row.height}`, { node })
          }
          previous = row.hash
          from++
          const taken = readFrom(node, row)
          if (taken) entries.push({ kind: 'imported', body: taken })
          const ban = this.#ownBanIn(row)
          if (ban) entries.push({ kind: 'ban', body: ban })
        }
        if (entries.length > 0) store.appendAll(entries)
        imported += entries.length
        if (rows.length < PAGE_ROWS) break
      }
    }
    store.append('restored', { generation: generation + 1, not_before: store.clock() })
    log('alert', 'this node was restored', { generation: generation + 1, imported })
    return { imported, generation: generation + 1 }
  }
}
