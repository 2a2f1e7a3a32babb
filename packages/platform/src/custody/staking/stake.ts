import { formatAmount, type Asset, type Registry } from '@custody/chains'
import { stakeBody } from '@custody/request-auth/bodies'
import { ApiError } from '../../core/errors.ts'
import { endpoint, type Reply } from '../../core/http/endpoint.ts'
import { lockedBalance, post } from '../../core/ledger/post.ts'
import { quotePlatformFee, reservePlatformFee } from '../prepaid-fee/fees.ts'
import { checkedAddress, checkedAmount, stakingShape, type StakeRequest } from './body.ts'
import { callChain, lendableAfter, receiverRefusal, worthOf } from './chain.ts'
import { create, earlierStaking, once, type StakingContext } from './create.ts'
import { assertReceivable } from './receiver.ts'
import { feeOf, stepsOf } from './steps.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { Receipts } from '../../core/signing/receipts.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'
import type { Aml } from '../aml/aml.ts'
import { assertNotDenied } from '../approvals/assert-not-denied.ts'
import type { WorkspacePolicies } from '../approvals/workspace-policies.ts'
import type { Prices } from '../prices/prices.ts'

interface Services {
  settings: Pick<Settings, 'prepaidTiers' | 'prices'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  receipts: Receipts
  addresses: Addresses
  aml: Aml
  prices: Prices
  policies: WorkspacePolicies
}

/** Minimum amount that the chain accepts, in sun. */
const LEAST_SUN = 1_000_000n

/**
 * Stakes TRX of the wallet. If the resource is for another address, it is delegated to that
 * address.
 */
export const stake = endpoint({
  id: 'stake',
  tag: 'Staking',
  description:
    'Stakes TRX of the wallet for energy or bandwidth of its own address or of another address. Send a `sequence_id`, as for transfers.',
  errors: [
    'UNSUPPORTED_ASSET',
    'WALLET_MISSING',
    'WALLET_INACTIVE',
    'INVALID_ADDRESS',
    'INVALID_AMOUNT',
    'INSUFFICIENT_BALANCE',
    'ADDRESS_FROZEN',
    'SANCTIONED',
    'PREPAID_FEE_EXHAUSTED',
    'PRICE_UNAVAILABLE',
    'NETWORK_UNAVAILABLE',
    'SIGNERS_UNAVAILABLE',
    'POLICY_DENIED',
  ],
  example: {
    asset: 'TRX',
    address: 'TJCnKsPa7y5okkXvQAidZBzqx3QyQ6sxMW',
    resource: 'ENERGY',
    amount: 100,
    sequence_id: 'stake-3',
  },
  method: 'POST',
  path: '/dav/v1/stake',
  summary: 'Stake TRX for energy or bandwidth',
  access: 'write',
  audit: { not: 'the stake stores the request and its key' },
  body: stakeBody,
  response: stakingShape,
  earlier: earlierStaking('STAKE'),
  async handler({ caller, body, signed }, services: Services) {
    const address = checkedAddress(services, body.address)
    return once(services, caller, 'STAKE', body, (context) =>
      createStake(services, { caller, body, signed, address }, context),
    )
  },
})

/**
 * Checks the balance and the delegation, and creates the stake.
 * @throws ApiError if a check fails
 */
