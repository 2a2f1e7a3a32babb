import {
  parseAmount,
  validateAddress,
  type Asset,
  type Network,
  type Registry,
} from '@custody/chains'
import { stringifyJson } from '@custody/request-auth'
import { z } from 'zod'
import { handOutAddress, readyForAddresses } from '../../custody/addresses/deposit-address.ts'
import { findOpenAsset } from '../../custody/assets/find-asset.ts'
import { findWallet } from '../../custody/assets/find-wallet.ts'
import { readAmount } from '../../custody/assets/read-amount.ts'
import { UNREADABLE_PAYLOAD } from '../../core/engine/payload.ts'
import { hashRequest } from '../../core/http/idempotency/payload.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { WorkspaceKeys } from '../../core/signing/keys.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'
import type { Aml } from '../../custody/aml/aml.ts'
import type { Venues } from '../exchanges/venues.ts'
import type { ExchangeTransfers } from './loop.ts'
import type { DevnetControl } from '../../core/devnet.ts'
import { ApiError } from '../../core/errors.ts'
import { keyIn, venueOf, venueProblem, type AccountRow } from '../exchanges/account.ts'
import { findCounted } from '../exchanges/identity.ts'
import { VenueError } from '../exchanges/venue.ts'
import { endpoint, type Caller, type Reply } from '../../core/http/endpoint.ts'
import { decideOnce, type Admit } from '../../core/http/idempotent-decision.ts'
import { answeredTo, sequenceIdIn } from '../../core/http/replay.ts'
import { assetName, positive, text } from '../../core/http/schemas.ts'
import {
  coinAt,
  exchangeTransferShape,
  presentExchangeTransfer,
  tellTransfer,
  toUnits,
  type ExchangeTransferRow,
} from './transfer.ts'

interface Services {
  settings: Pick<Settings, 'allowDeprecated'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  keys: WorkspaceKeys
  addresses: Addresses
  aml: Aml
  exchanges: Venues
  exchangeTransfers: ExchangeTransfers
  devnet: DevnetControl | null
}

const withdrawalBody = z.strictObject({
  exchange_account: text(100).meta({
    description: 'Id of an exchange account whose key may withdraw',
  }),
  asset: assetName,
  amount: positive,
  address: text(256)
    .optional()
    .meta({ description: 'One of the wallet’s own addresses; by default its first' }),
  address_tag: text(200).optional(),
  sequence_id: text(200).optional().meta({
    description: 'Idempotency key, unique within the sub-account’s withdrawals from exchanges',
  }),
})
type WithdrawalBody = z.output<typeof withdrawalBody>

/**
 * Withdraws coins from an exchange to a wallet of the sub-account, the only permitted destination;
 * at most once per `sequence_id`.
 */
export const createExchangeWithdrawal = endpoint({
  id: 'createExchangeWithdrawal',
  tag: 'Exchange transfers',
  description:
    'Requests a withdrawal from the exchange to an address of your wallet. Send a `sequence_id`: a repeated request returns the same transfer.',
  errors: [
    'NOT_FOUND',
    'UNSUPPORTED_ASSET',
    'ASSET_CLOSED',
    'WALLET_MISSING',
    'WALLET_INACTIVE',
    'INVALID_ADDRESS',
    'INVALID_AMOUNT',
    'INSUFFICIENT_BALANCE',
    'SIGNERS_UNAVAILABLE',
    'NETWORK_UNAVAILABLE',
    'EXCHANGE_ACCOUNT_LINKED',
    'EXCHANGE_KEY_REFUSED',
    'EXCHANGE_UNAVAILABLE',
    'EXCHANGE_UNSUPPORTED',
  ],
  method: 'POST',
  path: '/dac/v1/exchange-withdrawals',
  summary: 'Withdraw from an exchange to your own wallet',
  access: 'write',
  audit: {
    not: 'the exchange transfer stores its key, and an entry for each would serialize them',
  },
  body: withdrawalBody,
  response: exchangeTransferShape,
  earlier: ({ caller, fields, body }, services: Pick<Services, 'database'>) =>
    answeredTo(
      services.database,
      'exchange_transfers',
      caller,
      sequenceIdIn(fields['sequence_id']),
      body ? hashRequest(body) : UNREADABLE_PAYLOAD,
    ),
  async handler({ caller, body, askedAt }, services: Services) {
    const payloadHash = hashRequest(body)
    return decideOnce(
      services.database,
      {
        scope: 'exchange_transfers',
        subAccountId: caller.subAccountId,
        name: body.sequence_id,
        payloadHash,
        askedAt,
      },
      (database) =>
        answeredTo(database, 'exchange_transfers', caller, body.sequence_id, payloadHash),
      (admit) => create(services, caller, body, payloadHash, admit),
    )
  },
})

/**
 * Checks a withdrawal and creates it; it is requested at the exchange after the commit.
 * @throws ApiError
 */
