import {
  familyOf,
  formatAmount,
  parseAmount,
  validateAddress,
  type Asset,
  type Network,
  type Registry,
} from '@custody/chains'
import type { TransferBody } from '@custody/request-auth/bodies'
import { ApiError } from '../../core/errors.ts'
import type { Caller } from '../../core/http/endpoint.ts'
import { readAmount } from '../assets/read-amount.ts'
import { accountOf } from '../aml/address-key.ts'
import { assured, type Chain, type Payment, type Refusal } from '../../core/engine/chain.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import { withTimeout } from '../../core/engine/with-timeout.ts'
import { checkedFeeRate } from '../../core/engine/check-fee-rate.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
}

/**
 * Converts a refusal to the API's error.
 * @param amountField name of the amount field in the caller's request
 */
export const refusalError = ({ field, reason }: Refusal, amountField = 'amount'): ApiError => {
  const named = field === 'amount' ? amountField : field
  return new ApiError(
    field === 'amount' ? 'INVALID_AMOUNT' : 'INVALID_ADDRESS',
    `${named}: ${reason}`,
    { field: named },
  )
}

/**
 * Checks a transfer without querying other services: its amount, destination, tag and fee rate.
 * @param amountField name of the amount field in the caller's request
 * @throws ApiError `INVALID_AMOUNT`, `INVALID_ADDRESS` or `INVALID_REQUEST`
 */
export function checkTransfer(
  services: Pick<Services, 'registry' | 'networks'>,
  body: TransferBody,
  asset: Asset,
  network: Network,
  amountField = 'amount',
): { amount: bigint; destination: string; addressTag: string | null } {
  const amount = readAmount(body.amount, asset, amountField)
  const refused = (reason: string) => refusalError({ field: 'amount', reason }, amountField)
  if (amount === 0n) throw refused('must be greater than zero')
  if (amount < parseAmount(asset.min_withdrawal, asset.decimals)) {
    throw refused(`must be at least ${asset.min_withdrawal} ${asset.asset_name}`)
  }
  const validation = validateAddress(
    services.registry,
    asset.asset_name,
    body.destination_address,
    body.address_tag ?? null,
  )
  if (!validation.valid)
    throw refusalError({
      field: validation.field ?? 'destination_address',
      reason: validation.reason,
    })
  refuseTagAsMemo(network, body, validation)
  const unfit = services.networks
    .get(network.code)
    .unfit({ to: validation.address, tag: validation.address_tag, amount, asset })
  if (unfit) throw refusalError(unfit, amountField)
  if (body.fee_rate !== undefined) {
    if (body.fee_level !== undefined) {
      throw new ApiError(
        'INVALID_REQUEST',
        'fee_level: send either fee_rate or fee_level, not both',
        { field: 'fee_level' },
      )
    }
    checkedFeeRate(body.fee_rate, network, services.registry)
  }
  return { amount, destination: validation.address, addressTag: validation.address_tag }
}

/**
 * Rejects a memo that looks like a tag if the payment has no tag: a memo is never sent to the
 * chain, so an exchange could not tell whose payment it is.
 * @throws ApiError `INVALID_REQUEST`
 */
function refuseTagAsMemo(
  network: Network,
  { memo, destination_address }: TransferBody,
  { address_tag }: { address_tag: string | null },
) {
  const { tags } = familyOf(network)
  if (
    memo === undefined ||
    address_tag !== null ||
    !tags?.isLike(memo.trim()) ||
    tags.isWithin(destination_address)
  )
    return
  throw new ApiError(
    'INVALID_REQUEST',
    'memo: is your own note and never reaches the chain, but this one looks like a destination tag or memo of the network: send it as address_tag; if it is a note, begin it with a word, such as "invoice 2041"',
    { field: 'memo' },
  )
}

/**
 * Whether a payment's destination is the sending account itself, on account-based chains. Such a
 * transfer would move nothing.
 */
export function isOwnAccount(
  { network, coins }: Chain,
  destination: string,
  source: string,
): boolean {
  return coins === null && accountOf(network, destination) === source
}

/**
 * Returns the chain's reason for refusing a payment, or null. Also returns null if the chain is
 * unreachable or slow, or if no endpoint is current: the worker checks again before anything is
 * signed.
 */
export async function refusalSoon(
  { environment }: Pick<Services, 'environment'>,
  chain: Chain,
  payment: Payment,
): Promise<Refusal | null> {
  const refusal = assured(
    chain,
    () => chain.refusal(payment),
    (answer) => answer !== null,
    // The caller waits, and nothing ends by this answer: fewer rounds are sufficient than for a failure.
    3,
  )
  return withTimeout(environment, refusal, null)
}

/** The network fee of a transfer of `asset` from the account `source`, in the smallest unit. */
interface FeePayment {
  owner: Pick<Caller, 'workspaceId' | 'subAccountId'>
  asset: Asset
  source: string
  fee: bigint
}

/**
 * Rejects a token transfer early if the sub-account's native-coin wallet must pay its fee and does
 * not hold enough. The worker reserves the fee later.
 * @throws ApiError `INSUFFICIENT_BALANCE`
 */
export async function checkFeeWallet(
  services: Pick<Services, 'database' | 'registry'>,
  chain: Chain,
  { owner, asset, source, fee }: FeePayment,
): Promise<void> {
  const needed = chain.feeOfOtherWallet(asset, fee)
  if (needed === 0n) return
  const native = services.registry.asset(chain.network.native_asset) as Asset
  const row = await services.database.one<{ balance: string }>(
    `select a.balance::text from wallets w
       join ledger_accounts a on a.workspace_id = w.workspace_id and a.wallet_id = w.id
         and a.asset = w.asset and a.kind = 'available'
     where w.workspace_id = $3 and w.sub_account_id = $1 and w.asset = $2`,
    [owner.subAccountId, native.asset_name, owner.workspaceId],
  )
  const chainReserve = await chain.reserveOf(source, native)
  const available = BigInt(row?.balance ?? '0') - chainReserve
  if (available >= needed) return
  const show = (value: bigint) =>
    `${formatAmount(value < 0n ? 0n : value, native.decimals)} ${native.asset_name}`
  const wallet = `the sub-account's ${native.asset_name} wallet, which has ${show(available)} in addition to the ${show(chainReserve)} that must stay on the account`
  throw new ApiError(
    'INSUFFICIENT_BALANCE',
    `asset: the network fee of up to ${show(needed)} is paid from ${wallet}`,
    { field: 'asset' },
  )
}
