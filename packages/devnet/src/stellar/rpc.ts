import { RpcError } from '../errors.ts'
import type { Faults } from '../faults.ts'
import type { Place } from '../ledger-chain.ts'
import type { StellarChain } from './chain.ts'
import { resultMeta } from './contract.ts'
import {
  BASE_FEE,
  header,
  NETWORK_ID,
  NotATransaction,
  PASSPHRASE,
  PROTOCOL,
  readTransaction,
  resultXdr,
  type Account,
  type Outcome,
  type StellarLedger,
  type StellarTransaction,
} from './rules.ts'
import { toid } from './toid.ts'
import { decode, encode } from './xdr.ts'

const INVALID_REQUEST = -32600
const METHOD_NOT_FOUND = -32601
const INVALID_PARAMS = -32602
const LIMIT_DEFAULT = 50
const LIMIT_MAX = 200

type Parameters = Record<string, unknown>
/** Minimum fee in stroops of a full queue, and its refusal of a lower one. */
const POOL_FEE = 3n * BASE_FEE
const TOO_CHEAP = { code: 'tx_insufficient_fee', fee: 0n, operations: null }

type Answer = Record<string, unknown>

/** JSON-RPC 2.0 with named parameters. Undefined closes the connection without a response. */
export function stellarRpc(
  chain: StellarChain,
  faults: Faults,
  body: string,
): { status: number; body: string } | undefined {
  let id: unknown = null
  let method = ''
  try {
    const request = JSON.parse(body) as { id?: unknown; method?: unknown; params?: unknown }
    id = request.id ?? null
    method = String(request.method)
    const parameters = (
      typeof request.params === 'object' &&
      request.params !== null &&
      !Array.isArray(request.params)
        ? request.params
        : {}
    ) as Parameters
    const run = METHODS[method]
    if (!run) throw new RpcError(METHOD_NOT_FOUND, 'method not found')
    const result = run(chain, parameters, faults)
    if (faults.mode === 'drop-answer' && method === 'sendTransaction') return undefined
    return { status: 200, body: JSON.stringify({ jsonrpc: '2.0', id, result }) }
  } catch (error) {
    if (!(error instanceof RpcError) && !(error instanceof SyntaxError)) {
      console.error(`devnet: XLM ${method}: ${(error as Error).stack ?? String(error)}`)
    }
    const code =
      error instanceof RpcError ? error.code : error instanceof SyntaxError ? -32700 : -32603
    return {
      status: 200,
      body: JSON.stringify({
        jsonrpc: '2.0',
        id,
        error: { code, message: (error as Error).message },
      }),
    }
  }
}

const METHODS: Record<
  string,
  (chain: StellarChain, parameters: Parameters, faults: Faults) => Answer
> = {
  getHealth: ({ ledgers }) => ({
    status: 'healthy',
    latestLedger: ledgers.head.index,
    oldestLedger: 1,
    ledgerRetentionWindow: ledgers.head.index,
  }),
  getNetwork: () => ({ passphrase: PASSPHRASE, protocolVersion: PROTOCOL }),
  getVersionInfo: () => ({
    version: '23.0.0',
    commitHash: '',
    buildTimestamp: '',
    captiveCoreVersion: 'local',
    protocolVersion: PROTOCOL,
  }),
  getLatestLedger: ({ ledgers }) => ({
    id: ledgers.head.hash,
    protocolVersion: PROTOCOL,
    sequence: ledgers.head.index,
    closeTime: String(ledgers.head.time),
    headerXdr: headerXdr(ledgers.head),
    metadataXdr: metadataXdr(ledgers.head),
  }),
  getFeeStats: ({ ledgers }) => {
    const fee = BASE_FEE.toString()
    const distribution = {
      max: fee,
      min: fee,
      mode: fee,
      ...Object.fromEntries(
        [10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99].map((percent) => [`p${percent}`, fee]),
      ),
      transactionCount: '1',
      ledgerCount: 50,
    }
    return {
      sorobanInclusionFee: distribution,
      inclusionFee: distribution,
      latestLedger: ledgers.head.index,
    }
  },
  getLedgerEntries,
  getLedgers,
  getTransaction,
  getTransactions,
  sendTransaction,
}

export function headerXdr(ledger: StellarLedger): string {
  return encode('LedgerHeaderHistoryEntry', {
    hash: ledger.hash,
    header: header(ledger),
    ext: 'v0',
  })
}

