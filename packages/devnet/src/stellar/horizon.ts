import type { Faults } from '../faults.ts'
import type { StellarChain } from './chain.ts'
import {
  accountRecord,
  ledgerRecord,
  operationRecords,
  transactionRecord,
  type HorizonRecord,
  type StellarPlace,
} from './horizon-records.ts'
import { badRequest, missing, Problem } from './horizon-problem.ts'
import { submitTransaction } from './horizon-submit.ts'
import { BASE_FEE, PASSPHRASE, PROTOCOL } from './rules.ts'
import { readKey } from './strkey.ts'

const LIMIT_DEFAULT = 10
const LIMIT_MAX = 200

type Query = Record<string, string>
export interface HorizonRequest {
  method: string
  path: string
  /** Query of a GET as a JSON object, or form of a POST. */
  body: string
}

/**
 * Horizon's API of the local Stellar network: accounts, ledgers, transactions, operations, payments
 * and their submission. `base` is the URL below which its paths are. Undefined closes the
 * connection without a response.
 */
export async function horizonRest(
  chain: StellarChain,
  faults: Faults,
  base: string,
  { method, path, body }: HorizonRequest,
): Promise<{ status: number; body: string } | undefined> {
  try {
    if (method === 'POST') {
      if (path !== 'transactions') throw missing()
      const result = await submitTransaction(chain, faults, new URLSearchParams(body).get('tx'))
      return result && { status: 200, body: JSON.stringify(transactionRecord(base, result)) }
    }
    return {
      status: 200,
      body: JSON.stringify(read(chain, base, path, JSON.parse(body) as Query, pageOf)),
    }
  } catch (error) {
    if (error instanceof URIError) return { status: 404, body: JSON.stringify(missing().body) }
    if (!(error instanceof Problem)) throw error
    return { status: error.status, body: JSON.stringify(error.body) }
  }
}

/**
 * Streams events as Horizon does: the records of a collection after the cursor, then those of each
 * closed ledger. Null if there is no such collection.
 */
export function horizonEvents(
  chain: StellarChain,
  base: string,
  path: string,
  query: Query,
  push: (event: string) => void,
): { close: () => void } | null {
  const records = (): HorizonRecord[] | null => {
    try {
      const result = read(chain, base, path, query, (_path, all) => ({ all })) as {
        all?: HorizonRecord[]
      }
      return result.all ?? null
    } catch (error) {
      if (error instanceof Problem || error instanceof URIError) return null
      throw error
    }
  }
  const first = records()
  if (!first) return null
  const cursor = query['cursor'] ?? ''
  let last =
    cursor === 'now'
      ? BigInt(first.at(-1)?.paging_token ?? 0)
      : /^\d{1,19}$/.test(cursor)
        ? BigInt(cursor)
        : 0n
  const send = (): void => {
    for (const record of records() ?? []) {
      if (BigInt(record.paging_token) <= last) continue
      last = BigInt(record.paging_token)
      push(`id: ${record.paging_token}\ndata: ${JSON.stringify(record)}\n\n`)
    }
  }
  push('retry: 1000\nevent: open\ndata: "hello"\n\n')
  send()
  return { close: chain.ledgers.watch(send) }
}

type Pages = (path: string, records: HorizonRecord[], query: Query) => unknown

function read(
  chain: StellarChain,
  base: string,
  path: string,
  query: Query,
  pages: Pages,
): unknown {
  const { ledgers } = chain
  const [resource = '', id, under, key] = path.split('/').map(decodeURIComponent)
  const page = (records: HorizonRecord[]) =>
    pages(
      `${base}/${[resource, id, under].filter((each) => each !== undefined).join('/')}`,
      records,
      query,
    )
  const list: List = (kind, places, account) => {
    const isShown = ({ outcome }: StellarPlace) =>
      query['include_failed'] === 'true' || outcome.code === 'tx_success'
    if (kind === 'transactions') {
      const shown = places.filter(
        (place) => isShown(place) && (account === undefined || concerns(place, account)),
      )
      return page(shown.map((place) => transactionRecord(base, place)))
    }
    if (kind !== 'operations' && kind !== 'payments') throw missing()
    return page(
      places
        .filter(isShown)
        .flatMap((place) => operationRecords(base, place))
        .filter(
          ({ accounts, isPayment }) =>
            (kind === 'operations' || isPayment) &&
            (account === undefined || accounts.includes(account)),
        )
        .map(({ record }) => record),
    )
  }
  if (resource === '') return root(chain)
  if (resource === 'fee_stats') return feeStats(chain)
  if (id === undefined) {
    if (resource === 'ledgers')
      return page(ledgers.ledgers.map((ledger) => ledgerRecord(base, ledger)))
    return list(resource, [...ledgers.places.values()])
  }
  const request: ResourceRequest = { ledgers, base, id, under, key, list }
  switch (resource) {
    case 'accounts':
      return readAccount(request)
    case 'ledgers':
      return readLedger(request)
    case 'transactions':
      return readTransaction(request)
    case 'operations':
      return readOperation(request)
    default:
      throw missing()
  }
}

/** Returns a page of transactions, operations or payments. */
type List = (kind: string | undefined, places: StellarPlace[], account?: string) => unknown

