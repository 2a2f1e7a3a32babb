import type { xdr } from '@stellar/stellar-base'
import {
  jsonRpc,
  priceOf,
  rising,
  RpcRefused,
  RpcUnavailable,
  sendersOf,
  type AccountState,
  type BroadcastResult,
  type ChainBlock,
  type ChainTip,
  type EndpointHead,
  type ChainTransfer,
  type Fetch,
  type JsonRpc,
  type LevelRates,
  type RpcEndpoint,
  type TaggedClient,
  type TransactionStatus,
} from '../rpc.ts'
import { ignoreUnreadable, type ReportUnreadable } from '../unreadable.ts'
import { checkedClient } from '../checked-client.ts'
import { reasonOf } from '../reason.ts'
import { ChainError, type Network } from '../types.ts'
import { splitMuxed } from './address.ts'
import { contractPayments, type ContractPayment, type EventsInfo } from './contract-payments.ts'
import { SECONDS_TO_LIVE } from './build.ts'
import { tagOf } from './memo-xdr.ts'
import { addressOf } from './muxed.ts'
import { library } from './library.ts'
import {
  accountFieldsOf,
  baseReserveOf,
  feeChargedOf,
  previousHashOf,
  resultsHashOf,
} from './positions.ts'

const PAGE = 200
/**
 * Hashes of empty results: SHA-256 of an empty XDR list; of empty input, which local chains use;
 * and the first ledger's.
 */
const NO_RESULTS = new Set([
  'df3f619804a92fdb4057192dc43dd748ea778adc52bc498ce80524c014b81119',
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '0'.repeat(64),
])
const BASE_FEE = 100n
/** Base reserve in stroops that is used until a ledger has been read: the value since 2018. */
const BASE_RESERVE = 5_000_000n
const RESERVE_FRESH_MS = 60_000
/** Number of ledger entries whose reserve every account must keep. */
const ACCOUNT_ENTRIES = 2n
/** SEP-29: data entry by which an account requires a memo. */
const MEMO_REQUIRED = 'config.memo_required'

interface Latest {
  id: string
  sequence: number
}
interface LedgerInfo {
  hash: string
  sequence: number
  ledgerCloseTime: string
  headerXdr: string
}
interface TransactionInfo extends EventsInfo {
  status: 'SUCCESS' | 'FAILED'
  txHash: string
  ledger: number
  envelopeXdr: string
  resultXdr: string
}
interface Found {
  status: 'SUCCESS' | 'FAILED' | 'NOT_FOUND'
  ledger?: number
  resultXdr?: string
  latestLedgerCloseTime: string | number
  oldestLedgerCloseTime: string | number
}
interface Distribution {
  p50: string
  p80: string
  p95: string
}

/** Client of Stellar RPC. A closed ledger is final. */
export class StellarClient implements TaggedClient {
  readonly network: Network
  readonly #call: JsonRpc
  readonly #now: () => number
  readonly #report: ReportUnreadable
  #baseReserve: { value: bigint; at: number } | null = null

  /** @param report is called with each transaction and field that cannot be read */
  constructor(
    network: Network,
    endpoint: RpcEndpoint,
    fetch: Fetch,
    now: () => number = Date.now,
    report: ReportUnreadable = ignoreUnreadable,
  ) {
    this.network = network
    this.#call = jsonRpc(endpoint, fetch)
    this.#now = now
    this.#report = report
    return checkedClient(this, network.code)
  }

  async probe(): Promise<void> {
    const { passphrase } = await this.#call<{ passphrase: string }>('getNetwork', {})
    if (passphrase !== this.network.passphrase) {
      throw new ChainError(
        'WRONG_NETWORK',
        `${this.network.code}: the endpoint serves the network "${passphrase}", not "${this.network.passphrase ?? ''}"`,
      )
    }
  }

  async tip(): Promise<ChainTip> {
    const { id, sequence } = await this.#call<Latest>('getLatestLedger', {})
    return { height: sequence, hash: id, finalHeight: sequence }
  }

