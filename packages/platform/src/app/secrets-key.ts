import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from '../database/pool.ts'
import type { Secrets } from '../secrets.ts'
import type { Settings } from '../settings/settings.ts'
import { PLATFORM_KEY_OWNER } from '../webhooks/platform-key.ts'

/** What the mark of the key is sealed to. */
export const MARK_OWNER = 'installation'
const MARK = 'custody'

const HOW =
  'all processes of one database need the same key: use the value of CUSTODY_SECRETS_KEY on the first host, or the output of "base64 -w0 secrets.key" in its home'

/**
 * A process beside others must be given the key: one that it made for itself would open nothing.
 * @throws Error that says where the key is
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
 * Whether this process's key is the one under which this database's secrets are sealed; the first
 * start's is from then on.
 * @throws Error that says so, and never with a key
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
    // A database of before the mark may have it already.
    const webhooks = await database.one<{ sealed: Buffer }>(
      'select sealed_private_key sealed from webhook_keys',
    )
    if (webhooks && !opens(PLATFORM_KEY_OWNER, webhooks.sealed)) throw refuse()
    await database.query('update installation set sealed_mark = $1 where sealed_mark is null', [
      secrets.seal(MARK_OWNER, MARK),
    ])
  }
  // Another process may have been first.
  const mark = await marked()
  if (mark !== null && !opens(MARK_OWNER, mark)) throw refuse()
}
