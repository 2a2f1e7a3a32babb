import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { copyOf, prepared } from '../../signer/testing/prepared.ts'
import { startEmbeddedPostgres } from '../src/core/database/embedded.ts'
import { APP } from '../src/core/database/embedded-roles.ts'
import { migrate } from '../src/core/database/migrate.ts'
import { openDatabase } from '../src/core/database/pool.ts'

const SOURCES = [
  'packages/platform/src/core/database',
  'package-lock.json',
  'packages/platform/testing/prepared-database.ts',
]

/**
 * Copies a database with empty tables into a home directory, where the platform's embedded server
 * finds it.
 */
export async function prepareDatabase(home: string): Promise<void> {
  const folder = await prepared('postgres', SOURCES, async (draft) => {
    const place = mkdtempSync(join(tmpdir(), 'custody-database-'))
    try {
      const postgres = await startEmbeddedPostgres(place)
      const owner = openDatabase(postgres.ownerUrl, { max: 1 })
      await migrate(owner, APP)
      await owner.close()
      // A killed server keeps its written data, because the machine continues to run. Waiting for
      // the disk would test nothing here.
      const database = openDatabase(postgres.adminUrl, { max: 1 })
      for (const setting of ['fsync', 'full_page_writes'])
        await database.query(`alter system set ${setting} = off`)
      await database.close()
      await postgres.stop()
      copyOf(join(place, 'postgres'), draft)
    } finally {
      rmSync(place, { recursive: true, force: true })
    }
  })
  copyOf(folder, join(home, 'postgres'))
}