  async head(): Promise<EndpointHead> {
    const { height } = await this.tip()
    const closed = (await this.#ledger(height))?.ledgerCloseTime
    const isTime = typeof closed === 'string' && /^\d{1,12}$/.test(closed)
    return { height, timeMs: isTime ? Number(closed) * 1000 : null, lacks: null }
  }

  async #ledger(height: number): Promise<LedgerInfo | null> {
    try {
      const { ledgers } = await this.#call<{ ledgers: LedgerInfo[] }>('getLedgers', {
        startLedger: height,
        pagination: { limit: 1 },
      })
      const [ledger] = ledgers
      return ledger && Number(ledger.sequence) === height ? ledger : null
    } catch (error) {
      // Above the head the ledger does not exist yet; below the endpoint's history it never becomes
      // available again.
      if (error instanceof RpcRefused && height > (await this.tip()).height) return null
      if (error instanceof RpcRefused) {
        throw new RpcUnavailable(
          `${this.network.code}: the endpoint does not retain ledger ${height} (${error.message}); use one with a longer history to catch up`,
        )
      }
      throw error
    }
  }

  async block(height: number): Promise<ChainBlock | null> {
    const ledger = await this.#ledger(height)
    if (!ledger) return null
    const parent = this.#field('getLedgers', 'headerXdr', () => previousHashOf(ledger.headerXdr))
    const transactions = await this.#transactions(height)
    if (transactions.length === 0 && this.#hasResults(ledger)) {
      this.#refuse(`getTransactions returned ledger ${height} without its transactions`)
    }
    return {
      height,
      hash: ledger.hash,
      parent,
      txids: transactions.map(({ txHash }) => txHash),
      transfers: transactions.flatMap((each) => this.#transfers(each)),
    }
  }

  #refuse(problem: string): never {
    throw new RpcUnavailable(`${this.network.code}: ${problem}`)
  }

  /**
   * Reads a required field.
   * @throws RpcUnavailable if it cannot be read
   */
  #field<T>(method: string, field: string, read: () => T): T {
    try {
      return read()
    } catch (error) {
      return this.#refuse(`${method} returned a ${field} that cannot be read: ${reasonOf(error)}`)
    }
  }

  /**
   * Returns whether a ledger's header contains the hash of results. If the endpoint then returns no
   * transactions, some are missing. False if the header cannot be read.
   */
  #hasResults({ headerXdr }: LedgerInfo): boolean {
    try {
      return !NO_RESULTS.has(resultsHashOf(headerXdr))
    } catch {
      return false
    }
  }

  async #transactions(height: number): Promise<TransactionInfo[]> {
    const entry: TransactionInfo[] = []
    const seen = new Set<string>()
    let cursor: string | undefined
    for (;;) {
      const page = await this.#call<{
        transactions: TransactionInfo[]
        cursor?: string
        latestLedger?: number
      }>(
        'getTransactions',
        cursor === undefined
          ? { startLedger: height, pagination: { limit: PAGE } }
          : { pagination: { cursor, limit: PAGE } },
      )
      if (!Array.isArray(page.transactions))
        this.#refuse('getTransactions returned no transactions')
      for (const each of page.transactions) {
        if (!Number.isSafeInteger(each.ledger) || typeof each.txHash !== 'string') {
          this.#refuse('getTransactions returned a transaction without ledger or txHash')
        }
        if (each.ledger > height) return entry
        if (each.ledger !== height) continue
        if (each.status !== 'SUCCESS' && each.status !== 'FAILED')
          this.#refuse(`getTransactions returned ${each.txHash} without status`)
        const text = JSON.stringify(each)
        if (seen.has(text)) this.#refuse(`getTransactions returned ${each.txHash} twice`)
        seen.add(text)
        entry.push(each)
      }
      if (page.transactions.length < PAGE) {
        // A node that is behind the one that returned the ledger has none of its transactions.
        if (page.latestLedger !== undefined && page.latestLedger < height)
          this.#refuse(`getTransactions has not seen ledger ${height} yet`)
        return entry
      }
      if (!page.cursor || page.cursor === cursor)
        this.#refuse('getTransactions returned a full page and no cursor for the next one')
      cursor = page.cursor
    }
  }

  /**
   * Returns the native coin that the operations of a successful transaction moved to accounts, contract
   * calls included, with the transaction's memo or the muxed id. A transaction of a later protocol that cannot be
   * decoded is reported and left out, so that it does not stop the others.
   */
  #transfers(info: TransactionInfo): ChainTransfer[] {
    if (info.status !== 'SUCCESS') return []
    try {
      const transaction = open(
        library().xdr.TransactionEnvelope.fromXDR(info.envelopeXdr, 'base64'),
      )
      const outcomes = operationResults(
        library().xdr.TransactionResult.fromXDR(info.resultXdr, 'base64'),
      )
      return this.#payments(info, transaction, outcomes)
    } catch (error) {
      this.#report({
        network: this.network.code,
        kind: 'transaction',
        name: info.txHash,
        reason: reasonOf(error),
      })
      return []
    }
  }

  #payments(
    info: TransactionInfo,
    transaction: Opened,
    outcomes: readonly xdr.OperationResult[],
  ): ChainTransfer[] {
    const memo = tagOf(transaction.memo)
    const payers = [transaction.source, ...(transaction.feeSource ? [transaction.feeSource] : [])]
    const transfer = (
      position: number,
      { from, to, amount, id }: ContractPayment,
    ): ChainTransfer[] =>
      from === to || amount === 0n
        ? []
        : [
            {
              txid: info.txHash,
              position,
              asset: this.network.native_asset,
              address: to,
              amount,
              sender: from,
              senders: sendersOf([from, ...payers.map(accountOf)]),
              coinbase: false,
              tag: id ?? memo,
            },
          ]
    return transaction.operations.flatMap((operation, position): ChainTransfer[] => {
      // A contract call is the only operation of its transaction.
      if (operation.body().switch().name === 'invokeHostFunction')
        return contractPayments(this.network, info).flatMap((paid, at) => transfer(at, paid))
      const paid = delivered(operation.body(), outcomes[position])
      if (!paid) return []
      const { account, id } = splitMuxed(paid.to) ?? { account: paid.to, id: null }
      const from = accountOf(operation.sourceAccount() ?? transaction.source)
      return transfer(position, { from, to: account, amount: paid.amount, id })
    })
  }

  async status(hash: string): Promise<TransactionStatus> {
    const entry = await this.#call<Found>('getTransaction', { hash })
    const { ledger: height, resultXdr } = entry
    if (entry.status === 'NOT_FOUND' || height === undefined || resultXdr === undefined)
      return { state: 'absent' }
    const ledger = await this.#ledger(height)
    const fee = this.#field('getTransaction', 'resultXdr', () => feeChargedOf(resultXdr))
    return {
      state: 'included',
      height,
      blockHash: ledger?.hash ?? '',
      succeeded: entry.status === 'SUCCESS',
      fee,
    }
  }

  async broadcast(raw: string): Promise<BroadcastResult> {
    try {
      const answer = await this.#call<{ status: string; errorResultXdr?: string }>(
        'sendTransaction',
        {
          transaction: Buffer.from(raw, 'hex').toString('base64'),
        },
      )
      if (answer.status === 'PENDING' || answer.status === 'DUPLICATE') return { kind: 'accepted' }
      if (answer.status === 'ERROR') {
        return { kind: 'rejected', reason: refusalOf(answer.errorResultXdr) }
      }
      return { kind: 'unknown', reason: String(answer.status) }
    } catch (error) {
      if (error instanceof RpcRefused) return { kind: 'rejected', reason: error.message }
      return { kind: 'unknown', reason: reasonOf(error) }
    }
  }

  async account(address: string): Promise<AccountState | null> {
    const accountId = library().xdr.PublicKey.publicKeyTypeEd25519(
      library().StrKey.decodeEd25519PublicKey(splitMuxed(address)?.account ?? address),
    )
    const keys = [
      library().xdr.LedgerKey.account(new (library().xdr.LedgerKeyAccount)({ accountId })),
      library().xdr.LedgerKey.data(
        new (library().xdr.LedgerKeyData)({ accountId, dataName: MEMO_REQUIRED }),
      ),
    ].map((key) => key.toXDR('base64'))
    const { entries } = await this.#call<{ entries: { key: string; xdr: string }[] | null }>(
      'getLedgerEntries',
      { keys },
    )
    const entryAt = (at: number): string | undefined =>
      (entries ?? []).find(({ key }) => key === keys[at])?.xdr
    const entry = entryAt(0)
    if (entry === undefined) return null
    const { balance, sequence, subEntries, sponsored } = this.#field(
      'getLedgerEntries',
      'xdr',
      () => accountFieldsOf(entry),
    )
    if (sponsored === null) {
      const reason =
        'the extension of the account cannot be read; sponsored entries are not counted'
      this.#report({ network: this.network.code, kind: 'field', name: 'AccountEntry.ext', reason })
    }
    return {
      balance,
      sequence: sequence + 1n,
      reserve: (ACCOUNT_ENTRIES + subEntries - (sponsored ?? 0n)) * (await this.#reserve()),
      requiresTag: requiresMemo(entryAt(1)),
      closed: false,
    }
  }

  async balance(address: string): Promise<bigint> {
    return (await this.account(address))?.balance ?? 0n
  }

  async activation(): Promise<bigint> {
    return ACCOUNT_ENTRIES * (await this.#reserve())
  }

  async feeRates(): Promise<LevelRates> {
    const { inclusionFee } = await this.#call<{ inclusionFee?: Distribution }>('getFeeStats', {})
    const atLeast = (name: 'p50' | 'p80' | 'p95') => {
      const fee = priceOf(
        this.network.code,
        'getFeeStats',
        `inclusionFee.${name}`,
        inclusionFee?.[name],
      )
      return fee > BASE_FEE ? fee : BASE_FEE
    }
    return rising({ low: atLeast('p50'), medium: atLeast('p80'), high: atLeast('p95') })
  }

  /**
   * Returns the end of the validity (Unix seconds) of a transaction that is built now. It is
   * computed from the head's close time and never from this machine's clock.
   */
  async validUntil(): Promise<number> {
    const { height } = await this.tip()
    const ledger = await this.#ledger(height)
    if (!ledger)
      throw new RpcUnavailable(`${this.network.code}: the latest ledger is not available`)
    return Number(ledger.ledgerCloseTime) + SECONDS_TO_LIVE
  }

  async isDead(hash: string, validUntil: number): Promise<boolean> {
    const entry = await this.#call<Found>('getTransaction', { hash })
    // An endpoint whose history is shorter than the transaction's lifetime may have deleted it.
    return (
      entry.status === 'NOT_FOUND' &&
      Number(entry.latestLedgerCloseTime) > validUntil &&
      Number(entry.oldestLedgerCloseTime) <= validUntil - SECONDS_TO_LIVE - 60
    )
  }

  /**
   * Returns the base reserve of the newest ledger. If its header cannot be read, returns the last
   * known value, or else {@link BASE_RESERVE}: it has changed once since 2015, and the network
   * rejects a transfer that leaves too little on an account.
   */
  async #reserve(): Promise<bigint> {
    if (!this.#baseReserve || this.#now() - this.#baseReserve.at > RESERVE_FRESH_MS) {
      const ledger = await this.#ledger((await this.tip()).height)
      this.#baseReserve = {
        value: this.#readReserve(ledger) ?? this.#baseReserve?.value ?? BASE_RESERVE,
        at: this.#now(),
      }
    }
    return this.#baseReserve.value
  }

  #readReserve(ledger: LedgerInfo | null): bigint | null {
    if (!ledger) return null
    try {
      return baseReserveOf(ledger.headerXdr, Number(ledger.sequence))
    } catch (error) {
      this.#report({
        network: this.network.code,
        kind: 'field',
        name: 'LedgerHeader.baseReserve',
        reason: `${reasonOf(error)}; the last known base reserve is used`,
      })
      return null
    }
  }
}

