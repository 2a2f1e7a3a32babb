import { CHANGE_INDEX, OMNIBUS_INDEX, traitsOf, type Asset, type Network } from '@custody/chains'
import { z } from 'zod'
import { deriveAddress, ensureChange, ensureOmnibus, tankOwner } from '../addresses/derive.ts'
import { listOmnibus } from '../addresses/omnibus.ts'
import { findAsset } from '../assets/find-asset.ts'
import { RAISED, raised } from '../database/raised.ts'
import type { Services } from '../engine/services.ts'
import { ApiError } from '../errors.ts'
import { emit } from '../ledger/post.ts'
import { ensureGasTank, hasTank, tankTerms } from '../gas-tanks/ensure-tank.ts'
import { endpoint, type Caller } from '../http/endpoint.ts'
import { assetName } from '../http/schemas.ts'
import { creditWaitingDeposits } from '../deposits/waiting.ts'
import type { WalletRow } from '../assets/find-wallet.ts'
import { presentWallet, walletShape } from './present.ts'

/** Creates the one wallet of an asset in the caller's sub-account. */
const definition = (id: string, path: string) => endpoint({
  id, tag: 'Wallets',
  description: 'Makes the one wallet of an asset in the sub-account, with its omnibus address. What came in for it before is credited '
    + 'now. At most one for each asset.',
  errors: ['UNSUPPORTED_ASSET', 'WALLET_EXISTS', 'SIGNERS_UNAVAILABLE', 'NETWORK_UNAVAILABLE'],
  method: 'POST', path, summary: 'Create a wallet', access: 'write',
  body: z.strictObject({ asset: assetName }), response: walletShape,
  async handler({ services, caller, body }) {
    const { asset, network } = findAsset(services, body.asset)
    await services.addresses.startScan(network)
    const made = await make(services, caller, asset, network).catch(async (error: unknown) => {
      if (raised(error).code === RAISED.depositsWait) return makeAndCredit(services, caller, asset, network)
      throw error
    })
    return { body: made }
  },
})

export const createWallet = definition('createWallet', '/dac/v1/create-wallet')
export const createWalletAlias = definition('createWalletAlias', '/dac/v1/wallet')

/** What a wallet is made of, before it is written. The nodes may need seconds to make a workspace's first key. */
async function plan(services: Services, caller: Caller, asset: Asset, network: Network) {
  const chain = services.networks.get(network.code)
  const address = await deriveAddress(services, network, caller, OMNIBUS_INDEX)
  const addresses = [{ address, sub_account: caller.subAccountId as string | null, path_index: OMNIBUS_INDEX, kind: 'omnibus' }]
  if (traitsOf(network).deposits === 'spendable') {
    const change = await deriveAddress(services, network, caller, CHANGE_INDEX)
    addresses.push({ address: change, sub_account: caller.subAccountId, path_index: CHANGE_INDEX, kind: 'change' })
  }
  let tank = null
  if (hasTank(chain)) {
    const at = await deriveAddress(services, network, tankOwner(caller.workspaceId), OMNIBUS_INDEX)
    addresses.push({ address: at, sub_account: null, path_index: OMNIBUS_INDEX, kind: 'tank' })
    tank = { address: at, ...tankTerms(services, chain) }
  }
  const row: WalletRow = {
    id: services.environment.uuid(), asset: asset.asset_name, network: network.code, status: 'active', created_at: services.database.now(),
  }
  return { row, addresses, tank, shown: presentWallet(row, network, { address, subAccount: caller.subAccountIndex }) }
}

const exists = (asset: Asset, id: string | undefined): ApiError => new ApiError(
  'WALLET_EXISTS', `asset: a wallet for ${asset.asset_name} exists already (${id})`, { field: 'asset', details: { wallet_id: id } })

/** @throws what `create_wallet` raises; ApiError `WALLET_EXISTS` */
async function make(services: Services, caller: Caller, asset: Asset, network: Network) {
  const { row, addresses, tank, shown } = await plan(services, caller, asset, network)
  const answer = await services.database.one<{ known: string | null }>('select create_wallet($1) known', [JSON.stringify({
    ...row, workspace_id: caller.workspaceId, sub_account_id: caller.subAccountId, addresses, tank, shown,
  })])
  if (typeof answer?.known === 'string') throw exists(asset, answer.known)
  services.database.tell({ type: 'wallet.created', workspace: caller.workspaceId, payload: JSON.stringify(shown) })
  return shown
}

/** The same where coins came in for it before: they are credited in the same transaction. */
async function makeAndCredit(services: Services, caller: Caller, asset: Asset, network: Network) {
  const wallet = await services.database.transaction(async (tx) => {
    const created = await tx.one<WalletRow>(
      `insert into wallets (workspace_id, sub_account_id, asset, network, created_at) values ($1, $2, $3, $4, $5) on conflict do nothing
       returning id, asset, status, created_at, network`,
      [caller.workspaceId, caller.subAccountId, asset.asset_name, network.code, tx.now()])
    if (!created) {
      const known = await tx.one<WalletRow>('select id from wallets where sub_account_id = $1 and asset = $2', [
        caller.subAccountId, asset.asset_name,
      ])
      throw exists(asset, known?.id)
    }
    const address = await ensureOmnibus(services, tx, network, caller)
    await listOmnibus(tx, created.id, network.code, address)
    const shown = presentWallet(created, network, { address, subAccount: caller.subAccountIndex })
    if (traitsOf(network).deposits === 'spendable') await ensureChange(services, tx, network, caller)
    await creditWaitingDeposits(services, tx, caller.subAccountId, created)
    await emit(tx, caller.workspaceId, caller.subAccountId, 'wallet.created', JSON.stringify(shown))
    return shown
  })
  await ensureGasTank(services, caller.workspaceId, network)
  return wallet
}
