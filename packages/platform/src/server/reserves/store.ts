import type { Queryable } from '../../core/database/pool.ts'
import { ApiError } from '../../core/errors.ts'
import { siblingsOf, treeOf, type Tree } from './tree.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export interface SnapshotRow {
  id: string
  created_at: Date
  statement: string
  hash: string
  signatures: { node: number; signature: string }[]
}
const COLUMNS = 'id, created_at, statement, hash, signatures'

/** Returns published statements, newest first. */
export const listSnapshots = (
  database: Queryable,
  limit: number,
  offset: number,
): Promise<SnapshotRow[]> =>
  database.query<SnapshotRow>(
    `select ${COLUMNS} from reserve_snapshots order by created_at desc, id limit $1 offset $2`,
    [limit, offset],
  )

/**
 * Returns a published statement.
 * @throws ApiError `NOT_FOUND`
 */
export async function getSnapshot(database: Queryable, id: string): Promise<SnapshotRow> {
  const row = UUID.test(id)
    ? await database.one<SnapshotRow>(`select ${COLUMNS} from reserve_snapshots where id = $1`, [
        id,
      ])
    : null
  if (!row) throw new ApiError('NOT_FOUND', 'there is no published statement with this id')
  return row
}

export const presentSnapshot = ({ id, created_at, statement, hash, signatures }: SnapshotRow) => ({
  id,
  created_at: created_at.toISOString(),
  hash,
  statement,
  signatures,
})

/** Maximum number of cached trees. Published trees never change. */
const TREES_MAX = 8
const trees = new WeakMap<Queryable, Map<string, Promise<Tree>>>()

function treeIn(database: Queryable, snapshot: string, asset: string): Promise<Tree> {
  const existing = trees.get(database) ?? new Map<string, Promise<Tree>>()
  trees.set(database, existing)
  const name = `${snapshot} ${asset}`
  const pending =
    existing.get(name) ??
    database
      .query<{ hash: Buffer; balance: string }>(
        `select hash, balance::text from reserve_leaves where snapshot_id = $1 and asset = $2
          order by place`,
        [snapshot, asset],
      )
      .then((rows) =>
        treeOf(
          snapshot,
          asset,
          rows.map(({ hash, balance }) => ({ hash, sum: BigInt(balance) })),
        ),
      )
  existing.delete(name)
  existing.set(name, pending)
  // A failed query is repeated the next time.
  pending.catch(() => existing.delete(name))
  if (existing.size > TREES_MAX) existing.delete(existing.keys().next().value as string)
  return pending
}

/** Returns the leaves of one sub-account with their sibling nodes. */
export async function leavesOf(database: Queryable, snapshot: string, subAccountId: string) {
  const rows = await database.query<{
    asset: string
    place: number
    nonce: Buffer
    balance: string
  }>(
    `select asset, place, nonce, balance::text from reserve_leaves where snapshot_id = $1
      and sub_account_id = $2 order by asset`,
    [snapshot, subAccountId],
  )
  const leaves = []
  for (const { asset, place, nonce, balance } of rows) {
    leaves.push({
      asset,
      balance,
      nonce: nonce.toString('hex'),
      siblings: siblingsOf(await treeIn(database, snapshot, asset), place),
    })
  }
  return leaves
}
