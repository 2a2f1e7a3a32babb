import { readFileSync } from 'node:fs'
import { commandName } from '@custody/chains/terminal'
import type { z } from 'zod'
import type { Settings } from '../../core/settings/settings.ts'
import type { Database } from '../../core/database/pool.ts'
import { rpIdOf } from './passkeys.ts'
import type { Role } from './roles.ts'
import type { From } from './sessions.ts'
import type { sessionShape } from './schemas.ts'

interface Services {
  settings: Pick<Settings, 'network'>
  database: Database
}

const { version } = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
) as { version: string }

/**
 * Returns the data about the current visitor that a page needs.
 * @param personId null: the visitor is not signed in
 */
export async function presentSession(
  { database, settings }: Services,
  personId: string | null,
  from: From,
): Promise<z.output<typeof sessionShape>> {
  const about = {
    passkeys_available: rpIdOf(from.origin) !== null,
    network: settings.network,
    version,
    command: commandName(),
  }
  const [person, workspaces] =
    personId === null
      ? [undefined, []]
      : await Promise.all([
          database.one<{
            id: string
            email: string
            name: string
            has_password: boolean
            has_totp: boolean
            recovery_codes_left: number
            passkeys: number
          }>(
            `select id, email, name, password_hash is not null has_password,
              totp_secret is not null has_totp,
         (select count(*)::int from recovery_codes where person_id = $1
           and used_at is null) recovery_codes_left,
         (select count(*)::int from passkeys where person_id = $1) passkeys
       from people where id = $1`,
            [personId],
          ),
          database.query<{ name: string; role: Role; sub_accounts: string[] }>(
            `select w.name, m.role, array(select s.name from sub_accounts s
              where s.workspace_id = w.id order by s.path_index) sub_accounts
       from memberships m join workspaces w on w.id = m.workspace_id where m.person_id = $1
         order by w.name`,
            [personId],
          ),
        ])
  return { person: person ?? null, workspaces, ...about }
}