async function createStake(
  services: Services,
  request: StakeRequest,
  context: StakingContext,
): Promise<Reply> {
  const { caller, body, signed, address } = request
  const { asset, network, wallet, account } = context
  const amount = checkedAmount(body.amount, asset)
  if (amount < LEAST_SUN) {
    throw new ApiError(
      'INVALID_AMOUNT',
      `amount: must be at least ${formatAmount(LEAST_SUN, asset.decimals)} TRX, the minimum stake of the chain`,
      { field: 'amount' },
    )
  }
  const scope = { workspace: caller.workspaceId, wallet: wallet.id, asset: asset.asset_name }
  const row = await services.database.one<{ balance: string }>(
    `select balance::text from ledger_accounts
         where workspace_id = $3 and wallet_id = $1 and asset = $2 and kind = 'available'`,
    [wallet.id, asset.asset_name, caller.workspaceId],
  )
  if (BigInt(row?.balance ?? '0') < amount)
    throw insufficient(amount, BigInt(row?.balance ?? '0'), asset)
  const client = services.networks.stakes(network.code).client
  const own = address === account
  if (!own) await checkDelegation(services, request, context, amount)
  const requested = { workspace: caller.workspaceId, signed, network: network.code, address }
  await assertNotDenied(services, { ...requested, tag: null })
  const quote = quotePlatformFee(services, wallet.prepaid_tier, asset, amount)
  const { bandwidthSun } = await callChain(network, () =>
    services.networks.stakes(network.code).parameters(),
  )
  return create(services, {
    ...context,
    kind: 'STAKE',
    caller,
    signed,
    address,
    resource: body.resource,
    amount,
    sequenceId: body.sequence_id,
    fee: feeOf(stepsOf('STAKE', own), bandwidthSun),
    // Between freezing and delegating, the account itself appears to have the resource, but no
    // transaction may count on it.
    plan: own
      ? {}
      : {
          [`${body.resource.toLowerCase()}_counted`]: String(
            await callChain(network, () => worthOf(client, account, body.resource, amount)),
          ),
        },
    async reserve(tx, id) {
      const active = await tx.one(
        `select 1 from wallets where workspace_id = $2 and id = $1 and status = 'active'`,
        [wallet.id, caller.workspaceId],
      )
      if (!active) throw inactive()
      const available = await lockedBalance(tx, { ...scope, kind: 'available' })
      if (available < amount) throw insufficient(amount, available, asset)
      await post(tx, 'reserve', id, [
        { ...scope, kind: 'available', amount: -amount },
        { ...scope, kind: 'reserved', amount },
      ])
    },
    // Only stakes pay a platform fee, so unstaking and releasing are possible while the prepaid
    // fee account is empty.
    lastly: (tx, id) =>
      reservePlatformFee(tx, { transactionId: id, workspaceId: caller.workspaceId, quote }),
  })
}

/**
 * Checks that another address may receive the resource, and that the chain lends this much stake.
 * @throws ApiError `INVALID_ADDRESS`, `INVALID_AMOUNT`, `ADDRESS_FROZEN` or `SANCTIONED`
 */
async function checkDelegation(
  services: Services,
  { caller, body, address }: StakeRequest,
  { asset, network, account }: StakingContext,
  amount: bigint,
): Promise<void> {
  const { client } = services.networks.stakes(network.code)
  await assertReceivable(services, caller, network, address)
  const refusal = await callChain(network, () => receiverRefusal(client, address))
  if (refusal) throw new ApiError('INVALID_ADDRESS', `address: ${refusal}`, { field: 'address' })
  const lendable = await callChain(network, () =>
    lendableAfter(client, account, body.resource, amount),
  )
  if (lendable >= amount) return
  const [lends, lacks] = [lendable, amount - lendable].map((value) =>
    formatAmount(value, asset.decimals),
  )
  throw new ApiError(
    'INVALID_AMOUNT',
    `amount: the chain does not lend stake whose resource was used today, and a delegation itself consumes bandwidth; of this amount it would lend ${lends} TRX. Stake at least ${lacks} TRX of ${body.resource} for the wallet's own address first, or a smaller amount for this address`,
    { field: 'amount' },
  )
}

/** Returns the error of a stake from an inactive wallet. */
const inactive = () =>
  new ApiError(
    'WALLET_INACTIVE',
    'asset: the TRX wallet is inactive; nothing can be staked from it',
    {
      field: 'asset',
    },
  )

/** Returns the error of a stake that exceeds the wallet's balance. */
function insufficient(amount: bigint, available: bigint, asset: Asset): ApiError {
  const show = (value: bigint) =>
    `${formatAmount(value < 0n ? 0n : value, asset.decimals)} ${asset.asset_name}`
  return new ApiError(
    'INSUFFICIENT_BALANCE',
    `amount: ${show(amount)} is more than the wallet's spendable balance of ${show(available)}`,
    { field: 'amount' },
  )
}
