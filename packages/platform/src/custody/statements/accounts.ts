import type { Asset, Registry } from '@custody/chains'
import { ApiError } from '../../core/errors.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { Caller } from '../../core/http/endpoint.ts'
import type { AccountKind } from '../../core/ledger/post.ts'
import { assertKnownAsset } from '../assets/find-asset.ts'
import { findWallet } from '../assets/find-wallet.ts'
import { hasTank } from '../gas-tanks/ensure-tank.ts'

/** Parts of a balance; their sum is the balance. */
export const PARTS = ['liquid', 'unswept', 'frozen', 'staked', 'cooling', 'at_addresses'] as const
export type Part = (typeof PARTS)[number]

/** Amounts of each part, in the asset's smallest unit. */
export type Parts = Record<Part, bigint>

type PartOfKind = Readonly<Partial<Record<AccountKind, Part>>>

const STAKED = {
  staked_energy: 'staked',
  staked_bandwidth: 'staked',
  staked_energy_reserved: 'staked',
  staked_bandwidth_reserved: 'staked',
  cooling: 'cooling',
} as const satisfies PartOfKind

/** The ledger accounts of a wallet that together are its total balance, and the part of each. */
export const WALLET_PARTS = {
  available: 'liquid',
  reserved: 'liquid',
  unswept: 'unswept',
  frozen: 'frozen',
  ...STAKED,
} as const satisfies PartOfKind

/** The same for a gas tank, whose fuel at addresses belongs to it until a fee is paid with it. */
export const TANK_PARTS = {
  tank: 'liquid',
  tank_reserved: 'liquid',
  float: 'at_addresses',
  float_reserved: 'at_addresses',
  ...STAKED,
} as const satisfies PartOfKind

/** Whose statement it is: that of a wallet, or of the workspace's gas tank of a network. */
export const OWNERS = ['wallet', 'gas_tank'] as const

/** The wallet or gas tank of a statement. */
export interface StatementAccount {
  workspaceId: string
  /** Null: the gas tank of the asset's network. */
  walletId: string | null
  asset: Asset
}

interface Services {
  database: Database
  registry: Registry
  networks: Networks
}

/**
 * Returns the account of a statement.
 * @throws ApiError `UNSUPPORTED_ASSET`, `WALLET_MISSING`, or `INVALID_REQUEST` if no gas tank has
 *   this asset; each names the field `asset`
 */
export async function findAccount(
  services: Services,
  caller: Pick<Caller, 'workspaceId' | 'subAccountId'>,
  { asset: ticker, account }: { asset: string; account: (typeof OWNERS)[number] },
): Promise<StatementAccount> {
  assertKnownAsset(services, ticker)
  const asset = services.registry.asset(ticker) as Asset
  const { workspaceId } = caller
  if (account === 'wallet') {
    const { id } = await findWallet(services.database, caller, ticker)
    return { workspaceId, walletId: id, asset }
  }
  const chain = services.networks
    .all()
    .find((each) => hasTank(each) && each.network.native_asset === ticker)
  if (chain) return { workspaceId, walletId: null, asset }
  throw new ApiError(
    'INVALID_REQUEST',
    `asset: no gas tank has ${ticker}; use the native coin of a network with a gas tank, as in GET /dac/v1/gas-tanks`,
    { field: 'asset' },
  )
}

/**
 * Returns the accounts of an export: the one of the asset, or without an asset every wallet of the
 * sub-account, or every gas tank of the workspace, by the name of the asset.
 * @throws ApiError as {@link findAccount}
 */
export async function findAccounts(
  services: Services,
  caller: Pick<Caller, 'workspaceId' | 'subAccountId'>,
  { asset: ticker, account }: { asset?: string | undefined; account: (typeof OWNERS)[number] },
): Promise<StatementAccount[]> {
  if (ticker !== undefined) return [await findAccount(services, caller, { asset: ticker, account })]
  const { workspaceId } = caller
  const of = (name: string, walletId: string | null): StatementAccount[] => {
    const asset = services.registry.asset(name)
    return asset === undefined ? [] : [{ workspaceId, walletId, asset }]
  }
  if (account === 'gas_tank')
    return services.networks
      .all()
      .filter(hasTank)
      .map(({ network }) => network.native_asset)
      .toSorted()
      .flatMap((name) => of(name, null))
  const wallets = await services.database.query<{ id: string; asset: string }>(
    `select id, asset from wallets where workspace_id = $1 and sub_account_id = $2
      order by asset collate "C"`,
    [workspaceId, caller.subAccountId],
  )
  return wallets.flatMap(({ id, asset }) => of(asset, id))
}

export const partsOf = ({ walletId }: StatementAccount): PartOfKind =>
  walletId === null ? TANK_PARTS : WALLET_PARTS

/** SQL list of ledger account kinds. */
export const kindList = (kinds: PartOfKind): string =>
  Object.keys(kinds)
    .map((kind) => `'${kind}'`)
    .join(', ')
