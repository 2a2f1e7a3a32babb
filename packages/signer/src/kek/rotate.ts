import {
  KekError,
  makeEntry,
  readKeyFile,
  writeDurably,
  writeKeyFile,
  type KekSettings,
  type KeyEntry,
  type KeyFile,
} from '@custody/key-encryption'
import { sealedUnder, Vault, type KeyMaterial } from '@custody/threshold'
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { loadConfig, type ConfigFile } from '../config.ts'
import { Store } from '../store/index.ts'
import { readShares, sharesFolder } from '../store/shares.ts'
import { assertAllowed, bindingOf, keyFileOf, openDataDir, kekContextOf } from './data-dir.ts'

const RECORD = 'record.sqlite'

/** States on disk at which the rotation could be interrupted; tests interrupt it there. */
export type Step =
  | 'begun'
  | 'entry made'
  | 'key added'
  | 'share moved'
  | 'shares moved'
  | 'keys dropped'
  | 'config written'
  | 'file wiped'

export interface KeyStatus {
  keys: {
    name: string
    provider: string
    kek_id: string
    kek_version: string
    made_at: string
    shares: number
    seals: boolean
  }[]
  /** The key that encrypts shares in a data folder from a version without keys of its own. */
  earlier: { provider: string; shares: number } | null
  /** Number of shares that are encrypted with a key that is missing. */
  lost: number
}

const entriesOf = (home: string): KeyEntry[] =>
  existsSync(keyFileOf(home)) ? readKeyFile(keyFileOf(home)).keys : []

/**
 * Returns the number of shares that each key of a data folder encrypts. Only reads, so the node may
 * be running.
 */
export function keyStatus(home: string): KeyStatus {
  const config = loadConfig(home)
  const counts = new Map<string | null | undefined, number>()
  for (const { sealedShare } of readShares(sharesFolder(join(home, RECORD)))) {
    const name = sealedUnder(sealedShare)
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  const take = (name: string | null): number => {
    const count = counts.get(name) ?? 0
    counts.delete(name)
    return count
  }
  const keys = entriesOf(home).map(({ name, kek, kek_id, kek_version, made_at }, at) => ({
    name,
    provider: kek.kind,
    kek_id,
    kek_version,
    made_at,
    shares: take(name),
    seals: at === 0,
  }))
  const earlier =
    config.kek.kind === 'wrapped' ? null : { provider: config.kek.kind, shares: take(null) }
  return { keys, earlier, lost: [...counts.values()].reduce((sum, count) => sum + count, 0) }
}

/** Overwrites a key file with zeros, on disk, before it is deleted. */
function wipe(path: string): void {
  const descriptor = openSync(path, 'r+')
  writeSync(descriptor, Buffer.alloc(fstatSync(descriptor).size))
  fsyncSync(descriptor)
  closeSync(descriptor)
  unlinkSync(path)
}

function lock(home: string): Store {
  try {
    return new Store(join(home, RECORD), () => Date.now())
  } catch (error) {
    if (!/locked/.test(String(error))) throw error
    throw new KekError(
      'SETTING',
      'The node of this home is running: stop it first; the two others continue to sign',
    )
  }
}

const configOf = (home: string): ConfigFile =>
  JSON.parse(readFileSync(join(home, 'config.json'), 'utf8')) as ConfigFile

/**
 * Returns whether a key depends on a file, by any path to it. systemd manages the location of
 * credentials, so a credential never matches.
 */
function isFileOf({ kek }: KeyEntry, home: string, path: string): boolean {
  if (kek.kind !== 'file') return false
  const named = resolve(home, kek.path)
  return (
    kek.path.startsWith('credential:') ||
    !existsSync(named) ||
    realpathSync(named) === realpathSync(path)
  )
}

/**
 * Encrypts every share with the first key in keys.json; then, when no share uses another key,
 * removes the other keys.
 */
async function finish(
  home: string,
  store: Store,
  env: NodeJS.ProcessEnv,
  step: (step: Step) => void,
): Promise<number> {
  const config = configOf(home)
  const [first, ...others] = entriesOf(home)
  if (!first) return 0
  const vault: Vault = await openDataDir(home, config, env)
  let moved = 0
  for (const { session, material } of store.shares.all()) {
    if (sealedUnder(material.sealedShare) === first.name) continue
    const { engine, curve, keyId, epoch, party } = material
    const sealedShare = await vault.rewrap(material.sealedShare, {
      engine,
      curve,
      keyId,
      epoch,
      party,
    })
    store.shares.replace({ ...material, sealedShare } satisfies KeyMaterial, session)
    moved++
    step('share moved')
  }
  step('shares moved')
  const { keys, lost, earlier } = keyStatus(home)
  if (
    lost > 0 ||
    (earlier?.shares ?? 0) > 0 ||
    keys.some(({ shares, seals }) => shares > 0 && !seals)
  ) {
    throw new KekError(
      'REFUSED',
      'Some shares are still wrapped by another key, so no key was deleted',
    )
  }
  if (others.length > 0)
    writeKeyFile(keyFileOf(home), { version: 1, keys: [first] } satisfies KeyFile)
  step('keys dropped')
  if (config.kek.kind !== 'wrapped') {
    writeDurably(
      join(home, 'config.json'),
      `${JSON.stringify({ ...config, kek: { kind: 'wrapped' } }, null, 2)}\n`,
    )
  }
  step('config written')
  // The file that setup creates is deleted when no key refers to it, also if an earlier run was
  // interrupted before it could do so.
  const stale = join(home, 'kek')
  if (existsSync(stale) && !isFileOf(first, home, stale)) wipe(stale)
  step('file wiped')
  return moved
}

/**
 * Creates a new key for the data folder of a stopped node, wrapped by the given provider or by the
 * current one. Every share's data key is encrypted with it, and the old keys are removed when no
 * share depends on them. If it is interrupted, the data folder opens with the old and the new
 * provider together, and the next call completes the rotation.
 * @throws KekError, ThresholdError
 */
export async function rotate(
  home: string,
  wanted: KekSettings | null,
  env: NodeJS.ProcessEnv,
  step: (step: Step) => void = () => {},
): Promise<{ moved: number; status: KeyStatus }> {
  const store = lock(home)
  try {
    step('begun')
    const config = configOf(home)
    const before = entriesOf(home)
    const settings = wanted ?? before[0]?.kek
    if (!settings)
      throw new KekError('SETTING', '--kek: this home has no keys of its own yet: set a provider')
    assertAllowed(config.mode, settings)
    let moved = 0
    // An interrupted run is completed first, so that keys do not accumulate.
    if (before.length > 1 || (before.length > 0 && config.kek.kind !== 'wrapped'))
      moved += await finish(home, store, env, step)
    const surroundings = kekContextOf(home, env)
    // The data folder is opened before anything is written, so that nothing is changed if the old
    // shares cannot be decrypted.
    await openDataDir(home, configOf(home), env)
    const entry = await makeEntry(settings, surroundings, bindingOf(config))
    step('entry made')
    writeKeyFile(keyFileOf(home), { version: 1, keys: [entry, ...entriesOf(home)] })
    step('key added')
    moved += await finish(home, store, env, step)
    return { moved, status: keyStatus(home) }
  } finally {
    store.close()
  }
}
