import { z } from 'zod'
import { ASSETS_MAX } from '../bounds.ts'
import { endpoint } from '../http/endpoint.ts'
import { pathId } from '../http/schemas.ts'
import { secretOwner } from './publish.ts'
import { getSnapshot, leavesOf } from './store.ts'
import { DEPTH_MAX, secretOf } from './tree.ts'

const UNIT = 'Integer in the smallest unit, decimal'
const HEX = '32 bytes, lower-case hex'
const siblingShape = z.object({
  side: z.enum(['left', 'right']),
  hash: z.string().meta({ description: HEX }),
  sum: z.string().meta({ description: UNIT }),
})
const proofShape = z
  .object({
    snapshot: z.string(),
    workspace: z.string(),
    sub_account: z.string(),
    secret: z.string().meta({ description: `${HEX}; yours alone` }),
    leaves: z
      .array(
        z.object({
          asset: z.string(),
          balance: z.string().meta({ description: UNIT }),
          nonce: z.string().meta({ description: HEX }),
          siblings: z
            .array(siblingShape)
            .max(DEPTH_MAX)
            .meta({ description: 'From the leaf up to the top' }),
        }),
      )
      .max(ASSETS_MAX)
      .meta({ description: 'One for each wallet that there was' }),
  })
  .meta({ id: 'ReservesProof' })

/** Returns the caller's own leaves of a statement with their proofs. */
export const readReservesProof = endpoint({
  id: 'readReservesProof',
  tag: 'Proof of reserves',
  description:
    'Your sub-account’s balances as the statement counts them among what is owed, and what stands beside them in the tree of ' +
    'each asset. Verify it with the client (`verifyReserves`), `npx custody verify-reserves` or the page /reserves. A sum beside yours ' +
    'may be the balance of one other, unnamed sub-account: keep the proof to yourself.',
  errors: ['NOT_FOUND'],
  method: 'GET',
  path: '/dac/v1/reserves/{id}/proof',
  summary: 'Read what proves that you are counted',
  access: 'read',
  params: z.strictObject({ id: pathId }),
  response: proofShape,
  async handler({ services: { database, aml }, caller, params }) {
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
