import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Settings of an embedded server whose data folder was not created by initdb here. They are those
 * that initdb writes for the options of `startEmbeddedPostgres`. All other settings are on the
 * server's command line.
 */
const SETTINGS: Readonly<Record<string, string>> = {
  'postgresql.conf': `# Written by the platform when it restored this database.
dynamic_shared_memory_type = posix
datestyle = 'iso, mdy'
lc_messages = 'C'
lc_monetary = 'C'
lc_numeric = 'C'
lc_time = 'C'
default_text_search_config = 'pg_catalog.english'
`,
  // Only one user can access the socket's folder.
  'pg_hba.conf': 'local all all trust\n',
  'pg_ident.conf': '',
}

/**
 * Writes the settings of a data folder, in place of existing ones.
 * @param recovery settings for a recovery that runs first
 */
export function writeEmbeddedSettings(data: string, recovery: readonly string[] = []): void {
  const files = {
    ...SETTINGS,
    'postgresql.auto.conf': recovery.map((line) => `${line}\n`).join(''),
  }
  for (const [name, text] of Object.entries(files)) {
    rmSync(join(data, name), { force: true })
    writeFileSync(join(data, name), text, { mode: 0o600, flag: 'wx' })
  }
}
