import { formatAmount } from '../amount.ts'
import { address, type Address } from '@solana/kit'
import { RpcError } from '../errors.ts'
import type { Faults } from '../faults.ts'
import {
  BLOCKS_TO_LIVE,
  type Block,
  type Included,
  type SolanaChain,
  type TokenBalance,
} from './chain.ts'
import { GENESIS_HASH, TOKEN_PROGRAM } from './genesis.ts'
import { SOLANA_TOKENS } from './tokens.ts'
import { NotTaken } from './transaction.ts'

export const INVALID_PARAMS = -32602
export const METHOD_NOT_FOUND = -32601
const SIMULATION_FAILED = -32002
const VERIFICATION_FAILED = -32003
const NOT_AVAILABLE = -32004
const UNHEALTHY = -32005
const SKIPPED = -32007
const CONTEXT_SLOT_NOT_REACHED = -32016
const SLOTS_IN_EPOCH = 432_000
const SIGNATURES_MAX = 1000
const VERSION_UNSUPPORTED = -32015
const BLOCKS_MAX = 500_000
const FEES_MAX = 150
const ACCOUNTS_MAX = 100

type Config = Record<string, unknown>

/**
 * JSON-RPC 2.0 of a Solana node. Every block is final immediately. Undefined closes the connection
 * without a response.
 */
export function solanaRpc(
  chain: SolanaChain,
  faults: Faults,
  body: string,
): { status: number; body: string } | undefined {
  let id: unknown = null
  let method = ''
  try {
    const request = JSON.parse(body) as { id?: unknown; method?: unknown; params?: unknown }
    id = request.id ?? null
    method = String(request.method)
    const run = METHODS[method]
    if (!run) throw new RpcError(METHOD_NOT_FOUND, 'Method not found')
    if (faults.mode === 'reject' && method === 'sendTransaction')
      throw new RpcError(UNHEALTHY, 'Node is unhealthy')
    const result = run(chain, Array.isArray(request.params) ? request.params : [])
    if (faults.mode === 'drop-answer' && method === 'sendTransaction') return undefined
    return { status: 200, body: text({ jsonrpc: '2.0', id, result }) }
  } catch (error) {
    if (!(error instanceof RpcError) && !(error instanceof SyntaxError)) {
      console.error(`devnet: SOL ${method}: ${(error as Error).stack ?? String(error)}`)
    }
    const code =
      error instanceof RpcError ? error.code : error instanceof SyntaxError ? -32700 : -32603
    const data =
      error instanceof SimulationFailed
        ? { data: { err: error.err, logs: [], accounts: null, returnData: null, unitsConsumed: 0 } }
        : {}
    return {
      status: 200,
      body: text({
        jsonrpc: '2.0',
        id,
        error: { code, message: (error as Error).message, ...data },
      }),
    }
  }
}

class SimulationFailed extends RpcError {
  readonly err: unknown

  constructor(message: string, err: unknown) {
    super(SIMULATION_FAILED, message)
    this.err = err
  }
}

/** Serializes to JSON with lamports as numbers of any size. */
export function text(value: unknown): string {
  const { rawJSON } = JSON as unknown as { rawJSON: (text: string) => unknown }
  return JSON.stringify(value, (_key, each: unknown) =>
    typeof each === 'bigint' ? rawJSON(each.toString()) : each,
  )
}

