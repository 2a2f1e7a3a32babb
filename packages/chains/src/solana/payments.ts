import { sendersOf, type AsideCoin, type ChainTransfer, type Senders } from '../rpc.ts'
import type { Asset, Network } from '../types.ts'
import { tokenAccountOf } from './address.ts'

export type Amount = number | bigint
export interface TokenBalance {
  accountIndex: number
  mint: string
  owner?: string
  uiTokenAmount?: { amount?: string }
}
export interface Meta {
  err: unknown
  fee: Amount
  preBalances: Amount[]
  postBalances: Amount[]
  preTokenBalances?: TokenBalance[] | null
  postTokenBalances?: TokenBalance[] | null
}

/** A transaction of a block that was requested with its accounts. */
export interface BlockTransaction {
  transaction: { signatures: string[]; accountKeys: { pubkey: string; signer?: boolean }[] }
  meta: Meta | null
}

/**
 * Returns the amounts by which a successful transaction increased the balances of wallets and of
 * the associated accounts of registered tokens. Using balances covers every way of moving coins.
 */
export function transfersIn(
  { transaction, meta }: BlockTransaction,
  network: Network,
  assets: readonly Asset[],
): ChainTransfer[] {
  if (!meta || meta.err !== null) return []
  const txid = transaction.signatures[0] as string
  const keys = transaction.accountKeys.map(({ pubkey }) => pubkey)
  const sender = keys[0] ?? null
  const senders = payersOf(transaction.accountKeys, meta)
  const place: ChainTransfer[] = []
  for (const [position, address] of keys.entries()) {
    const amount =
      BigInt(meta.postBalances[position] ?? 0) - BigInt(meta.preBalances[position] ?? 0)
    if (amount > 0n)
      place.push({
        txid,
        position,
        asset: network.native_asset,
        address,
        amount,
        sender,
        senders,
        coinbase: false,
      })
  }
  for (const { asset, accountIndex, mint, owner, amount } of received(meta, assets)) {
    if (keys[accountIndex] !== tokenAccountOf(owner, mint)) continue
    const after = (at: number) =>
      amountOf((meta.postTokenBalances ?? []).find((post) => post.accountIndex === at)) ?? 0n
    const payer = (meta.preTokenBalances ?? []).find(
      (each) =>
        each.mint === mint &&
        each.accountIndex !== accountIndex &&
        (amountOf(each) ?? 0n) > after(each.accountIndex),
    )
    place.push({
      txid,
      position: accountIndex,
      asset: asset.asset_name,
      address: owner,
      amount,
      sender: payer?.owner ?? sender,
      senders,
      coinbase: false,
    })
  }
  return place
}

/** Yields the token accounts whose amount of a registered token a transaction increased. */
function* received(meta: Meta, assets: readonly Asset[]) {
  for (const held of meta.postTokenBalances ?? []) {
    const { accountIndex, mint, owner } = held
    const asset = assets.find(
      (candidate) => candidate.type === 'token' && candidate.contract_address === mint,
    )
    if (!asset || owner === undefined) continue
    const before = (meta.preTokenBalances ?? []).find((each) => each.accountIndex === accountIndex)
    const amount = (amountOf(held) ?? 0n) - (amountOf(before) ?? 0n)
    if (amount > 0n) yield { asset, accountIndex, mint, owner, amount }
  }
}

/**
 * Returns the registered tokens that a successful transaction paid to other token accounts of
 * owners than the associated one. Transfers are made from the associated account only.
 */
export function asideIn(
  { transaction, meta }: BlockTransaction,
  assets: readonly Asset[],
): AsideCoin[] {
  if (!meta || meta.err !== null) return []
  const txid = transaction.signatures[0] as string
  return [...received(meta, assets)].flatMap(({ asset, accountIndex, mint, owner, amount }) => {
    const account = transaction.accountKeys[accountIndex]?.pubkey
    if (account === undefined || account === tokenAccountOf(owner, mint)) return []
    return [
      {
        txid,
        vout: accountIndex,
        address: owner,
        asset: asset.asset_name,
        amount,
        reason: 'TOKEN_ACCOUNT' as const,
        token: null,
        account,
      },
    ]
  })
}

/**
 * Returns the senders of a transaction: every signer, and everyone whose balance of lamports or of
 * any token decreased. A token account counts as its owner. If the node does not name the owner,
 * the senders are incomplete.
 */
function payersOf(keys: readonly { pubkey: string; signer?: boolean }[], meta: Meta): Senders {
  const [before, after] = [meta.preTokenBalances ?? [], meta.postTokenBalances ?? []]
  const owners = new Map(
    [...before, ...after].map(({ accountIndex, owner }) => [accountIndex, owner]),
  )
  const native = keys.flatMap(({ pubkey, signer }, at) => {
    if (at === 0 || signer) return [pubkey]
    return BigInt(meta.postBalances[at] ?? 0) < BigInt(meta.preBalances[at] ?? 0)
      ? [owners.has(at) ? owners.get(at) : pubkey]
      : []
  })
  const left = new Map(after.map((each) => [each.accountIndex, amountOf(each)]))
  const tokens = before.flatMap((each): (string | undefined)[] => {
    const [had, has] = [
      amountOf(each),
      left.has(each.accountIndex) ? (left.get(each.accountIndex) ?? null) : 0n,
    ]
    // A token that this platform does not know may use another form of amount.
    if (had === null || has === null) return [undefined]
    return had > has ? [each.owner] : []
  })
  return sendersOf([...native, ...tokens])
}

/** Returns whether a value is a number of lamports. */
export const isAmount = (value: unknown): boolean =>
  (typeof value === 'number' ? Number.isSafeInteger(value) : typeof value === 'bigint') &&
  (value as Amount) >= 0

/**
 * Returns the amount of a token in its smallest unit; null if the response does not contain it as
 * an integer.
 */
export function amountOf(balance: TokenBalance | undefined): bigint | null {
  const amount: unknown = balance?.uiTokenAmount?.amount
  return typeof amount === 'string' && /^\d{1,39}$/.test(amount) ? BigInt(amount) : null
}
