import type { Faults } from '../faults.ts'
import type { Received, SocketSession } from '../http-server.ts'
import type { XrpChain } from './chain.ts'
import {
  decodeAccount,
  issuedOf,
  NotATransaction,
  readTransaction,
  type Fields,
  type XrpTransaction,
} from './codec.ts'
import {
  BASE_FEE,
  MESSAGES,
  NETWORK_ID,
  RESERVE_BASE,
  RESERVE_INCREMENT,
  signatureFault,
  TOTAL,
  type Outcome,
  type XrpLedger,
} from './rules.ts'

/** Seconds from the Unix epoch to the ledger's epoch. */
const RIPPLE_EPOCH = 946_684_800
const DROPS = 1_000_000
const ERRORS: Record<string, [number, string]> = {
  actMalformed: [35, 'Account malformed.'],
  actNotFound: [19, 'Account not found.'],
  invalidParams: [31, 'Invalid parameters.'],
  invalidTransaction: [0, 'invalidTransaction'],
  lgrNotFound: [21, 'ledgerNotFound'],
  txnNotFound: [29, 'Transaction not found.'],
  unknownCmd: [32, 'Unknown method.'],
}

type Request = Record<string, unknown>
type Answer = Record<string, unknown>

class Failure extends Error {
  readonly error: string
  readonly more: Answer
  constructor(error: string, more: Answer = {}) {
    super(error)
    this.error = error
    this.more = more
  }
}

/**
 * rippled's JSON-RPC, whose errors are inside of the result. Undefined closes the connection
 * without a response.
 */
export function xrpRpc(
  chain: XrpChain,
  faults: Faults,
  body: string,
): { status: number; body: string } | undefined {
  let method: unknown
  let parameters: Request
  try {
    const parsed = JSON.parse(body) as { method?: unknown; params?: unknown }
    method = parsed.method
    parameters = (Array.isArray(parsed.params) ? (parsed.params[0] ?? {}) : {}) as Request
    if (typeof method !== 'string' || typeof parameters !== 'object' || parameters === null)
      throw new Error('no method')
  } catch {
    return { status: 400, body: 'Unable to parse request' }
  }
  const { answer, error } = run(chain, faults, method as string, parameters)
  if (faults.mode === 'drop-answer' && method === 'submit') return undefined
  const result = error
    ? { ...error, request: { ...parameters, command: method }, status: 'error' }
    : { ...answer, status: 'success' }
  return { status: 200, body: JSON.stringify({ result }) }
}

/** Serves the same commands over a WebSocket. */
export function xrpSocket(chain: XrpChain, faults: Faults): SocketSession {
  return { receive: (text) => answerMessage(chain, faults, text), close: () => undefined }
}

function answerMessage(chain: XrpChain, faults: Faults, text: string): Received {
  let request: Request
  try {
    request = JSON.parse(text) as Request
  } catch {
    return { text: JSON.stringify({ type: 'error', error: 'jsonInvalid' }) }
  }
  const { id, command, ...parameters } = request
  const { answer, error } = run(chain, faults, String(command), parameters)
  if (faults.mode === 'drop-answer' && command === 'submit') return { cut: true }
  return {
    text: JSON.stringify(
      error
        ? { id, status: 'error', type: 'response', ...error, request }
        : { id, status: 'success', type: 'response', result: answer },
    ),
  }
}

function run(
  chain: XrpChain,
  faults: Faults,
  method: string,
  request: Request,
): { answer?: Answer; error?: Answer } {
  try {
    const command = COMMANDS[method]
    if (!command) throw new Failure('unknownCmd')
    return { answer: command(chain, request, faults) }
  } catch (error) {
    if (!(error instanceof Failure)) {
      console.error(`devnet: XRP ${method}: ${(error as Error).stack ?? String(error)}`)
      return { error: { error: 'internal', error_code: 73, error_message: 'Internal error.' } }
    }
    const [code, message] = ERRORS[error.error] ?? [0, error.error]
    return {
      error: { error: error.error, error_code: code, error_message: message, ...error.more },
    }
  }
}

