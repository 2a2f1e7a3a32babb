import { validateAddress, type Asset, type Network, type Registry } from '@custody/chains'
import { stringifyJson } from '@custody/request-auth'
import type { TransferBody } from '@custody/request-auth/bodies'
import { ApiError } from '../../core/errors.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Aml } from '../../custody/aml/aml.ts'
import type { Venues } from '../exchanges/venues.ts'
import { venueOf, venueProblem, type AccountRow } from '../exchanges/account.ts'
import { findCounted } from '../exchanges/identity.ts'
import type { Caller } from '../../core/http/endpoint.ts'
import type { ExchangeDestinations } from '../../custody/transactions/exchange-destinations.ts'
import { coinAt, presentExchangeTransfer, toUnits, type ExchangeTransferRow } from './transfer.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  aml: Aml
  exchanges: Venues
}

/** An address in the notation of its network family. */
interface AddressAndTag {
  address: string
  tag: string | null
}

/** The exchange's deposit address for an asset, and the address of the last transfer. */
export interface ExchangeAddress {
  now: AddressAndTag
  before: AddressAndTag | null
  isNew: boolean
}

const isSame = (one: AddressAndTag, other: AddressAndTag): boolean =>
  one.address === other.address && one.tag === other.tag

/**
 * Queries the deposit address of an asset at an exchange.
 * @param field name of the request field that contains the account
 * @throws ApiError `EXCHANGE_UNAVAILABLE`, `EXCHANGE_KEY_REFUSED`, `EXCHANGE_UNSUPPORTED`;
 *   `EXCHANGE_UNAVAILABLE` too if the returned address is not valid on the network
 */
export async function askForAddress(
  services: Services,
  account: AccountRow,
  asset: Asset,
  network: Network,
  field: string,
): Promise<ExchangeAddress> {
  const { address, tag } = await venueOf(services, account)
    .then((venue) => venue.depositAddress(coinAt(asset), network.code))
    .catch((error: unknown) => {
      throw venueProblem(error, field)
    })
  const valid = validateAddress(services.registry, asset.asset_name, address, tag)
  if (!valid.valid) {
    throw new ApiError(
      'EXCHANGE_UNAVAILABLE',
      `${field}: the deposit address that ${account.exchange} returned for ${asset.asset_name} is not an address of ${network.code}; nothing was sent`,
      { field },
    )
  }
  const now = { address: valid.address, tag: valid.address_tag }
  const existing = await services.database.one<{ address: string; address_tag: string | null }>(
    'select address, address_tag from exchange_addresses where account_id = $1 and asset = $2',
    [account.id, asset.asset_name],
  )
  const before = existing ? { address: existing.address, tag: existing.address_tag } : null
  return { now, before, isNew: before !== null && !isSame(before, now) }
}

const show = ({ address, tag }: AddressAndTag): string =>
  tag === null ? address : `${address} with tag ${tag}`

/**
 * Compares a transfer to an exchange with the exchange's current deposit address. The caller has
 * signed the address; if it has changed since the last transfer, the caller must confirm it with a
 * second request.
 * @returns the data to be stored with the transfer, in its transaction; null for a transfer to
 *   another destination
 * @throws ApiError `INVALID_REQUEST`, `INVALID_ADDRESS`, `EXCHANGE_ADDRESS_CHANGED` (409), and the
 *   errors of {@link askForAddress}
 */
export async function checkExchangeDestination(
  services: Services,
  caller: Caller,
  body: TransferBody,
  { asset, network, amount }: { asset: Asset; network: Network; amount: bigint },
): Promise<{ row: ExchangeTransferRow; shown: string } | null> {
  const refused = (field: string, reason: string) =>
    new ApiError('INVALID_REQUEST', `${field}: ${reason}`, { field })
  if (body.destination_type !== 'EXCHANGE') {
    const extra = (['destination_id', 'confirm_address'] as const).find(
      (field) => body[field] !== undefined,
    )
    if (extra) throw refused(extra, 'is allowed only with destination_type EXCHANGE')
    return null
  }
  if (body.destination_id === undefined)
    throw refused(
      'destination_id',
      'must be the id of an exchange account, because destination_type is EXCHANGE',
    )
  const account = await findCounted(
    services.database,
    caller,
    body.destination_id,
    'destination_id',
  )
  const { now, before, isNew } = await askForAddress(
    services,
    account,
    asset,
    network,
    'destination_id',
  )
  checkSignedAddress(services, body, asset, account, now)
  if (isNew && body.confirm_address !== now.address) {
    throw new ApiError(
      'EXCHANGE_ADDRESS_CHANGED',
      `confirm_address: the deposit address at ${account.exchange} for ${asset.asset_name} was ${show(before as AddressAndTag)} and is now ${show(now)}; check it at the exchange, and repeat the new address here`,
      {
        field: 'confirm_address',
        details: { address: now.address, address_tag: now.tag, previous: before },
      },
    )
  }
  const row = transferRow(services, caller, account, now, { asset, network, amount })
  return { row, shown: stringifyJson(presentExchangeTransfer(row)) }
}

/**
 * Checks that the address and the tag that the caller signed are those of the exchange account.
 * @throws ApiError `INVALID_ADDRESS`
 */
function checkSignedAddress(
  services: Services,
  body: TransferBody,
  asset: Asset,
  account: AccountRow,
  now: AddressAndTag,
): void {
  const signed = validateAddress(
    services.registry,
    asset.asset_name,
    body.destination_address,
    body.address_tag ?? null,
  )
  if (!signed.valid || !isSame({ address: signed.address, tag: signed.address_tag }, now)) {
    const field =
      signed.valid && signed.address === now.address ? 'address_tag' : 'destination_address'
    throw new ApiError(
      'INVALID_ADDRESS',
      `${field}: the deposit address of this account at ${account.exchange} for ${asset.asset_name} is ${show(now)}; sign that address, or check at the exchange why it differs`,
      { field, details: { address: now.address, address_tag: now.tag } },
    )
  }
}

/** Returns the row of a new transfer to an exchange account. */
function transferRow(
  services: Services,
  caller: Caller,
  account: AccountRow,
  destination: AddressAndTag,
  { asset, network, amount }: { asset: Asset; network: Network; amount: bigint },
): ExchangeTransferRow {
  const at = new Date(services.environment.now())
  return {
    id: services.environment.uuid(),
    workspace_id: caller.workspaceId,
    sub_account_id: caller.subAccountId,
    account_id: account.id,
    exchange: account.exchange,
    direction: 'to_exchange',
    asset: asset.asset_name,
    network: network.code,
    coin: coinAt(asset),
    amount: toUnits(amount, asset).toString(),
    credited: null,
    fee: null,
    address: destination.address,
    address_tag: destination.tag,
    venue_key: null,
    client_id: null,
    venue_id: null,
    transaction_id: null,
    hash: null,
    state: 'MOVING',
    status: 'pending',
    reason: null,
    last_error: null,
    sent_at: null,
    overdue_at: null,
    sequence_id: null,
    version: 1,
    attempts: 0,
    lease_token: null,
    created_at: at,
    updated_at: at,
  }
}

/**
 * Returns the check of transfers to exchange accounts, which `custody` needs.
 * @param services called at each check
 */
export const exchangeDestinationsOf = (services: () => Services): ExchangeDestinations => ({
  check: (caller, body, payment) => checkExchangeDestination(services(), caller, body, payment),
})
