import {
  CHANGE_INDEX,
  OMNIBUS_INDEX,
  traitsOf,
  type Asset,
  type Network,
  type Registry,
} from '@custody/chains'
import { z } from 'zod'
import { deriveAddress, tankOwner } from '../addresses/derive.ts'
import { findOpenAsset } from '../assets/find-asset.ts'
import type { Queryable, Database } from '../../core/database/pool.ts'
import { SQL_ERRORS, sqlErrorOf } from '../../core/database/sql-errors.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { WorkspaceKeys } from '../../core/signing/keys.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'
import type { Invoices } from '../../core/engine/interfaces/listeners.ts'
import { ApiError } from '../../core/errors.ts'
import { hasTank, tankTerms } from '../gas-tanks/ensure-tank.ts'
import { endpoint, type Caller } from '../../core/http/endpoint.ts'
import { assetName } from '../../core/http/schemas.ts'
import { creditWaitingDeposits } from '../deposits/waiting.ts'
import type { WalletRow } from '../assets/find-wallet.ts'
import { presentWallet, walletShape } from './present.ts'

interface Services {
  settings: Pick<Settings, 'allowDeprecated' | 'network'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  keys: WorkspaceKeys
  addresses: Addresses
  invoices: Invoices
}

/** Defines the endpoint that creates the only wallet of an asset in the caller's sub-account. */
const definition = (id: string, path: string) =>
  endpoint({
    id,
    tag: 'Wallets',
    description:
      'Creates the wallet of an asset in the sub-account, with its omnibus address. Deposits that arrived for it earlier are credited now. A sub-account can have one wallet for each asset. The first wallet of a workspace waits up to 30 seconds for the workspace’s key; a 503 `KEY_PENDING` means that nothing was created, and the request must be sent again.',
    errors: [
      'UNSUPPORTED_ASSET',
      'ASSET_CLOSED',
      'WALLET_EXISTS',
      'KEY_PENDING',
      'SIGNERS_UNAVAILABLE',
      'NETWORK_UNAVAILABLE',
    ],
    method: 'POST',
    path,
    summary: 'Create a wallet',
    access: 'write',
    audit: { not: 'a wallet moves nothing, and customers create them in large numbers' },
    body: z.strictObject({ asset: assetName }),
    response: walletShape,
    async handler({ caller, body }, services: Services) {
      const { asset, network } = findOpenAsset(services, body.asset)
      await services.addresses.startScan(network)
      const planned = await plan(services, caller, asset, network)
      try {
        await make(services.database, caller, asset, planned)
      } catch (error) {
        if (sqlErrorOf(error).code !== SQL_ERRORS.depositsWait) throw error
        // Coins arrived for the wallet before it existed; the same commit credits them.
        await services.database.transaction(async (tx) => {
          await make(tx, caller, asset, planned, true)
          await creditWaitingDeposits(services, tx, caller, planned.row)
        })
      }
      return { body: planned.shown }
    },
  })

export const createWallet = definition('createWallet', '/dac/v1/create-wallet')
export const createWalletAlias = definition('createWalletAlias', '/dac/v1/wallet')

/**
 * Prepares everything that a wallet consists of, before it is written. The first wallet of a
 * workspace waits for the workspace's key.
 */
async function plan(services: Services, caller: Caller, asset: Asset, network: Network) {
  const chain = services.networks.get(network.code)
  const address = await deriveAddress(services, network, caller, OMNIBUS_INDEX)
  const addresses = [
    {
      address,
      sub_account: caller.subAccountId as string | null,
      path_index: OMNIBUS_INDEX,
      kind: 'omnibus',
    },
  ]
  if (traitsOf(network).deposits === 'spendable') {
    const change = await deriveAddress(services, network, caller, CHANGE_INDEX)
    addresses.push({
      address: change,
      sub_account: caller.subAccountId,
      path_index: CHANGE_INDEX,
      kind: 'change',
    })
  }
  let tank = null
  if (hasTank(chain)) {
    const at = await deriveAddress(services, network, tankOwner(caller.workspaceId), OMNIBUS_INDEX)
    addresses.push({ address: at, sub_account: null, path_index: OMNIBUS_INDEX, kind: 'tank' })
    tank = { address: at, ...tankTerms(services, chain) }
  }
  const row: WalletRow = {
    id: services.environment.uuid(),
    asset: asset.asset_name,
    network: network.code,
    status: 'active',
    created_at: services.database.now(),
  }
  return {
    row,
    addresses,
    tank,
    shown: presentWallet(row, network, { address, subAccount: caller.subAccountIndex }),
  }
}

type Planned = Awaited<ReturnType<typeof plan>>

const exists = (asset: Asset, id: string | undefined): ApiError =>
  new ApiError('WALLET_EXISTS', `asset: a wallet for ${asset.asset_name} already exists (${id})`, {
    field: 'asset',
    details: { wallet_id: id },
  })

/**
 * Writes a wallet.
 * @param credits whether the caller credits the deposits that wait for it, in the same transaction
 * @throws errors raised by `create_wallet`; ApiError `WALLET_EXISTS`
 */
async function make(
  tx: Queryable,
  { workspaceId, subAccountId }: Caller,
  asset: Asset,
  planned: Planned,
  credits = false,
): Promise<void> {
  const { row, addresses, tank, shown } = planned
  const answer = await tx.one<{ existing: string | null }>('select create_wallet($1) existing', [
    JSON.stringify({
      ...row,
      workspace_id: workspaceId,
      sub_account_id: subAccountId,
      addresses,
      tank,
      shown,
      credits,
    }),
  ])
  if (typeof answer?.existing === 'string') throw exists(asset, answer.existing)
  tx.emit({ type: 'wallet.created', workspace: workspaceId, payload: JSON.stringify(shown) })
}
