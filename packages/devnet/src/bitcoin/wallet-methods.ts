import { formatAmount, parseAmount } from '../amount.ts'
import { RequestError, RpcError } from '../errors.ts'
import { scriptOf } from './address.ts'
import type { BitcoinChain } from './chain.ts'
import { descriptorChecksum } from './descriptor.ts'
import { btc } from './json.ts'
import type { WalletCoin } from './node-wallet.ts'
import {
  INSUFFICIENT_FUNDS,
  integer,
  INVALID_ADDRESS_OR_KEY,
  INVALID_PARAMETER,
  method,
  REJECTED,
  TYPE,
  WALLET,
  type Method,
  type Params,
} from './parameters.ts'

const CONFIRMATIONS_MAX = 9_999_999

/**
 * Returns whether only this wallet can spend a coin: it is in a block, or in a waiting transaction
 * of the wallet itself.
 */
function isSafe({ wallet, mempool }: BitcoinChain, { txid, confirmations }: WalletCoin): boolean {
  const entry = mempool.entries.get(txid)
  return confirmations > 0 || (entry !== undefined && wallet.isOwn(entry))
}

const coinsOf = (chain: BitcoinChain): WalletCoin[] =>
  chain.wallet.coins(chain.ledger, chain.mempool)

function getNewAddress({ wallet, network }: BitcoinChain, [label, type]: Params): unknown {
  if (label !== undefined && label !== null && typeof label !== 'string')
    throw new RpcError(TYPE, 'JSON value is not a string as expected')
  const wanted = type ?? (network.segwit ? 'bech32' : 'legacy')
  if (wanted !== 'legacy' && !(wanted === 'bech32' && network.segwit))
    throw new RpcError(INVALID_ADDRESS_OR_KEY, `Unknown address type '${String(wanted)}'`)
  return wallet.newAddress(label ?? '', wanted).address
}

function getBalance(chain: BitcoinChain, [dummy, minimum]: Params): unknown {
  if (dummy !== undefined && dummy !== null && dummy !== '*')
    throw new RpcError(-32, 'dummy first argument must be excluded or set to "*".')
  const least = integer(minimum, 0)
  return btc(
    coinsOf(chain)
      .filter((coin) => isSafe(chain, coin) && coin.confirmations >= least)
      .reduce((sum, { coin }) => sum + coin.value, 0n),
  )
}

function listUnspent(
  chain: BitcoinChain,
  [minimum, maximum, addresses, includeUnsafe]: Params,
): unknown {
  const [least, most] = [integer(minimum, 1), integer(maximum, CONFIRMATIONS_MAX)]
  if (!Array.isArray(addresses ?? [])) throw new RpcError(TYPE, 'Expected type array for addresses')
  const wanted = (addresses as unknown[] | null | undefined) ?? []
  for (const address of wanted) {
    const isKnown = typeof address === 'string' && Buffer.isBuffer(scriptOf(address, chain.network))
    if (!isKnown)
      throw new RpcError(INVALID_ADDRESS_OR_KEY, `Invalid Bitcoin address: ${String(address)}`)
  }
  return coinsOf(chain)
    .filter(({ confirmations }) => confirmations >= least && confirmations <= most)
    .filter(({ owner }) => wanted.length === 0 || wanted.includes(owner.address))
    .map((each) => ({ ...each, safe: isSafe(chain, each) }))
    .filter(({ safe }) => safe || includeUnsafe !== false)
    .map(({ txid, vout, coin, owner, confirmations, safe }) => ({
      txid,
      vout,
      address: owner.address,
      label: owner.label,
      scriptPubKey: coin.script.toString('hex'),
      amount: btc(coin.value),
      confirmations,
      spendable: true,
      solvable: true,
      desc: `${owner.descriptor}#${descriptorChecksum(owner.descriptor)}`,
      safe,
    }))
}

function sendToAddress(chain: BitcoinChain, [address, amount]: Params): unknown {
  const script = scriptOf(String(address), chain.network)
  if (!Buffer.isBuffer(script))
    throw new RpcError(INVALID_ADDRESS_OR_KEY, `Invalid Bitcoin address: ${String(address)}`)
  const coins = coinsOf(chain).filter((coin) => isSafe(chain, coin))
  const tx = chain.wallet.pay(coins, { value: valueOf(amount), script })
  if ('available' in tx)
    throw new RpcError(
      INSUFFICIENT_FUNDS,
      `Insufficient funds: at most ${formatAmount(tx.available, 8)}`,
    )
  const outcome = chain.submit(tx)
  if ('rejection' in outcome)
    throw new RpcError(
      outcome.rejection.reason === 'dust' ? WALLET : REJECTED,
      outcome.rejection.reason,
    )
  return tx.txid
}

/** Reads an amount, given as a number or as text, with at most eight decimals. */
function valueOf(amount: unknown): bigint {
  const text = typeof amount === 'number' ? amount.toFixed(8) : amount
  try {
    return parseAmount(text, 8)
  } catch (error) {
    if (error instanceof RequestError)
      throw new RpcError(
        typeof amount === 'number' ? TYPE : INVALID_PARAMETER,
        'Invalid amount for send',
      )
    throw error
  }
}

/** RPC methods of the node's wallet, which users of regtest need first. */
export const WALLET_METHODS: readonly (readonly [string, Method])[] = [
  ['getnewaddress', method('label address_type', getNewAddress)],
  ['getbalance', method('dummy minconf include_watchonly avoid_reuse', getBalance)],
  ['listunspent', method('minconf maxconf addresses include_unsafe query_options', listUnspent)],
  ['sendtoaddress', method('address amount comment comment_to', sendToAddress)],
]