const METHODS: Record<string, (chain: SolanaChain, params: unknown[]) => unknown> = {
  getHealth: () => 'ok',
  getVersion: () => ({ 'solana-core': 'local', 'feature-set': 0 }),
  getGenesisHash: () => GENESIS_HASH,
  getSlot: ({ head }) => head.slot,
  getBlockHeight: ({ head }) => head.height,
  getEpochInfo: ({ head: { slot, height } }) => ({
    absoluteSlot: slot,
    blockHeight: height,
    epoch: 0,
    slotIndex: slot,
    slotsInEpoch: SLOTS_IN_EPOCH,
    transactionCount: null,
  }),
  getFirstAvailableBlock: () => 0,
  getSignaturesForAddress,
  getLatestBlockhash: (chain) =>
    inContext(chain, {
      blockhash: chain.head.hash,
      lastValidBlockHeight: chain.head.height + BLOCKS_TO_LIVE,
    }),
  isBlockhashValid: (chain, [hash]) => inContext(chain, chain.living(String(hash)) !== undefined),
  getMinimumBalanceForRentExemption: (chain, [bytes]) =>
    chain.svm.minimumBalanceForRentExemption(BigInt(whole(bytes, 'data length'))),
  getRecentPrioritizationFees: ({ blocks }) =>
    blocks.slice(-FEES_MAX).map(({ slot }) => ({ slot, prioritizationFee: 0 })),
  getBalance: (chain, [key]) => inContext(chain, chain.svm.getBalance(keyOf(key)) ?? 0n),
  getAccountInfo,
  getMultipleAccounts,
  getTokenAccountsByOwner,
  getBlock,
  getBlockTime: (chain, [slot]) => blockAt(chain, slot).time,
  getBlocks: ({ blocks, head }, [start, end]) => {
    const [from, to] = [whole(start, 'start slot'), typeof end === 'number' ? end : head.slot]
    if (to - from > BLOCKS_MAX)
      throw new RpcError(INVALID_PARAMS, `Slot range too large; max ${BLOCKS_MAX}`)
    return blocks.filter(({ slot }) => slot >= from && slot <= to).map(({ slot }) => slot)
  },
  getBlocksWithLimit: ({ blocks }, [start, limit]) => {
    const from = whole(start, 'start slot')
    return blocks
      .filter(({ slot }) => slot >= from)
      .slice(0, whole(limit, 'limit'))
      .map(({ slot }) => slot)
  },
  getSignatureStatuses: (chain, [signatures]) => {
    if (!Array.isArray(signatures)) throw new RpcError(INVALID_PARAMS, 'Invalid params: signatures')
    return inContext(
      chain,
      signatures.map((signature) => {
        const place = chain.places.get(String(signature))
        return place
          ? {
              slot: place.slot,
              confirmations: null,
              err: place.meta.err,
              status: place.meta.err === null ? { Ok: null } : { Err: place.meta.err },
              confirmationStatus: 'finalized',
            }
          : null
      }),
    )
  },
  getTransaction: (chain, [signature, config]) => {
    const place = chain.places.get(String(signature))
    if (!place) return null
    return {
      slot: place.slot,
      blockTime: chain.slots.get(place.slot)?.time ?? null,
      ...full(place, config as Config | undefined),
    }
  },
  sendTransaction: (chain, [raw, config]) => {
    const { encoding, skipPreflight } = (config ?? {}) as Config
    if (encoding !== 'base64')
      throw new RpcError(
        INVALID_PARAMS,
        'Invalid params: only the encoding base64 is understood here',
      )
    try {
      return chain.submit(String(raw), skipPreflight !== true)
    } catch (error) {
      if (!(error instanceof NotTaken)) throw error
      if (error.err !== null) throw new SimulationFailed(error.message, error.err)
      throw new RpcError(
        error.message.startsWith('failed') ? INVALID_PARAMS : VERIFICATION_FAILED,
        error.message,
      )
    }
  },
}

/** Returns signatures, newest first, beginning after `before`. */
function getSignaturesForAddress(chain: SolanaChain, [key, options]: unknown[]): unknown {
  const account = keyOf(key)
  const config = (options ?? {}) as { before?: string; limit?: number; minContextSlot?: number }
  const { before, limit = SIGNATURES_MAX, minContextSlot = 0 } = config
  if (chain.head.slot < minContextSlot)
    throw new RpcError(CONTEXT_SLOT_NOT_REACHED, 'Minimum context slot has not been reached')
  const place = [...chain.places.values()].filter(({ keys }) => keys.includes(account)).reverse()
  const from =
    before === undefined ? 0 : place.findIndex(({ signatures }) => signatures[0] === before) + 1
  return place.slice(from, from + limit).map(({ signatures, slot, meta }) => ({
    signature: signatures[0],
    slot,
    err: meta.err,
    memo: null,
    blockTime: chain.slots.get(slot)?.time ?? null,
    confirmationStatus: 'finalized',
  }))
}

export function inContext(chain: SolanaChain, value: unknown): unknown {
  return { context: { apiVersion: 'local', slot: chain.head.slot }, value }
}

export function keyOf(value: unknown): Address {
  try {
    return address(String(value))
  } catch {
    throw new RpcError(INVALID_PARAMS, 'Invalid param: Invalid')
  }
}

function whole(value: unknown, name: string): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0)
    throw new RpcError(INVALID_PARAMS, `Invalid params: ${name}`)
  return value
}

function getAccountInfo(chain: SolanaChain, [key, config]: unknown[]): unknown {
  return inContext(chain, accountOf(chain, keyOf(key), (config ?? {}) as Config))
}

function getMultipleAccounts(chain: SolanaChain, [keys, config]: unknown[]): unknown {
  if (!Array.isArray(keys)) throw new RpcError(INVALID_PARAMS, 'Invalid params: pubkeys')
  if (keys.length > ACCOUNTS_MAX)
    throw new RpcError(INVALID_PARAMS, `Too many inputs provided; max ${ACCOUNTS_MAX}`)
  const value = keys.map((key) => accountOf(chain, keyOf(key), (config ?? {}) as Config))
  return inContext(chain, value)
}

/** Returns an account as nodes do; null if it does not exist. */
export function accountOf(chain: SolanaChain, key: Address, config: Config): unknown {
  const place = chain.svm.getAccount(key)
  if (!place.exists || place.lamports === 0n) return null
  const { offset = 0, length = place.data.length } = (config['dataSlice'] ?? {}) as {
    offset?: number
    length?: number
  }
  const data = Buffer.from(place.data.slice(offset, offset + length)).toString('base64')
  return {
    lamports: place.lamports,
    owner: place.programAddress,
    executable: place.executable,
    data: [data, 'base64'],
    rentEpoch: 18446744073709551615n,
    space: place.data.length,
  }
}