function metadataXdr(ledger: StellarLedger): string {
  return encode('LedgerCloseMeta', {
    v0: {
      ledger_header: { hash: ledger.hash, header: header(ledger), ext: 'v0' },
      tx_set: {
        previous_ledger_hash: ledger.parent,
        txs: ledger.transactions.map(({ tx }) => decode('TransactionEnvelope', tx.raw)),
      },
      tx_processing: [],
      upgrades_processing: [],
      scp_info: [],
    },
  })
}

/** Returns the meta of a result, and the events of its operations. */
export const metaOf = ({
  tx,
  outcome,
}: Pick<Place<StellarTransaction, Outcome>, 'tx' | 'outcome'>) =>
  resultMeta(
    NETWORK_ID,
    outcome.code === 'tx_success' ? tx.body.operations.map(({ body }) => body) : null,
  )

type LedgerKey = {
  account?: { account_id: string }
  data?: { account_id: string; data_name: string }
}

function getLedgerEntries({ ledgers }: StellarChain, { keys }: Parameters): Answer {
  if (!Array.isArray(keys) || keys.length > LIMIT_MAX)
    throw new RpcError(INVALID_PARAMS, 'keys: a list of ledger keys')
  const entries = keys.flatMap((key: unknown) => {
    const ledgerKey = keyOf(key)
    const account = ledgers.accounts.get(
      ledgerKey.account?.account_id ?? ledgerKey.data?.account_id ?? '',
    )
    const entry = account && entryOf(ledgerKey, account)
    return entry
      ? [
          {
            key,
            xdr: encode('LedgerEntryData', entry),
            lastModifiedLedgerSeq: account.changed,
            extXdr: 'AAAAAA==',
          },
        ]
      : []
  })
  return { entries, latestLedger: ledgers.head.index }
}

function keyOf(key: unknown): LedgerKey {
  try {
    return decode<LedgerKey>('LedgerKey', String(key))
  } catch {
    throw new RpcError(INVALID_PARAMS, 'cannot unmarshal key value')
  }
}

function entryOf({ account: plain, data }: LedgerKey, account: Account): unknown {
  if (plain) {
    return {
      account: {
        account_id: plain.account_id,
        balance: account.balance.toString(),
        seq_num: account.sequence.toString(),
        num_sub_entries: Object.keys(account.data).length,
        inflation_dest: null,
        flags: 0,
        home_domain: '',
        thresholds: '01000000',
        signers: [],
        ext: 'v0',
      },
    }
  }
  const value = data && account.data[data.data_name]
  return value === undefined
    ? undefined
    : {
        data: {
          account_id: data!.account_id,
          data_name: data!.data_name,
          data_value: value,
          ext: 'v0',
        },
      }
}

function range({ ledgers }: StellarChain): Answer {
  const { head } = ledgers
  const first = ledgers.ledger(1)!
  return {
    latestLedger: head.index,
    latestLedgerCloseTime: String(head.time),
    oldestLedger: 1,
    oldestLedgerCloseTime: String(first.time),
  }
}

function startOf(chain: StellarChain, start: unknown): number {
  const { head } = chain.ledgers
  if (typeof start !== 'number' || !Number.isInteger(start))
    throw new RpcError(INVALID_PARAMS, 'startLedger must be positive')
  if (start < 1 || start > head.index) {
    throw new RpcError(
      INVALID_REQUEST,
      `start ledger (${start}) must be between the oldest ledger: 1 and the latest ledger: ${head.index} for this rpc instance`,
    )
  }
  return start
}

function paging(parameters: Parameters): { cursor: string | undefined; limit: number } {
  const { cursor, limit } = (parameters['pagination'] ?? {}) as {
    cursor?: unknown
    limit?: unknown
  }
  if (cursor !== undefined && parameters['startLedger'] !== undefined) {
    throw new RpcError(INVALID_REQUEST, 'startLedger and cursor cannot both be set')
  }
  if (limit !== undefined && (typeof limit !== 'number' || limit < 1 || limit > LIMIT_MAX)) {
    throw new RpcError(INVALID_REQUEST, `limit must not exceed ${LIMIT_MAX}`)
  }
  if (cursor !== undefined && !/^\d{1,20}$/.test(String(cursor)))
    throw new RpcError(INVALID_REQUEST, 'cursor is not a number')
  return {
    cursor: cursor === undefined ? undefined : String(cursor),
    limit: limit ?? LIMIT_DEFAULT,
  }
}