/** Returns the name of the result code of a rejected transaction. */
function refusalOf(resultXdr: string | undefined): string {
  if (resultXdr === undefined) return 'ERROR'
  try {
    return library().xdr.TransactionResult.fromXDR(resultXdr, 'base64').result().switch().name
  } catch {
    return 'ERROR'
  }
}

/**
 * Returns whether an account requires a memo (SEP-29).
 * @param entry LedgerEntryData of {@link MEMO_REQUIRED}, in base64
 */
function requiresMemo(entry: string | undefined): boolean {
  if (entry === undefined) return false
  try {
    return (
      library().xdr.LedgerEntryData.fromXDR(entry, 'base64').data().dataValue().toString() === '1'
    )
  } catch {
    // The account has the entry: a payment without a memo could be lost.
    return true
  }
}

interface Opened {
  source: xdr.MuxedAccount
  /** Account that pays the fee instead of the source. */
  feeSource?: xdr.MuxedAccount
  memo: xdr.Memo
  operations: xdr.Operation[]
}

/** Returns the account behind an address that may be muxed. */
function accountOf(source: xdr.MuxedAccount): string {
  const address = addressOf(source)
  return splitMuxed(address)?.account ?? address
}

function open(envelope: xdr.TransactionEnvelope): Opened {
  switch (envelope.switch().name) {
    case 'envelopeTypeTx':
      return plain(envelope.v1().tx())
    case 'envelopeTypeTxFeeBump':
      return {
        ...plain(envelope.feeBump().tx().innerTx().v1().tx()),
        feeSource: envelope.feeBump().tx().feeSource(),
      }
    default: {
      const old = envelope.v0().tx()
      return {
        source: library().xdr.MuxedAccount.keyTypeEd25519(old.sourceAccountEd25519()),
        memo: old.memo(),
        operations: old.operations(),
      }
    }
  }
}

