import type { TransactionSerializable } from 'viem'
import { parseTransaction, size } from 'viem/utils'
import type { EthereumChain } from './chain.ts'
import { intrinsicGas, floorGas } from './gas.ts'
import { isUnderpriced, type Pending, type ReadTransaction } from './policy.ts'
import { refusalOf } from './rollup.ts'

// Rules by which geth 1.17 refuses a broadcast, in its order and its words (`SubmitTransaction`,
// `ValidateTransaction`, `ValidateTransactionWithState`, `LegacyPool`). The engine lacks them.

const WEI_PER_COIN = 10n ** 18n
/** Maximum of gas limit times price in wei that a node takes over RPC (`--rpc.txfeecap`). */
const FEE_MAX = WEI_PER_COIN
const SIZE_MAX = 131_072
const INIT_CODE_MAX = 49_152
/** Gas limit of one transaction since Osaka (EIP-7825). */
const GAS_MAX = 16_777_216n

interface Broadcast {
  chain: EthereumChain
  read: ReadTransaction
  tx: TransactionSerializable
  gas: bigint
}
type Rule = (broadcast: Broadcast) => string | null | Promise<string | null>

/** Returns an amount of wei in coins with two decimals, as geth prints it. */
const inCoins = (wei: bigint): string => (Number(wei) / Number(WEI_PER_COIN)).toFixed(2)

const isKnown: Rule = ({ chain, read }) =>
  chain.isWaiting(read.pending.hash) ? 'already known' : null

const feeCap: Rule = ({ read, gas }) => {
  const fee = gas * read.pending.maxFee
  return fee > FEE_MAX
    ? `tx fee (${inCoins(fee)} ether) exceeds the configured cap (${inCoins(FEE_MAX)} ether)`
    : null
}

const isProtected: Rule = ({ tx }) =>
  tx.chainId === undefined ? 'only replay-protected (EIP-155) transactions allowed over RPC' : null

const dataSize: Rule = ({ read, tx }) => {
  const bytes = size(read.pending.raw)
  if (bytes > SIZE_MAX) return `oversized data: transaction size ${bytes}, limit ${SIZE_MAX}`
  const code = size(tx.data ?? '0x')
  return !tx.to && code > INIT_CODE_MAX
    ? `max initcode size exceeded: code size ${code} limit ${INIT_CODE_MAX}`
    : null
}

const gasLimit: Rule = ({ chain, gas }) =>
  !chain.network.legacy && gas > GAS_MAX
    ? `transaction gas limit too high (cap: ${GAS_MAX}, tx: ${gas})`
    : null

const tipAboveMax: Rule = ({ read: { pending } }) =>
  pending.tip > pending.maxFee ? 'max priority fee per gas higher than max fee per gas' : null

const signature: Rule = ({ chain, read, tx }) => {
  if (tx.chainId !== chain.network.chainId)
    return `invalid sender: invalid chain id for signer: have ${tx.chainId} want ${chain.network.chainId}`
  return read.highS ? 'invalid sender: invalid transaction v, r, s values' : null
}

const leastGas: Rule = ({ chain, tx, gas }) => {
  const intrinsic = intrinsicGas(tx)
  if (gas < intrinsic) return `intrinsic gas too low: gas ${gas}, minimum needed ${intrinsic}`
  const floor = chain.network.legacy ? 0n : floorGas(tx)
  return gas < floor
    ? `insufficient gas for floor data gas cost: gas ${gas}, minimum needed ${floor}`
    : null
}

const tip: Rule = ({ chain, read }) => {
  const { minTip } = chain.network
  return read.pending.tip < minTip.wei
    ? `${minTip.refusal}: gas tip cap ${read.pending.tip}, minimum needed ${minTip.wei}`
    : null
}

/** The sender's nonce, and its coins less those that its waiting transactions may spend. */
const account: Rule = async ({ chain, read: { pending } }) => {
  const { sender, nonce, cost } = pending
  const next = await chain.nonceOf(sender)
  if (next > nonce) return `nonce too low: next nonce ${next}, tx nonce ${nonce}`
  const balance = await chain.balanceOf(sender)
  const lacks = 'insufficient funds for gas * price + value: balance'
  if (balance < cost) return `${lacks} ${balance}, tx cost ${cost}, overshot ${cost - balance}`
  const { spent, previous } = spendingOf(sender, next, nonce, chain.pending)
  if (previous !== undefined) {
    const bump = cost - previous
    const need = spent + bump
    return balance < need
      ? `${lacks} ${balance}, queued cost ${spent}, tx bumped ${bump}, overshot ${need - balance}`
      : null
  }
  const need = spent + cost
  return balance < need
    ? `${lacks} ${balance}, queued cost ${spent}, tx cost ${cost}, overshot ${need - balance}`
    : null
}

/**
 * Returns the cost of the sender's waiting transactions that can be executed one after the other,
 * and that of the one with the same nonce.
 * @param next nonce of the next transaction in a block
 */
function spendingOf(
  sender: string,
  next: number,
  nonce: number,
  waiting: readonly Pending[],
): { spent: bigint; previous: bigint | undefined } {
  const costs = new Map(
    waiting.filter((each) => each.sender === sender).map((each) => [each.nonce, each.cost]),
  )
  let spent = 0n
  let at = next
  for (; costs.has(at); at++) spent += costs.get(at) as bigint
  return { spent, previous: nonce < at ? costs.get(nonce) : undefined }
}

const replacement: Rule = ({ chain, read }) =>
  isUnderpriced(read.pending, chain.pending) ? 'replacement transaction underpriced' : null

/** Rules of a roll-up, whose nodes also charge for publishing. */
const rollup: Rule = ({ chain, read: { pending } }) =>
  refusalOf(chain.network.rollup, chain.anvil, pending.raw, pending.sender, chain.head.height + 1)

const RULES: readonly Rule[] = [
  feeCap,
  isProtected,
  isKnown,
  dataSize,
  gasLimit,
  tipAboveMax,
  signature,
  leastGas,
  tip,
  account,
  replacement,
  rollup,
]
/** Nitro has no pool: it checks neither tips nor what several transactions spend together. */
const NITRO_RULES: readonly Rule[] = [isProtected, isKnown, signature, replacement, rollup]

/** Returns why a node refuses a signed transaction, in its own words; null if it accepts it. */
export async function poolRefusal(
  chain: EthereumChain,
  read: ReadTransaction,
): Promise<string | null> {
  const tx = parseTransaction(read.pending.raw) as TransactionSerializable
  const broadcast = { chain, read, tx, gas: tx.gas ?? 0n }
  for (const rule of chain.network.rollup === 'arbitrum' ? NITRO_RULES : RULES) {
    const refusal = await rule(broadcast)
    if (refusal !== null) return refusal
  }
  return null
}
