import { pathOf, type Asset, type Network, type Registry } from '@custody/chains'
import {
  handOutAddress,
  likelyAddress,
  type SubAccount,
} from '../../custody/addresses/deposit-address.ts'
import type { Queryable, Database } from '../../core/database/pool.ts'
import { ApiError } from '../../core/errors.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { WorkspaceKeys } from '../../core/signing/keys.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'
import type { DatabaseHold } from '../../core/engine/database-hold.ts'
import { refusalSoon } from '../../custody/transactions/payment.ts'
import { lockInvoice, noInvoice, readInvoice, type Invoice } from './invoice.ts'
import { evaluateInvoice } from './evaluate-invoice.ts'
import { placeOf, type Checkout } from './present.ts'

interface Services {
  settings: Pick<Settings, 'allowDeprecated'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  keys: WorkspaceKeys
  addresses: Addresses
  hold: DatabaseHold
  checkout: Checkout
}

/**
 * Maximum number of assets that a payer may choose in turn; each requires an address that is
 * monitored permanently.
 */
export const CHOICES_MAX = 10

/** A deposit address with its wallet; it is recorded as issued for an invoice. */
interface PaymentAddress {
  wallet_id: string
  address: string
  address_tag: string | null
  path: number[]
}

/**
 * Returns an address or a tag that permanently belongs to this invoice alone.
 * @throws ApiError `WALLET_INACTIVE`
 */
export async function placeFor(
  services: Services,
  tx: Queryable,
  owner: SubAccount,
  { asset, network }: { asset: Asset; network: Network },
  invoice: string,
): Promise<PaymentAddress> {
  const made = await handOutAddress(
    services,
    tx,
    owner,
    { asset, network },
    { label: invoice, fresh: true },
  )
  const { wallet_id, address, address_tag } = made
  return {
    wallet_id,
    address,
    address_tag,
    path: [...pathOf(network, owner.subAccountIndex, made.path_index)],
  }
}

/**
 * Makes the checks that need external calls, before the database transaction of {@link placeFor}.
 * Also checks whether the chain accepts a payment of this amount, because a very small one would
 * not create an account.
 * @param field name of the field to which errors refer
 * @throws ApiError `INVALID_AMOUNT`, 503
 */
export async function readyFor(
  services: Services,
  owner: SubAccount,
  { asset, network }: { asset: Asset; network: Network },
  amount: bigint,
  field: string,
): Promise<void> {
  const payment = { to: await likelyAddress(services, owner, network), tag: null, amount, asset }
  const chain = services.networks.get(network.code)
  const refusal = chain.unfit(payment) ?? (await refusalSoon(services, chain, payment))
  if (refusal?.field === 'amount')
    throw new ApiError('INVALID_AMOUNT', `${field}: ${refusal.reason}`, { field })
}

/**
 * Chooses one of the offered assets for the payer. The asset is assigned its own address once;
 * addresses that were shown earlier remain assigned to this invoice. The same choice again changes
 * nothing.
 * @throws ApiError `NOT_FOUND`, `INVOICE_CLOSED`, `INVALID_REQUEST`, `INVALID_AMOUNT`,
 *   `WALLET_INACTIVE`, 503
 */
export async function choose(services: Services, id: string, asset: string): Promise<Invoice> {
  const seen = await readInvoice(services, services.database, id)
  if (!seen) throw noInvoice(id)
  const wanted = offerIn(seen, asset)
  const match = placeOf(services, asset)
  const owner = await ownerOf(services, seen)
  if (wanted.address === null) {
    assertOpen(services, seen)
    services.hold.assertOpen()
    await readyFor(services, owner, match, BigInt(wanted.amount), 'asset')
  }
  return services.database.transaction(async (tx) => {
    const locked = (await lockInvoice(services, tx, seen.row)) as Invoice
    const offer = offerIn(locked, asset)
    if (locked.row.selected === asset && offer.address !== null) return locked
    assertOpen(services, locked)
    if (offer.address !== null) return evaluateInvoice(services, tx, locked, { selected: asset })
    if (locked.offers.filter(({ address }) => address !== null).length >= CHOICES_MAX) {
      throw new ApiError(
        'INVOICE_CLOSED',
        `asset: ${CHOICES_MAX} assets were already selected for this invoice, which is the maximum`,
        {
          field: 'asset',
        },
      )
    }
    const place = await placeFor(services, tx, owner, match, id)
    await tx.query(
      `update invoice_offers set wallet_id = $3, address = $4, address_tag = $5, path = $6,
        chosen_at = $7
       where workspace_id = $8 and invoice_id = $1 and asset = $2`,
      [
        id,
        asset,
        place.wallet_id,
        place.address,
        place.address_tag,
        place.path,
        tx.now(),
        locked.row.workspace_id,
      ],
    )
    const offers = locked.offers.map((each) =>
      each.asset === asset ? { ...each, ...place, chosen_at: tx.now() } : each,
    )
    return evaluateInvoice(services, tx, { ...locked, offers }, { selected: asset })
  })
}

async function ownerOf({ database }: Services, { row }: Invoice): Promise<SubAccount> {
  const match = await database.one<{ path_index: number }>(
    'select path_index from sub_accounts where id = $1',
    [row.sub_account_id],
  )
  return {
    workspaceId: row.workspace_id,
    subAccountId: row.sub_account_id,
    subAccountIndex: match?.path_index as number,
  }
}

function offerIn({ offers }: Invoice, asset: string) {
  const offer = offers.find((each) => each.asset === asset)
  if (offer) return offer
  const existing = offers.map((each) => each.asset).join(', ')
  throw new ApiError(
    'INVALID_REQUEST',
    `asset: this invoice cannot be paid in ${asset.slice(0, 64)}; select one of ${existing}`,
    {
      field: 'asset',
    },
  )
}

function assertOpen({ environment }: Services, { row }: Invoice): void {
  if (row.status === 'Pending' && environment.now() < row.expires_at.getTime()) return
  const state = row.status === 'Pending' ? 'Expired' : row.status
  throw new ApiError('INVOICE_CLOSED', `asset: the invoice is ${state} and can no longer be paid`, {
    field: 'asset',
    details: { inv_status: state },
  })
}
