import type { Registry } from '@custody/chains'
import { z } from 'zod'
import { ID_MAX, WORD_MAX } from '../../core/bounds.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { pageFieldsLike } from '../../core/time-cursor.ts'
import { integer, LIMIT_MAX } from '../../core/http/schemas.ts'
import { findAccount, OWNERS } from './accounts.ts'
import { readBalances, readMovements, totalOf, type Position } from './movements.ts'
import {
  balanceAfter,
  balanceShape,
  movementShape,
  periodOf,
  presentBalance,
  presentMovement,
  statementQuery,
} from './statement.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
}

/** Microseconds since the Unix epoch, and the number of a ledger entry. */
const CURSOR = /^(\d{1,16})\.(\d{1,18})$/
const CURSOR_MAX = 35
const EXAMPLE = '1795600000000000.81245'

function readCursor(cursor: string | undefined): Position | null {
  const [, at, id] = (cursor === undefined ? null : CURSOR.exec(cursor)) ?? []
  return at === undefined || id === undefined ? null : { at, id }
}

/**
 * Returns the statement of a wallet or a gas tank: the balance at the beginning of a period, every
 * movement, and the balance at its end.
 */
export const readStatement = endpoint({
  id: 'readStatement',
  tag: 'Wallets',
  description:
    'Returns the statement of a wallet or a gas tank for a period, oldest movement first: `opening.total` plus every `amount` minus every `network_fee` is `closing.total`. It includes sweeps, stakes, reversals and the fees of other transactions. To continue, pass `next` of the response as `after`.',
  errors: ['UNSUPPORTED_ASSET', 'WALLET_MISSING'],
  method: 'GET',
  path: '/dac/v1/statement',
  summary: 'Read the statement of a wallet or gas tank',
  access: 'read',
  query: z.strictObject({
    ...statementQuery,
    after: z
      .string()
      .max(CURSOR_MAX)
      .regex(CURSOR, 'must be `next` of an earlier response')
      .optional()
      .meta({
        description: '`next` of an earlier response: returns the movements that follow',
        examples: [EXAMPLE],
      }),
    limit: integer(
      1,
      LIMIT_MAX,
      'Maximum number of movements in the response; by default 100',
    ).default(100),
  }),
  response: z
    .object({
      asset: z.string().max(WORD_MAX),
      account: z.enum(OWNERS),
      wallet_id: z
        .string()
        .max(ID_MAX)
        .nullable()
        .meta({ description: 'null: the statement of a gas tank' }),
      opening: balanceShape.meta({ description: 'Balance at the beginning of the period' }),
      closing: balanceShape.meta({ description: 'Balance at the end of the period' }),
      data: z.array(movementShape).max(LIMIT_MAX),
      ...pageFieldsLike(EXAMPLE),
    })
    .meta({ id: 'Statement' }),
  async handler({ caller, query }, services: Services) {
    const period = periodOf(services, query)
    const account = await findAccount(services, caller, query)
    const after = readCursor(query.after)
    // Both are read from one snapshot, so that the movements explain the difference exactly.
    const { balances, read } = await services.database.transaction(async (tx) => {
      await tx.query('set transaction isolation level repeatable read, read only')
      return {
        balances: await readBalances(tx, account, period, after),
        read: await readMovements(tx, { account, period, after, limit: query.limit + 1 }),
      }
    })
    const movements = read.slice(0, query.limit)
    const last = read.length > query.limit ? movements.at(-1) : undefined
    let balance = totalOf(after === null ? balances.opening : balances.before)
    return {
      body: {
        asset: account.asset.asset_name,
        account: query.account,
        wallet_id: account.walletId,
        opening: presentBalance(balances.opening, account),
        closing: presentBalance(balances.closing, account),
        data: movements.map((movement) => {
          balance = balanceAfter(balance, movement)
          return presentMovement(services, account, movement, balance)
        }),
        next: last === undefined ? null : `${last.position.at}.${last.position.id}`,
        has_more: last !== undefined,
      },
    }
  },
})