const COMMANDS: Record<string, (chain: XrpChain, request: Request, faults: Faults) => Answer> = {
  ping: () => ({}),
  subscribe: () => ({}),
  unsubscribe: () => ({}),
  server_info: serverInfo,
  server_state: serverInfo,
  fee,
  account_info: accountInfo,
  account_objects: (chain, request) => ({
    account: knownAccount(chain, request).address,
    account_objects: [],
    validated: true,
    ledger_index: chain.head.height,
  }),
  account_tx: accountTx,
  ledger,
  ledger_closed: (chain) => ({ ledger_hash: chain.head.hash, ledger_index: chain.head.height }),
  ledger_current: (chain) => ({ ledger_current_index: chain.head.height + 1 }),
  tx,
  submit,
}

function serverInfo({ ledgers, head }: XrpChain): Answer {
  const xrp = (drops: bigint) => Number(drops) / DROPS
  return {
    info: {
      build_version: '2.4.0',
      complete_ledgers: `1-${head.height}`,
      hostid: 'LOCAL',
      initial_sync_duration_us: '1',
      io_latency_ms: 1,
      load_factor: 1,
      network_id: NETWORK_ID,
      peers: 0,
      server_state: 'full',
      time: new Date(ledgers.head.time * 1000).toISOString(),
      uptime: 1,
      validation_quorum: 1,
      validated_ledger: {
        age: Math.max(0, ledgers.seconds - ledgers.head.time),
        base_fee_xrp: xrp(BASE_FEE),
        hash: head.hash,
        reserve_base_xrp: xrp(RESERVE_BASE),
        reserve_inc_xrp: xrp(RESERVE_INCREMENT),
        seq: head.height,
      },
    },
  }
}

function fee({ ledgers, head }: XrpChain): Answer {
  const base = BASE_FEE.toString()
  return {
    current_ledger_size: String(ledgers.waiting.length),
    current_queue_size: '0',
    expected_ledger_size: '1000',
    max_queue_size: '20000',
    ledger_current_index: head.height + 1,
    drops: { base_fee: base, median_fee: '5000', minimum_fee: base, open_ledger_fee: base },
    levels: {
      median_level: '128000',
      minimum_level: '256',
      open_ledger_level: '256',
      reference_level: '256',
    },
  }
}

function knownAccount(chain: XrpChain, request: Request) {
  const address = request['account']
  if (typeof address !== 'string' || !decodeAccount(address)) throw new Failure('actMalformed')
  const open = request['ledger_index'] === 'current' || request['ledger_index'] === undefined
  const account = open ? chain.ledgers.open.get(address) : chain.ledgers.accounts.get(address)
  if (!account)
    throw new Failure('actNotFound', {
      account: address,
      ledger_index: chain.head.height,
      validated: !open,
    })
  return { address, account, open }
}

function accountInfo(chain: XrpChain, request: Request): Answer {
  const { address, account, open } = knownAccount(chain, request)
  return {
    account_data: {
      Account: address,
      Balance: account.balance.toString(),
      Flags: account.flags,
      LedgerEntryType: 'AccountRoot',
      OwnerCount: account.owned,
      Sequence: account.sequence,
    },
    account_flags: {
      requireDestinationTag: (account.flags & 0x0002_0000) !== 0,
      depositAuth: (account.flags & 0x0100_0000) !== 0,
    },
    ...(open
      ? { ledger_current_index: chain.head.height + 1, validated: false }
      : { ledger_index: chain.head.height, ledger_hash: chain.head.hash, validated: true }),
  }
}

