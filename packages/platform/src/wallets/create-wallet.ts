import { traitsOf } from '@custody/chains'
import { z } from 'zod'
import { ensureChange, ensureOmnibus } from '../addresses/derive.ts'
import { listOmnibus } from '../addresses/omnibus.ts'
import { findAsset } from '../assets/find-asset.ts'
import { ApiError } from '../errors.ts'
import { emit } from '../ledger/post.ts'
import { ensureGasTank } from '../gas-tanks/ensure-tank.ts'
import { endpoint } from '../http/endpoint.ts'
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
    // Asked for before the transaction: the nodes may need seconds to make a key.
    await services.keys.get(caller.workspaceId, network.curve)
    await services.addresses.startScan(network)
    const wallet = await services.database.transaction(async (tx) => {
      const created = await tx.one<WalletRow>(
        `insert into wallets (workspace_id, sub_account_id, asset, network) values ($1, $2, $3, $4) on conflict do nothing
         returning id, asset, status, created_at, network`, [caller.workspaceId, caller.subAccountId, asset.asset_name, network.code])
      if (!created) {
        const existing = await tx.one<WalletRow>('select id from wallets where sub_account_id = $1 and asset = $2', [
          caller.subAccountId, asset.asset_name,
        ])
        throw new ApiError('WALLET_EXISTS', `asset: a wallet for ${asset.asset_name} exists already (${existing?.id})`, {
          field: 'asset', details: { wallet_id: existing?.id },
        })
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
    return { body: wallet }
  },
})

export const createWallet = definition('createWallet', '/dac/v1/create-wallet')
export const createWalletAlias = definition('createWalletAlias', '/dac/v1/wallet')