/** A request of one resource by its ID. */
interface ResourceRequest {
  ledgers: StellarChain['ledgers']
  base: string
  id: string
  under: string | undefined
  key: string | undefined
  list: List
}

/**
 * Returns an account, one entry of its data, or one of its lists.
 * @throws an HTTP problem if it does not exist
 */
function readAccount({ ledgers, base, id, under, key, list }: ResourceRequest): unknown {
  const account = ledgers.accounts.get(id)
  if (readKey(id)?.account !== id)
    throw badRequest(
      'account_id',
      'Account ID must start with `G` and contain 56 alphanum characters',
    )
  if (!account) throw missing()
  if (under === undefined)
    return accountRecord(base, id, account, ledgers.ledger(account.changed)?.time ?? 0)
  if (under !== 'data') return list(under, [...ledgers.places.values()], id)
  const value = account.data[key ?? '']
  if (value === undefined) throw missing()
  return { value: Buffer.from(value, 'hex').toString('base64') }
}

/**
 * Returns a ledger, or one of its lists.
 * @throws an HTTP problem if it does not exist
 */
function readLedger({ ledgers, base, id, under, list }: ResourceRequest): unknown {
  const ledger = /^\d{1,10}$/.test(id) ? ledgers.ledger(Number(id)) : undefined
  if (!ledger) throw missing()
  return under === undefined
    ? ledgerRecord(base, ledger)
    : list(
        under,
        ledger.transactions.map((included, order) => ({ ...included, ledger, order })),
      )
}

/**
 * Returns a transaction, or one of its lists.
 * @throws an HTTP problem if it does not exist
 */
function readTransaction({ ledgers, base, id, under, list }: ResourceRequest): unknown {
  const place = ledgers.places.get(id.toLowerCase())
  if (!place) throw missing()
  return under === undefined ? transactionRecord(base, place) : list(under, [place])
}

/**
 * Returns an operation.
 * @throws an HTTP problem if it does not exist
 */
function readOperation({ ledgers, base, id, under }: ResourceRequest): unknown {
  const result = [...ledgers.places.values()]
    .flatMap((place) => operationRecords(base, place))
    .find(({ record }) => record['id'] === id)
  if (!result || under !== undefined) throw missing()
  return result.record
}

function concerns(place: StellarPlace, account: string): boolean {
  return (
    place.tx.account === account ||
    operationRecords('', place).some(({ accounts }) => accounts.includes(account))
  )
}

/** Returns one page of records, which are passed in chronological order. */
function pageOf(path: string, records: HorizonRecord[], query: Query): unknown {
  const limit = Number(query['limit'] ?? LIMIT_DEFAULT)
  if (!Number.isInteger(limit) || limit < 1 || limit > LIMIT_MAX)
    throw badRequest('limit', `limit must be from 1 to ${LIMIT_MAX}`)
  const order = query['order'] ?? 'asc'
  if (order !== 'asc' && order !== 'desc') throw badRequest('order', 'order must be asc or desc')
  const cursor = query['cursor'] ?? ''
  if (!/^(now|\d{0,19})$/.test(cursor))
    throw badRequest('cursor', 'cursor must contain a place in history, or now')
  const after =
    cursor === ''
      ? null
      : cursor === 'now'
        ? BigInt(records.at(-1)?.paging_token ?? 0)
        : BigInt(cursor)
  const sorted = order === 'asc' ? records : records.toReversed()
  const shown = sorted
    .filter(
      ({ paging_token: token }) =>
        after === null || (order === 'asc' ? BigInt(token) > after : BigInt(token) < after),
    )
    .slice(0, limit)
  const at = (place: string, direction: string) => ({
    href: `${path}?${new URLSearchParams({ cursor: place, limit: String(limit), order: direction }).toString()}`,
  })
  return {
    _links: {
      self: at(cursor, order),
      next: at(shown.at(-1)?.paging_token ?? cursor, order),
      prev: at(shown[0]?.paging_token ?? cursor, order === 'asc' ? 'desc' : 'asc'),
    },
    _embedded: { records: shown },
  }
}

function root({ ledgers: { head } }: StellarChain): unknown {
  return {
    horizon_version: 'local',
    core_version: 'local',
    ingest_latest_ledger: head.index,
    history_latest_ledger: head.index,
    history_latest_ledger_closed_at: new Date(head.time * 1000).toISOString(),
    history_elder_ledger: 1,
    core_latest_ledger: head.index,
    network_passphrase: PASSPHRASE,
    current_protocol_version: PROTOCOL,
    supported_protocol_version: PROTOCOL,
    core_supported_protocol_version: PROTOCOL,
  }
}

function feeStats({ ledgers: { head } }: StellarChain): unknown {
  const fee = BASE_FEE.toString()
  const rates = {
    max: fee,
    min: fee,
    mode: fee,
    ...Object.fromEntries(
      [10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99].map((percent) => [`p${percent}`, fee]),
    ),
  }
  return {
    last_ledger: String(head.index),
    last_ledger_base_fee: fee,
    ledger_capacity_usage: '0',
    fee_charged: rates,
    max_fee: rates,
  }
}
