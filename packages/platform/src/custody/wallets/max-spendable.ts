import { formatAmount, type Asset } from '@custody/chains'
import type { Database } from '../../core/database/pool.ts'
import { exact } from '../../core/decimals.ts'
import { DEFAULT_LEVEL, type Chain } from '../../core/engine/chain.ts'
import { withTimeout } from '../../core/engine/with-timeout.ts'
import type { Environment } from '../../core/environment.ts'
import type { Caller } from '../../core/http/endpoint.ts'
import { frozenOf } from '../assets/frozen-coins.ts'

interface Services {
  environment: Environment
  database: Database
}

interface WalletFunds {
  caller: Caller
  asset: Asset
  walletId: string
  /** Available balance without the chain reserve, in the smallest unit. */
  free: bigint
}

/**
 * Returns the largest amount that one transfer from a wallet can pay now, in units of the asset; null
 * if the network's fee rate is not known. Does not fail if the chain is unreachable.
 */
export async function maxSpendable(
  services: Services,
  chain: Chain,
  { caller, asset, walletId, free }: WalletFunds,
) {
  const show = (value: bigint) => exact(formatAmount(value > 0n ? value : 0n, asset.decimals))
  if (free <= 0n) return show(0n)
  if (chain.coins) {
    const frozen = await frozenOf(services.database, caller.workspaceId, walletId)
    const most = await chain.coins.payable({ owner: caller, walletId, free: free - frozen })
    return most === null ? null : show(most)
  }
  // A gas tank pays the fee, or the wallet of the native coin does for its tokens.
  if (chain.fuelled || asset.type !== 'native') return show(free)
  const fee = await withTimeout<bigint | null>(
    services.environment,
    feeOf(chain, caller, asset),
    null,
  )
  return fee === null ? null : show(free - fee)
}

/** Returns the fee of a typical transfer at the default level, in the smallest unit. */
async function feeOf(chain: Chain, owner: Caller, asset: Asset): Promise<bigint> {
  const rate = (await chain.rates(asset))[DEFAULT_LEVEL]
  return (await chain.quote({ owner, asset, rate, amount: null, to: null })).fee
}
