import { KekError, makeEntry, type KekSettings } from '@custody/key-encryption'
import { randomUUID } from 'node:crypto'
import { kekContextOf } from './data-dir.ts'

/**
 * Wraps and unwraps a key that is used for nothing else, to test a provider before a node depends
 * on it.
 * @throws KekError
 */
export async function checkKek(
  folder: string,
  settings: KekSettings,
  env: NodeJS.ProcessEnv,
): Promise<{ kek_id: string; kek_version: string }> {
  if (settings.kind === 'file') throw new KekError('SETTING', 'a key file requires no check')
  const words = { purpose: 'custody/check', node: randomUUID() }
  const { kek_id, kek_version } = await makeEntry(settings, kekContextOf(folder, env), (name) => ({
    ...words,
    name,
  }))
  return { kek_id, kek_version }
}
