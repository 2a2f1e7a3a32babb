import { z } from 'zod'
import { ASSETS_MAX, HASH_MAX, ID_MAX, KEY_MAX, NAME_MAX, WORD_MAX } from '../../core/bounds.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { pathId } from '../../core/http/schemas.ts'
import { secretOwner } from './publish.ts'
import { getSnapshot, leavesOf } from './store.ts'
import { DEPTH_MAX, secretOf } from './tree.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Aml } from '../../custody/aml/aml.ts'

interface Services {
  database: Database
  aml: Aml
}

const UNIT = 'Integer in the smallest unit, as decimal digits'
const HEX = '32 bytes, lower-case hex'
const siblingShape = z.object({
  side: z.enum(['left', 'right']),
  hash: z.string().max(HASH_MAX).meta({ description: HEX }),
  sum: z.string().max(WORD_MAX).meta({ description: UNIT }),
})
const proofShape = z
  .object({
    snapshot: z.string().max(ID_MAX),
    workspace: z.string().max(NAME_MAX),
    sub_account: z.string().max(NAME_MAX),
    secret: z
      .string()
      .max(KEY_MAX)
      .meta({ description: `${HEX}; known only to you` }),
    leaves: z
      .array(
        z.object({
          asset: z.string().max(WORD_MAX),
          balance: z.string().max(WORD_MAX).meta({ description: UNIT }),
          nonce: z.string().max(KEY_MAX).meta({ description: HEX }),
          siblings: z
            .array(siblingShape)
            .max(DEPTH_MAX)
            .meta({ description: 'Sibling sums from the leaf to the root' }),
        }),
      )
      .max(ASSETS_MAX)
      .meta({ description: 'One leaf for each wallet that existed' }),
  })
  .meta({ id: 'ReservesProof' })

/** Returns the caller's own leaves of a statement with their proofs. */
export const readReservesProof = endpoint({
  id: 'readReservesProof',
  tag: 'Proof of reserves',
  description:
    'Returns the balances of your sub-account as the statement includes them in the liabilities, with the sibling sums in each asset’s tree. Verify the proof with the client (`verifyReserves`), `npx custody verify-reserves` or the page /reserves. A sibling sum may be the balance of one other, unnamed sub-account: keep the proof confidential.',
  errors: ['NOT_FOUND'],
  method: 'GET',
  path: '/dac/v1/reserves/{id}/proof',
  summary: 'Read the proof of inclusion in a reserve statement',
  access: 'read',
  params: z.strictObject({ id: pathId }),
  response: proofShape,
  async handler({ caller, params }, { database, aml }: Services) {
    const { id } = await getSnapshot(database, params.id)
    const row = await database.one<{ secret: Buffer }>(
      'select secret from reserve_snapshots where id = $1',
      [id],
    )
    const secret = Buffer.from(
      aml.secrets.open(secretOwner(id), (row as { secret: Buffer }).secret),
      'hex',
    )
    return {
      body: {
        snapshot: id,
        workspace: caller.workspace,
        sub_account: caller.subAccount,
        secret: secretOf(secret, caller.subAccountId).toString('hex'),
        leaves: await leavesOf(database, id, caller.subAccountId),
      },
    }
  },
})
