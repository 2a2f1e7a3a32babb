import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from '../../core/database/pool.ts'
import type { Secrets } from '../../core/secrets.ts'
import type { Settings } from '../../core/settings/settings.ts'
import { PLATFORM_KEY_OWNER } from '../../events/webhooks/platform-key.ts'

/** Context to which the mark of the key is sealed. */
export const MARK_OWNER = 'installation'
const MARK = 'custody'

const HOW =
  'all processes of one database need the same key: use the value of CUSTODY_SECRETS_KEY on the first host, or the output of "base64 -w0 secrets.key" in its home'

/**
 * Checks that a process was given the secrets key if it shares the database with other processes: a
 * key that it created itself could not decrypt anything.
 * @throws Error that says where to find the key
 */
export function checkSecretsKeyGiven({
  role,
  secretsKey,
  home,
}: Pick<Settings, 'role' | 'secretsKey' | 'home'>): void {
  if (role === 'all' || secretsKey !== null || existsSync(join(home, 'secrets.key'))) return
  throw new Error(
    `CUSTODY_ROLE=${role}: CUSTODY_SECRETS_KEY is required; ${HOW}. For a new database: openssl rand -base64 32`,
  )
}

/**
 * Checks that this process's key is the one with which this database's secrets are sealed. The
 * first start determines the key.
 * @throws Error if the key differs; the message never contains a key
 */
export async function checkSecretsKey(
  database: Database,
  secrets: Secrets,
  secretsKey: string | null,
): Promise<void> {
  const refuse = (): Error =>
    new Error(
      `${secretsKey === null ? 'the secrets.key of the home' : 'CUSTODY_SECRETS_KEY'}: is not the key that encrypts the secrets of this database; ${HOW}`,
    )
  const opens = (owner: string, sealed: Buffer): boolean => {
    try {
      secrets.open(owner, sealed)
      return true
    } catch {
      return false
    }
  }
  const marked = async () => {
    const row = await database.one<{ sealed_mark: Buffer | null }>(
      'select sealed_mark from installation',
    )
    return row?.sealed_mark ?? null
  }
  if ((await marked()) === null) {
    // A database created before the mark existed may already contain a sealed key.
    const webhooks = await database.one<{ sealed: Buffer }>(
      'select sealed_private_key sealed from webhook_keys',
    )
    if (webhooks && !opens(PLATFORM_KEY_OWNER, webhooks.sealed)) throw refuse()
    await database.query('update installation set sealed_mark = $1 where sealed_mark is null', [
      secrets.seal(MARK_OWNER, MARK),
    ])
  }
  // Another process may have written the mark first.
  const mark = await marked()
  if (mark !== null && !opens(MARK_OWNER, mark)) throw refuse()
}