function wanted(chain: XrpChain, request: Request): XrpLedger {
  const { ledgers } = chain
  const named =
    request['ledger_hash'] !== undefined
      ? ledgers.ledgers.find(({ hash }) => hash === request['ledger_hash'])
      : undefined
  const index = request['ledger_index']
  const result =
    request['ledger_hash'] !== undefined
      ? named
      : typeof index === 'number' || /^\d+$/.test(String(index))
        ? ledgers.ledger(Number(index))
        : ledgers.head
  if (!result) throw new Failure('lgrNotFound')
  return result
}

const iso = (time: number) => new Date(time * 1000).toISOString().replace('.000Z', 'Z')
const isModern = (request: Request) => Number(request['api_version'] ?? 1) >= 2

function ledger(chain: XrpChain, request: Request): Answer {
  const { index, time, hash, parent, transactions } = wanted(chain, request)
  const shown =
    request['expand'] === true
      ? transactions.map(({ tx: each, outcome }, order) =>
          expanded(each, outcome, order, isModern(request), { index, time, hash }),
        )
      : transactions.map(({ tx: each }) => each.hash)
  return {
    ledger_hash: hash,
    ledger_index: index,
    validated: true,
    ledger: {
      account_hash: '0'.repeat(64),
      close_flags: 0,
      close_time: time - RIPPLE_EPOCH,
      close_time_human: iso(time),
      close_time_iso: iso(time),
      close_time_resolution: 10,
      closed: true,
      ledger_hash: hash,
      ledger_index: isModern(request) ? index : String(index),
      parent_close_time: (chain.ledgers.ledger(index - 1)?.time ?? time) - RIPPLE_EPOCH,
      parent_hash: parent,
      total_coins: TOTAL.toString(),
      transaction_hash: '0'.repeat(64),
      ...(request['transactions'] === true ? { transactions: shown } : {}),
    },
  }
}

/** Formats fields as a server does. */
function printed(fields: Fields): Answer {
  const most = issuedOf(fields['SendMax'])
  if (!most) return { ...fields }
  return { ...fields, SendMax: { ...most, value: String(Number(most.value)) } }
}

function metaOf(outcome: Outcome, order: number): Answer {
  return {
    AffectedNodes: [],
    TransactionIndex: order,
    TransactionResult: outcome.result,
    ...(outcome.delivered === undefined ? {} : { delivered_amount: outcome.delivered.toString() }),
  }
}

function expanded(
  each: XrpTransaction,
  outcome: Outcome,
  order: number,
  modern: boolean,
  at: { index: number; time: number; hash: string },
): Answer {
  const meta = metaOf(outcome, order)
  if (!modern) return { ...printed(each.fields), hash: each.hash, metaData: meta }
  return {
    tx_json: printed(each.fields),
    meta,
    hash: each.hash,
    validated: true,
    ledger_hash: at.hash,
    ledger_index: at.index,
    close_time_iso: iso(at.time),
  }
}

function tx(chain: XrpChain, request: Request): Answer {
  const hash = String(request['transaction'] ?? '').toUpperCase()
  const { min_ledger: min, max_ledger: max } = request
  const place = chain.ledgers.places.get(hash)
  if (!place) {
    const waiting = chain.ledgers.waiting.find((each) => each.hash === hash)
    if (waiting) {
      return isModern(request)
        ? { tx_json: printed(waiting.fields), hash, validated: false }
        : { ...printed(waiting.fields), hash, validated: false }
    }
    throw new Failure(
      'txnNotFound',
      typeof min === 'number' && typeof max === 'number'
        ? { searched_all: min >= 1 && max <= chain.head.height }
        : {},
    )
  }
  const { ledger: at, outcome, order } = place
  const common = {
    hash,
    ledger_index: at.index,
    ledger_hash: at.hash,
    close_time_iso: iso(at.time),
    meta: metaOf(outcome, order),
    validated: true,
  }
  return isModern(request)
    ? {
        ...common,
        tx_json: {
          ...printed(place.tx.fields),
          date: at.time - RIPPLE_EPOCH,
          ledger_index: at.index,
        },
      }
    : { ...printed(place.tx.fields), ...common, date: at.time - RIPPLE_EPOCH, inLedger: at.index }
}