async function create(
  services: Services,
  caller: Caller,
  body: WithdrawalBody,
  payloadHash: string,
  admit: Admit,
): Promise<Reply> {
  const { asset, network } = findOpenAsset(services, body.asset)
  const account = await findCounted(
    services.database,
    caller,
    body.exchange_account,
    'exchange_account',
  )
  const { exchange } = account
  checkAccount(account)
  const amount = checkedAmount(body, asset)
  const place = await ownAddress(services, caller, body, asset, network)
  const key = await keyOf(services, account, asset, place).catch((error: unknown) => {
    throw venueProblem(error, 'exchange_account')
  })
  const id = services.environment.uuid()
  const response = await services.database.transaction(async (tx) => {
    await admit(tx)
    // An account that is being unlinked, or became a duplicate, allows no withdrawals.
    await findCounted(tx, caller, account.id, 'exchange_account', true)
    const row = (await tx.one<ExchangeTransferRow>(
      `insert into exchange_transfers (id, workspace_id, sub_account_id, account_id, exchange,
         direction, asset, network, coin, amount,
         address, address_tag, venue_key, client_id, state, sequence_id, payload_hash, response,
           next_run_at, created_at, updated_at)
       values ($1, $2, $3, $4, $5, 'from_exchange', $6, $7, $8, $9, $10, $11, $12, $13, 'NEW', $14,
         $15, '', $16, $16, $16) returning *`,
      [
        id,
        caller.workspaceId,
        caller.subAccountId,
        account.id,
        exchange,
        asset.asset_name,
        network.code,
        coinAt(asset),
        toUnits(amount, asset).toString(),
        place.address,
        place.tag,
        key,
        id.replaceAll('-', ''),
        body.sequence_id ?? null,
        payloadHash,
        tx.now(),
      ],
    )) as ExchangeTransferRow
    const answer = stringifyJson(presentExchangeTransfer(row))
    await tx.query(
      'update exchange_transfers set response = $2 where workspace_id = $3 and id = $1',
      [id, answer, caller.workspaceId],
    )
    await tellTransfer(tx, row, 'exchange_transfer.created')
    return answer
  })
  services.environment.checkpoint('exchange-withdrawal.created')
  services.exchangeTransfers.due.ring()
  return { text: response }
}

/**
 * Checks that the key of an exchange account may withdraw and is accepted.
 * @throws ApiError `INVALID_REQUEST` or `EXCHANGE_KEY_REFUSED`
 */
function checkAccount(account: AccountRow): void {
  if (!account.allow_withdrawal) {
    throw new ApiError(
      'INVALID_REQUEST',
      'exchange_account: was linked without allow_withdrawal; PATCH it with a key that may withdraw and allow_withdrawal: true',
      { field: 'exchange_account' },
    )
  }
  if (account.status === 'failing') {
    throw new ApiError(
      'EXCHANGE_KEY_REFUSED',
      `exchange_account: ${account.exchange} rejects its key (${account.reason}); PATCH the account with a valid key`,
      { field: 'exchange_account' },
    )
  }
}

/**
 * Returns the amount in the smallest unit of the asset.
 * @throws ApiError `INVALID_AMOUNT` if it is below the minimum of the asset
 */
function checkedAmount(body: WithdrawalBody, asset: Asset): bigint {
  const amount = readAmount(body.amount, asset, 'amount')
  if (amount < parseAmount(asset.min_withdrawal, asset.decimals)) {
    const reason =
      amount === 0n
        ? 'must be greater than zero'
        : `must be at least ${asset.min_withdrawal} ${asset.asset_name}`
    throw new ApiError('INVALID_AMOUNT', `amount: ${reason}`, { field: 'amount' })
  }
  return amount
}

/**
 * Returns the exchange's name of a registered address, if it requires one.
 * @throws VenueError
 */
async function keyOf(
  services: Services,
  account: AccountRow,
  asset: Asset,
  { address, tag }: { address: string; tag: string | null },
): Promise<string | null> {
  const venue = await venueOf(services, account)
  await venue.assertWithdrawable()
  const ask = () => venue.withdrawalKey(coinAt(asset), asset.network, address, tag)
  if (services.devnet === null) return ask()
  return ask().catch(async (error: unknown) => {
    if (!(error instanceof VenueError) || error.kind !== 'missing') throw error
    // Registers the address at the local exchange. At a real exchange, the account's owner does
    // this on its web site.
    await services.devnet?.({
      command: 'venue',
      action: 'address',
      api_key: keyIn(services, account),
      asset: asset.asset_name,
      address,
      tag,
    })
    return ask()
  })
}

/**
 * Returns the named address of the wallet, or its first address, which is created if there is none.
 */
async function ownAddress(
  services: Services,
  caller: Caller,
  body: WithdrawalBody,
  asset: Asset,
  network: Network,
): Promise<{ address: string; tag: string | null }> {
  const wallet = await findWallet(services.database, caller, asset.asset_name)
  if (wallet.status !== 'active') {
    throw new ApiError('WALLET_INACTIVE', `asset: the ${asset.asset_name} wallet is inactive`, {
      field: 'asset',
    })
  }
  const wanted =
    body.address === undefined
      ? null
      : validateAddress(services.registry, asset.asset_name, body.address, body.address_tag ?? null)
  if (wanted === null && body.address_tag !== undefined) {
    throw new ApiError(
      'INVALID_REQUEST',
      'address_tag: must be omitted, because address is missing',
      {
        field: 'address_tag',
      },
    )
  }
  const existing =
    wanted?.valid === false
      ? undefined
      : await services.database.one<{ address: string; address_tag: string | null }>(
          `select address, address_tag from wallet_addresses where workspace_id = $4
            and wallet_id = $1
       and ($2::text is null or address = $2 and address_tag is not distinct from $3)
     order by created_at, id limit 1`,
          [wallet.id, wanted?.address ?? null, wanted?.address_tag ?? null, caller.workspaceId],
        )
  if (existing) return { address: existing.address, tag: existing.address_tag }
  if (wanted !== null) {
    throw new ApiError(
      'INVALID_ADDRESS',
      `address: is not an address of the ${asset.asset_name} wallet; a withdrawal from an exchange can only be sent to one of its addresses`,
      { field: 'address' },
    )
  }
  await readyForAddresses(services, caller.workspaceId, network)
  const made = await services.database.transaction((tx) =>
    handOutAddress(services, tx, caller, { asset, network }, { label: null, fresh: false }),
  )
  return { address: made.address, tag: made.address_tag }
}
