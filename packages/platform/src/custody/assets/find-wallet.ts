import { ApiError } from '../../core/errors.ts'
import type { Queryable } from '../../core/database/pool.ts'

/** Owner of a wallet. */
export interface WalletOwner {
  workspaceId: string
  subAccountId: string
}

/** A row of `wallets`. */
export interface WalletRow {
  id: string
  asset: string
  status: string
  created_at: Date
  network: string
}

/**
 * Returns the wallet of an asset in a sub-account, and the workspace's fee tier.
 * @throws ApiError `WALLET_MISSING`
 */
export async function findWallet(
  database: Queryable,
  { workspaceId, subAccountId }: WalletOwner,
  asset: string,
): Promise<WalletRow & { prepaid_tier: string | null }> {
  const row = await database.one<WalletRow & { prepaid_tier: string | null }>(
    `select w.id, w.asset, w.status, w.created_at, w.network, p.tier prepaid_tier
     from wallets w left join prepaid_accounts p on p.workspace_id = w.workspace_id
     where w.workspace_id = $3 and w.sub_account_id = $1 and w.asset = $2`,
    [subAccountId, asset, workspaceId],
  )
  if (!row) {
    throw new ApiError(
      'WALLET_MISSING',
      `asset: there is no ${asset} wallet in this sub-account; create it with POST /dac/v1/create-wallet`,
      { field: 'asset' },
    )
  }
  return row
}

/**
 * A wallet and its workspace's fee tier, possibly from a cache. The wallet never changes;
 * statements that write check the tier.
 */
export type KnownWallet = Pick<WalletRow, 'id'> & { prepaid_tier: string | null }

const KNOWN_MAX = 20_000

/** Cache of wallets. */
export class KnownWallets {
  readonly #database: Queryable
  readonly #cache = new Map<string, KnownWallet>()

  constructor(database: Queryable) {
    this.#database = database
  }

  /**
   * Like {@link findWallet}, but the tier may be outdated.
   * @param again whether the cached entry was outdated and must be read again
   */
  async find(owner: WalletOwner, asset: string, again = false): Promise<KnownWallet> {
    const name = `${owner.subAccountId} ${asset}`
    const remembered = again ? undefined : this.#cache.get(name)
    if (remembered) return remembered
    const { id, prepaid_tier } = await findWallet(this.#database, owner, asset)
    if (this.#cache.size >= KNOWN_MAX) this.#cache.clear()
    // Without a prepaid fee account the workspace has no tier that a later statement could check,
    // so the wallet is not cached.
    if (prepaid_tier !== null) this.#cache.set(name, { id, prepaid_tier })
    return { id, prepaid_tier }
  }
}
