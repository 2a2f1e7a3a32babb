import { z } from 'zod'
import { HASH_MAX, ID_MAX, KEY_MAX, NODES, SIGNED_MAX } from '../../core/bounds.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { integer, pageOf, pageQuery } from '../../core/http/schemas.ts'
import { listSnapshots, presentSnapshot } from './store.ts'
import type { Database } from '../../core/database/pool.ts'

interface Services {
  database: Database
}

/** Maximum number of statements on a page; a statement has a line for each asset. */
const LIMIT = 50

const publishedShape = z
  .object({
    id: z.string().max(ID_MAX),
    created_at: z.string(),
    hash: z.string().max(HASH_MAX).meta({ description: 'SHA-256 of `statement`, lower-case hex' }),
    statement: z.string().max(SIGNED_MAX).meta({
      description:
        'Canonical JSON (RFC 8785), the exact bytes that were signed: assets and liabilities of each asset, and its root',
    }),
    signatures: z
      .array(
        z.object({
          node: z.int().min(1).max(3),
          signature: z.string().max(KEY_MAX).meta({
            description:
              'Ed25519, lower-case hex, over custody/reserves/v1, a line feed, and {"statement":"HASH"}',
          }),
        }),
      )
      .max(NODES),
  })
  .meta({ id: 'ReservesStatement' })

/** Lists the statements of reserves, newest first. */
export const listReserves = endpoint({
  id: 'listReserves',
  tag: 'Proof of reserves',
  description:
    'Returns the statements that the operator has published, newest first. The list is the same for every caller, because a statement covers the whole installation; the proof contains your part of it.',
  method: 'GET',
  path: '/dac/v1/reserves',
  summary: 'List reserve statements',
  access: 'read',
  query: z.strictObject({
    page: pageQuery.page,
    limit: integer(1, LIMIT, 'Statements per page; by default 5').default(5),
  }),
  response: pageOf(publishedShape, LIMIT),
  async handler({ query: { page, limit } }, { database }: Services) {
    const [rows, count] = await Promise.all([
      listSnapshots(database, limit, (page - 1) * limit),
      database.one<{ total: string }>('select count(*)::text total from reserve_snapshots'),
    ])
    return { body: { data: rows.map(presentSnapshot), page, limit, total: Number(count?.total) } }
  },
})
