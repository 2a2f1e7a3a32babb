import { endpoint } from '../../core/http/endpoint.ts'
import { idParam } from '../exchanges/account.ts'
import { exchangeTransferShape, findTransfer, presentExchangeTransfer } from './transfer.ts'
import type { Database } from '../../core/database/pool.ts'

interface Services {
  database: Database
}

/** Returns one transfer between wallet and exchange. */
export const readExchangeTransfer = endpoint({
  id: 'readExchangeTransfer',
  tag: 'Exchange transfers',
  description: 'Returns one transfer with its status at the exchange and on the chain.',
  errors: ['NOT_FOUND'],
  method: 'GET',
  path: '/dac/v1/exchange-transfers/{id}',
  summary: 'Read an exchange transfer',
  access: 'read',
  params: idParam,
  response: exchangeTransferShape,
  async handler({ caller, params }, services: Services) {
    return {
      body: presentExchangeTransfer(await findTransfer(services.database, caller, params.id)),
    }
  },
})