function getLedgers(chain: StellarChain, parameters: Parameters): Answer {
  const { cursor, limit } = paging(parameters)
  const start =
    cursor === undefined ? startOf(chain, parameters['startLedger']) : Number(cursor) + 1
  const entry = chain.ledgers.ledgers.slice(start - 1, start - 1 + limit)
  return {
    ledgers: entry.map((ledger) => ({
      hash: ledger.hash,
      sequence: ledger.index,
      ledgerCloseTime: String(ledger.time),
      headerXdr: headerXdr(ledger),
      metadataXdr: metadataXdr(ledger),
    })),
    ...range(chain),
    cursor: String(entry.at(-1)?.index ?? start - 1),
  }
}

function shown({ tx, outcome, ledger, order }: Place<StellarTransaction, Outcome>): Answer {
  const { meta, events } = metaOf({ tx, outcome })
  return {
    status: outcome.code === 'tx_success' ? 'SUCCESS' : 'FAILED',
    txHash: tx.hash,
    applicationOrder: order + 1,
    feeBump: false,
    envelopeXdr: tx.raw,
    resultXdr: resultXdr(outcome),
    resultMetaXdr: meta,
    ledger: ledger.index,
    createdAt: ledger.time,
    events: { transactionEventsXdr: [], contractEventsXdr: events },
    diagnosticEventsXdr: [],
  }
}

function getTransactions(chain: StellarChain, parameters: Parameters): Answer {
  const { cursor, limit } = paging(parameters)
  const after = cursor === undefined ? 0n : BigInt(cursor)
  const start =
    cursor === undefined ? startOf(chain, parameters['startLedger']) : Number(after >> 32n)
  const { ledgers } = chain.ledgers
  const transactions: Answer[] = []
  let last = after
  for (let at = start; at <= ledgers.length && transactions.length < limit; at += 1) {
    const ledger = ledgers[at - 1]!
    for (const [order, included] of ledger.transactions.entries()) {
      if (toid(at, order) <= after || transactions.length === limit) continue
      last = toid(at, order)
      transactions.push({ ...shown({ ...included, ledger, order }), createdAt: ledger.time })
    }
  }
  if (transactions.length < limit) last = toid(ledgers.length, ledgers.at(-1)!.transactions.length)
  return {
    transactions,
    latestLedger: ledgers.length,
    latestLedgerCloseTimestamp: ledgers.at(-1)!.time,
    oldestLedger: 1,
    oldestLedgerCloseTimestamp: ledgers[0]!.time,
    cursor: last.toString(),
  }
}

function getTransaction(chain: StellarChain, { hash }: Parameters): Answer {
  if (typeof hash !== 'string' || !/^[0-9a-fA-F]{64}$/.test(hash)) {
    throw new RpcError(INVALID_PARAMS, 'unexpected hash length (must be 64 hexadecimal characters)')
  }
  const place = chain.ledgers.places.get(hash.toLowerCase())
  if (!place) return { status: 'NOT_FOUND', txHash: hash, ...range(chain) }
  const { createdAt, ...rest } = shown(place)
  return { ...rest, createdAt: String(createdAt), ...range(chain) }
}

function sendTransaction(chain: StellarChain, { transaction }: Parameters, faults: Faults): Answer {
  let tx: StellarTransaction
  try {
    tx = readTransaction(String(transaction))
  } catch (error) {
    if (!(error instanceof NotATransaction)) throw error
    throw new RpcError(INVALID_PARAMS, 'invalid_xdr')
  }
  const { ledgers } = chain
  const answer = (status: string, more: Answer = {}) => ({
    status,
    hash: tx.hash,
    latestLedger: ledgers.head.index,
    latestLedgerCloseTime: String(ledgers.head.time),
    ...more,
  })
  if (faults.mode === 'reject') return answer('TRY_AGAIN_LATER')
  if (ledgers.waiting.some(({ hash }) => hash === tx.hash)) return answer('DUPLICATE')
  // As in core's queue, an account can have one waiting transaction.
  if (ledgers.waiting.some(({ account }) => account === tx.account))
    return answer('TRY_AGAIN_LATER')
  if (faults.mode === 'price' && BigInt(tx.body.fee) < POOL_FEE)
    return answer('ERROR', { errorResultXdr: resultXdr(TOO_CHEAP) })
  const { verdict, outcome } = ledgers.submit(tx)
  return verdict === 'in'
    ? answer('PENDING')
    : answer('ERROR', { errorResultXdr: resultXdr(outcome) })
}