function accountTx(chain: XrpChain, request: Request): Answer {
  const { address } = knownAccount(chain, { ...request, ledger_index: 'validated' })
  const limit = Math.min(200, Number(request['limit'] ?? 200))
  const whole = (name: string) =>
    typeof request[name] === 'number' && request[name] >= 0 ? request[name] : null
  const [least, most] = [
    whole('ledger_index_min') ?? 1,
    Math.min(whole('ledger_index_max') ?? chain.head.height, chain.head.height),
  ]
  const matches = [...chain.ledgers.places.values()]
    .filter(
      ({ tx: each, ledger: { index } }) =>
        index >= least &&
        index <= most &&
        (each.fields['Account'] === address || each.fields['Destination'] === address),
    )
    .reverse()
    .slice(0, limit)
  const modern = isModern(request)
  return {
    account: address,
    ledger_index_min: least,
    ledger_index_max: most,
    limit,
    validated: true,
    transactions: matches.map(({ tx: each, outcome, order, ledger: at }) =>
      request['binary'] === true && !modern
        ? { tx_blob: each.raw.toUpperCase(), meta: '', ledger_index: at.index, validated: true }
        : modern
          ? expanded(each, outcome, order, true, at)
          : {
              meta: metaOf(outcome, order),
              tx: {
                ...printed(each.fields),
                hash: each.hash,
                ledger_index: at.index,
                date: at.time - RIPPLE_EPOCH,
              },
              validated: true,
            },
    ),
  }
}

/** Minimum fee in drops of a full queue. */
const POOL_FEE = 3n * BASE_FEE

/** Returns the result by which a server refuses a transaction in its current mode; null: it does not. */
function refusalOf({ mode }: Faults, { fields }: XrpTransaction): string | null {
  if (mode === 'reject') return 'telCAN_NOT_QUEUE_FULL'
  return mode === 'price' && BigInt(String(fields['Fee'])) < POOL_FEE ? 'telINSUF_FEE_P' : null
}

function submit(chain: XrpChain, request: Request, faults: Faults): Answer {
  const blob = request['tx_blob']
  if (typeof blob !== 'string') throw new Failure('invalidParams')
  let transaction: XrpTransaction
  try {
    transaction = readTransaction(blob)
  } catch (error) {
    if (!(error instanceof NotATransaction)) throw error
    throw new Failure('invalidTransaction', { error_exception: error.message })
  }
  const fault = signatureFault(transaction)
  if (fault)
    throw new Failure('invalidTransaction', { error_exception: `fails local checks: ${fault}` })
  const { ledgers } = chain
  const isKnown =
    ledgers.places.has(transaction.hash) ||
    ledgers.waiting.some(({ hash }) => hash === transaction.hash)
  const refused = refusalOf(faults, transaction) ?? (isKnown ? 'tefALREADY' : null)
  const result = refused ?? ledgers.submit(transaction).outcome.result
  const stored = ledgers.waiting.some(({ hash }) => hash === transaction.hash)
  return {
    accepted: stored,
    applied: stored && result !== 'terPRE_SEQ',
    broadcast: stored,
    kept: stored,
    queued: false,
    account_sequence_available:
      ledgers.open.get(String(transaction.fields['Account']))?.sequence ?? 0,
    account_sequence_next: ledgers.open.get(String(transaction.fields['Account']))?.sequence ?? 0,
    engine_result: result,
    engine_result_code: 0,
    engine_result_message: MESSAGES[result] ?? result,
    open_ledger_cost: BASE_FEE.toString(),
    tx_blob: blob,
    tx_json: { ...printed(transaction.fields), hash: transaction.hash },
    validated_ledger_index: chain.head.height,
  }
}