function getTokenAccountsByOwner(chain: SolanaChain, [key, filter]: unknown[]): unknown {
  const owner = keyOf(key)
  const mint = (filter as Config | undefined)?.['mint']
  if (mint !== undefined && !SOLANA_TOKENS.some((token) => token.mint === mint)) {
    throw new RpcError(INVALID_PARAMS, 'Invalid param: could not find mint')
  }
  const value = chain.svm
    .getProgramAccounts(TOKEN_PROGRAM)
    .flatMap(({ address: pubkey, lamports, data }) => {
      const account = chain.tokenAccount(pubkey)
      if (!account || account.owner !== owner || (mint !== undefined && account.mint !== mint))
        return []
      const info = {
        mint: account.mint,
        owner,
        state: 'initialized',
        isNative: false,
        tokenAmount: amountOf(
          account.amount,
          SOLANA_TOKENS.find((token) => token.mint === account.mint)?.decimals ?? 0,
        ),
      }
      return [
        {
          pubkey,
          account: {
            lamports,
            owner: TOKEN_PROGRAM,
            executable: false,
            rentEpoch: 18446744073709551615n,
            space: data.length,
            data: { program: 'spl-token', space: data.length, parsed: { type: 'account', info } },
          },
        },
      ]
    })
  return inContext(chain, value)
}

const amountOf = (amount: bigint, decimals: number) => ({
  amount: amount.toString(),
  decimals,
  uiAmountString: formatAmount(amount, decimals).replace(/\.?0+$/, ''),
})
const balanceOf = ({ accountIndex, mint, owner, amount, decimals }: TokenBalance) => ({
  accountIndex,
  mint,
  owner,
  programId: TOKEN_PROGRAM,
  uiTokenAmount: amountOf(amount, decimals),
})

function metaOf({ meta }: Included): Config {
  const { err, fee, preBalances, postBalances } = meta
  return {
    err,
    status: err === null ? { Ok: null } : { Err: err },
    fee,
    preBalances,
    postBalances,
    preTokenBalances: meta.preTokenBalances.map(balanceOf),
    postTokenBalances: meta.postTokenBalances.map(balanceOf),
  }
}

function full(included: Included, config: Config | undefined): Config {
  // Every transaction here may be of version 0, which nodes do not return to clients that do not
  // declare support for it.
  if (typeof config?.['maxSupportedTransactionVersion'] !== 'number') {
    throw new RpcError(
      VERSION_UNSUPPORTED,
      'Transaction version (0) is not supported by the requesting client. Please try the request again with the following ' +
        'configuration parameter: "maxSupportedTransactionVersion": 0',
    )
  }
  const { meta, keys, signatures, raw } = included
  const transaction =
    config['encoding'] === 'base64'
      ? [raw, 'base64']
      : { signatures, message: { accountKeys: keys } }
  return {
    version: 0,
    transaction,
    meta: {
      ...metaOf(included),
      innerInstructions: [],
      logMessages: meta.logs,
      loadedAddresses: { readonly: [], writable: [] },
      computeUnitsConsumed: meta.units,
    },
  }
}

/**
 * Returns the block of a slot.
 * @throws RpcError if the slot has none, or is not reached
 */
function blockAt(chain: SolanaChain, at: unknown): Block {
  const slot = whole(at, 'slot')
  const block = chain.slots.get(slot)
  if (!block) {
    if (slot > chain.head.slot)
      throw new RpcError(NOT_AVAILABLE, `Block not available for slot ${slot}`)
    throw new RpcError(
      SKIPPED,
      `Slot ${slot} was skipped, or missing due to ledger jump to recent snapshot`,
    )
  }
  return block
}

function getBlock(chain: SolanaChain, [at, options]: unknown[]): unknown {
  const block = blockAt(chain, at)
  const config = (options ?? {}) as Config
  const head = {
    blockhash: block.hash,
    previousBlockhash: block.parent,
    parentSlot: block.parentSlot,
    blockHeight: block.height,
    blockTime: block.time,
  }
  return { ...head, ...details(block, config) }
}

function details({ transactions }: Block, config: Config): Config {
  switch (config['transactionDetails'] ?? 'full') {
    case 'none':
      return {}
    case 'signatures':
      return { signatures: transactions.map(({ signatures }) => signatures[0]) }
    case 'accounts':
      return {
        transactions: transactions.map((each) => {
          const { version } = full(each, config)
          return {
            version,
            meta: metaOf(each),
            transaction: {
              signatures: each.signatures,
              accountKeys: each.keys.map((pubkey, index) => ({
                pubkey,
                signer: index < each.signers,
                source: 'transaction',
                writable: true,
              })),
            },
          }
        }),
      }
    default:
      return { transactions: transactions.map((each) => full(each, config)) }
  }
}