function plain(transaction: xdr.Transaction): Opened {
  return {
    source: transaction.sourceAccount(),
    memo: transaction.memo(),
    operations: transaction.operations(),
  }
}

function operationResults(result: xdr.TransactionResult): xdr.OperationResult[] {
  const outcome = result.result()
  return outcome.switch().name === 'txFeeBumpInnerSuccess'
    ? outcome.innerResultPair().result().result().results()
    : outcome.results()
}

const isNative = (asset: xdr.Asset): boolean => asset.switch().name === 'assetTypeNative'

/** Returns the native coin that a successful operation delivered, and its receiver. */
function delivered(
  body: xdr.OperationBody,
  outcome: xdr.OperationResult | undefined,
): { to: string; amount: bigint } | null {
  const of = (to: string, amount: { toString(): string }) => ({
    to,
    amount: BigInt(amount.toString()),
  })
  switch (body.switch().name) {
    case 'createAccount':
      return of(
        library().StrKey.encodeEd25519PublicKey(body.createAccountOp().destination().ed25519()),
        body.createAccountOp().startingBalance(),
      )
    case 'payment':
      return isNative(body.paymentOp().asset())
        ? of(addressOf(body.paymentOp().destination()), body.paymentOp().amount())
        : null
    case 'pathPaymentStrictReceive': {
      const payment = body.pathPaymentStrictReceiveOp()
      return isNative(payment.destAsset())
        ? of(addressOf(payment.destination()), payment.destAmount())
        : null
    }
    case 'pathPaymentStrictSend': {
      const payment = body.pathPaymentStrictSendOp()
      const last = outcome?.tr().pathPaymentStrictSendResult().success().last()
      return isNative(payment.destAsset()) && last
        ? of(addressOf(payment.destination()), last.amount())
        : null
    }
    case 'accountMerge': {
      const left = outcome?.tr().accountMergeResult().sourceAccountBalance()
      return left === undefined ? null : of(addressOf(body.destination()), left)
    }
    default:
      return null
  }
}
