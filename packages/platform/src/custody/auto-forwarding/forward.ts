import { formatAmount, type Asset, type Network, type Registry } from '@custody/chains'
import { claimedNonceAndSubject, stringifyJson } from '@custody/request-auth'
import { asRequestError } from '../assets/coin-refusal.ts'
import { frozenOf } from '../assets/frozen-coins.ts'
import { findAsset } from '../assets/find-asset.ts'
import type { Queryable, Database } from '../../core/database/pool.ts'
import { SQL_ERRORS, sqlErrorOf } from '../../core/database/sql-errors.ts'
import { ApiError } from '../../core/errors.ts'
import type { Caller } from '../../core/http/endpoint.ts'
import { quotePlatformFee } from '../prepaid-fee/fees.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import type { Logger } from 'pino'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'
import type { Prices } from '../prices/prices.ts'
import { checkFeeWallet, checkTransfer, refusalSoon } from '../transactions/payment.ts'
import { presentTransaction } from '../../core/engine/present.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { findWallet } from '../assets/find-wallet.ts'
import { waitMs } from '../approvals/judge-again.ts'
import { judgeRule } from '../approvals/judge-rule.ts'
import type { WorkspacePolicies } from '../approvals/workspace-policies.ts'
import { capOf } from './cap.ts'
import { requireApprovals } from './rule-approvals.ts'
import type { RuleRow } from './rule.ts'

interface Services {
  settings: Pick<Settings, 'prepaidTiers' | 'prices'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  addresses: Addresses
  prices: Prices
  signers: SignerNodes
  policies: WorkspacePolicies
  log: Pick<Logger, 'info' | 'warn'>
}

const SWEEP_WAIT_MS = 2000
const HELD_WAIT_MS = 60_000
const REFUSED_WAIT_MS = 60_000
const REVOKED_WAIT_MS = 86_400_000
/**
 * Longest time in milliseconds until a rule is judged again for which a window is full. No event wakes
 * a rule.
 */
const FULL_WAIT_MS_MAX = 60_000
const INACTIVE = 'the wallet is inactive'

/**
 * Thrown when a rule makes no forward now. `waitMs`: when it is checked again; null: when more
 * funds arrive.
 */
class Later extends Error {
  readonly waitMs: number | null
  constructor(reason: string, waitMs: number | null) {
    super(reason)
    this.name = 'Later'
    this.waitMs = waitMs
  }
}

/**
 * Creates one transfer of the amount that waits for a rule: as much as the cap and the wallet
 * allow, and not less than the rule's minimum. The transfer and the reduction of the waiting amount
 * are one commit, so that nothing is forwarded twice.
 */
export async function forwardRule(services: Services, rule: RuleRow): Promise<void> {
  try {
    await forward(services, rule)
  } catch (error) {
    const { code } = sqlErrorOf(error)
    const later =
      error instanceof Later
        ? error
        : error instanceof ApiError
          ? new Later(error.message, REFUSED_WAIT_MS)
          : code === SQL_ERRORS.prepaidShort
            ? new Later(
                'the balance of the prepaid fee account is below the platform fee',
                REFUSED_WAIT_MS,
              )
            : code === SQL_ERRORS.walletInactive
              ? new Later(INACTIVE, REFUSED_WAIT_MS)
              : code === SQL_ERRORS.walletShort
                ? new Later('the balance of the wallet is too low', SWEEP_WAIT_MS)
                : null
    if (!later) throw error
    // The condition on `waiting` leaves the rule unchanged if more funds have arrived since; it is
    // then checked again immediately.
    await services.database.query(
      `update forward_rules set next_run_at = $5::timestamptz + $2 * interval '1 millisecond',
        last_error = $3
       where workspace_id = $6 and id = $1 and waiting = $4`,
      [
        rule.id,
        later.waitMs,
        later.message.slice(0, 500) || null,
        rule.waiting,
        services.database.now(),
        rule.workspace_id,
      ],
    )
  }
}

/** A rule with its owner and its asset. */
interface ForwardContext {
  rule: RuleRow
  caller: Caller
  asset: Asset
  network: Network
}

/**
 * Amounts of a forward, in the smallest unit. `gross`: reduction of the waiting amount; `net`:
 * amount of the transfer; `feeRoom`: part of the cap for the network fee.
 */
interface ForwardAmounts {
  gross: bigint
  net: bigint
  fee: bigint
  reserve: bigint
  feeRoom: bigint
  chainReserve: bigint
  platform: ReturnType<typeof quotePlatformFee>
}

/**
 * Checks a rule and creates its transfer.
 * @throws Later or ApiError if the rule makes no forward now
 */
async function forward(services: Services, rule: RuleRow): Promise<void> {
  const { asset, network } = findAsset(services, rule.asset)
  const [min, waiting] = [BigInt(rule.min_amount), BigInt(rule.waiting)]
  const show = showAmount(asset)
  if (waiting < min)
    throw new Later(
      waiting === 0n ? '' : `${show(waiting)} are waiting; the smallest forward is ${show(min)}`,
      null,
    )
  const caller = await ownerOf(services, rule)
  const wallet = await checkRule(services, rule, caller, asset)
  const context = { rule, caller, asset, network }
  const cap = await capOf(services, services.database, rule)
  const feeRoom = await feeRoomOf(services, context, min)
  const allowed = cap.left > feeRoom ? cap.left - feeRoom : 0n
  if (allowed < min) throw new Later(`the daily cap allows ${show(allowed)} more`, cap.waitMs)

  const chain = services.networks.get(network.code)
  const source = await services.addresses.omnibus(network, caller)
  const chainReserve = await chain.reserveOf(source, asset)
  const gross = await grossOf(services, context, allowed, chainReserve)
  const { net, fee, reserve } = await costs(services, context, gross)
  if (net <= 0n)
    throw new Later(
      `the network fee of ${show(reserve)} is not lower than the amount that would be forwarded`,
      REFUSED_WAIT_MS,
    )
  await checkPayment(services, context, net)
  await checkFeeWallet(services, chain, { owner: caller, asset, source, fee })
  if (!(await isAllowed(services, rule, net))) return

  const platform = quotePlatformFee(services, wallet.prepaid_tier, asset, net)
  const amounts = { gross, net, fee, reserve, feeRoom, chainReserve, platform }
  const row = forwardRow(services, context, source, amounts)
  await services.database.transaction((tx) => writeForward(services, tx, rule, row, amounts))
  services.environment.checkpoint('forward.created')
}

/** Returns a function that formats an amount of an asset; negative amounts as 0. */
const showAmount = (asset: Asset) => (value: bigint) =>
  `${formatAmount(value < 0n ? 0n : value, asset.decimals)} ${asset.asset_name}`

/**
 * Checks that the rule's API key is valid, its wallet is active and no earlier forward is held.
 * @returns the wallet
 * @throws Later
 */
async function checkRule(
  services: Services,
  rule: RuleRow,
  caller: Caller,
  asset: Asset,
): ReturnType<typeof findWallet> {
  const { sub } = claimedNonceAndSubject(rule.request.token)
  // The signer nodes also refuse a revoked key, so every transfer would be created and then fail.
  if (
    !(await services.database.one(
      'select 1 from api_users where api_key = $1 and revoked_at is null',
      [sub],
    ))
  ) {
    throw new Later('the API key that created the rule was revoked', REVOKED_WAIT_MS)
  }
  const wallet = await findWallet(services.database, caller, asset.asset_name)
  if (wallet.status !== 'active') throw new Later(INACTIVE, REFUSED_WAIT_MS)
  const held = await services.database.one(
    `select 1 from forwards f join transactions t on t.workspace_id = f.workspace_id
      and t.id = f.transaction_id
     where f.workspace_id = $2 and f.rule_id = $1 and t.state = 'AML_HELD' limit 1`,
    [rule.id, rule.workspace_id],
  )
  if (held) throw new Later('screening holds an earlier forward', HELD_WAIT_MS)
  return wallet
}

/**
 * Returns the amount to take from the waiting amount: as much as the cap and the wallet allow.
 * @throws Later if the wallet has less than the rule's minimum, or a sweep is about to arrive
 */
async function grossOf(
  services: Services,
  { rule, asset, network }: ForwardContext,
  allowed: bigint,
  chainReserve: bigint,
): Promise<bigint> {
  const waiting = BigInt(rule.waiting)
  const show = showAmount(asset)
  const frozen = services.networks.get(network.code).coins
    ? await frozenOf(services.database, rule.workspace_id, rule.wallet_id)
    : 0n
  const available = (await availableOf(services, rule)) - frozen - chainReserve
  const target = waiting < allowed ? waiting : allowed
  // Funds on deposit addresses will be swept here.
  if (available < target && (await isSweeping(services, rule)))
    throw new Later('it waits for a sweep', SWEEP_WAIT_MS)
  const gross = target < available ? target : available
  if (gross < BigInt(rule.min_amount)) {
    throw new Later(
      `the wallet has ${show(available)}${chainReserve > 0n ? `, in addition to ${show(chainReserve)} that must stay` : ''}`,
      REFUSED_WAIT_MS,
    )
  }
  return gross
}

/**
 * Checks the forward like a transfer of a caller, and that the chain does not refuse it now.
 * @throws Later or ApiError
 */
async function checkPayment(
  services: Services,
  { rule, asset, network }: ForwardContext,
  amount: bigint,
): Promise<void> {
  checkTransfer(
    services,
    {
      asset: asset.asset_name,
      amount: formatAmount(amount, asset.decimals),
      destination_address: rule.destination,
      address_tag: rule.address_tag ?? undefined,
      destination_type: 'EXTERNAL',
      source_type: 'INTERNAL',
    },
    asset,
    network,
  )
  const refusal = await refusalSoon(services, services.networks.get(network.code), {
    to: rule.destination,
    tag: rule.address_tag,
    amount,
    asset,
  })
  if (refusal) throw new Later(`${refusal.field}: ${refusal.reason}`, REFUSED_WAIT_MS)
}

/**
 * Lets two nodes judge a forward. If it requires approvals, the rule waits for them.
 * @param net amount of the transfer
 * @returns whether it may be made
 * @throws Later if the policy does not allow it, or not now
 */
async function isAllowed(services: Services, rule: RuleRow, net: bigint): Promise<boolean> {
  const amount = net.toString()
  const outcome = await judgeRule(services, rule, amount)
  if (outcome.kind === 'denied')
    throw new Later(`POLICY_DENIED: ${outcome.message}`, REFUSED_WAIT_MS)
  if (outcome.kind === 'later') {
    const wait = waitMs(outcome.freesAt, services.environment.now())
    throw new Later(outcome.message, Math.min(FULL_WAIT_MS_MAX, wait))
  }
  if (outcome.kind !== 'approval') return true
  await requireApprovals(services, rule, outcome.judgement, amount)
  return false
}

/** Returns the row of a new forward. */
function forwardRow(
  services: Services,
  { rule, asset, network }: ForwardContext,
  source: string,
  { net, fee, platform }: ForwardAmounts,
): TransactionRow {
  const now = new Date(services.environment.now())
  return {
    id: services.environment.uuid(),
    kind: 'WITHDRAWAL',
    workspace_id: rule.workspace_id,
    sub_account_id: rule.sub_account_id,
    wallet_id: rule.wallet_id,
    parent_id: null,
    asset: asset.asset_name,
    network: network.code,
    amount: net.toString(),
    fee: fee.toString(),
    fee_asset: asset.fee_asset,
    source_type: 'INTERNAL',
    source_id: source,
    destination_type: 'EXTERNAL',
    destination_id: rule.destination,
    address_tag: rule.address_tag,
    memo: `auto-forwarding ${rule.id}`,
    sequence_id: null,
    state: 'CREATED',
    status: 'pending',
    failure_reason: null,
    last_error: null,
    hash: null,
    confirmations: 0,
    request: null,
    receipts: [],
    plan: {},
    fee_rate: null,
    fee_level: null,
    created_at: now,
    updated_at: now,
    confirmed_at: null,
    attempts: 0,
    lease_token: null,
    amount_usd: platform.amountUsd?.toString() ?? null,
    platform_fee: platform.fee.toString(),
  }
}

/**
 * Writes the transfer and reduces the waiting amount, in the caller's database transaction. Writes
 * nothing if the rule has changed and no longer allows the forward.
 */
async function writeForward(
  services: Services,
  tx: Queryable,
  rule: RuleRow,
  row: TransactionRow,
  { gross, feeRoom, reserve, chainReserve, platform }: ForwardAmounts,
): Promise<void> {
  const now = row.created_at
  const fresh = await tx.one<RuleRow>(
    'select * from forward_rules where workspace_id = $2 and id = $1 for no key update',
    [rule.id, rule.workspace_id],
  )
  if (fresh?.state !== 'ACTIVE' || fresh.expires_at <= now || BigInt(fresh.waiting) < gross) return
  if ((await capOf(services, tx, fresh)).left < gross + feeRoom) return
  const response = stringifyJson(presentTransaction(row, services.registry))
  await tx.query('select create_withdrawal($1)', [
    JSON.stringify({
      ...row,
      plan: { rule_id: rule.id, fee_reserve: reserve.toString() },
      next_run_at: now,
      fee_reserve: reserve.toString(),
      chain_reserve: chainReserve.toString(),
      platform_fee_least: platform.least.toString(),
      response,
    }),
  ])
  tx.emit({ type: 'transaction.created', workspace: rule.workspace_id, payload: response })
  await tx.query(
    `insert into forwards (transaction_id, rule_id, amount, fee_room, created_at, workspace_id)
      values ($1, $2, $3, $4, $5, $6)`,
    [row.id, rule.id, gross.toString(), feeRoom.toString(), now, rule.workspace_id],
  )
  await tx.query(
    `update forward_rules set waiting = waiting - $2, last_error = null, next_run_at = $3,
       updated_at = $3
       where workspace_id = $4 and id = $1`,
    [rule.id, gross.toString(), now, rule.workspace_id],
  )
}

/**
 * Factor by which the estimated fee is multiplied, because prices may rise before the signature and
 * the nodes count the maximum fee.
 */
const FEE_ROOM = 4n

/**
 * Returns the part of the rule's cap that is kept for the network fee. If a gas tank pays the fee
 * in the coin that is forwarded, the nodes count it against the cap too.
 */
async function feeRoomOf(
  services: Services,
  { rule, caller, asset, network }: ForwardContext,
  amount: bigint,
): Promise<bigint> {
  const chain = services.networks.get(network.code)
  if (asset.type !== 'native' || !chain.fuelled) return 0n
  const { fee } = await chain.estimate({
    asset,
    amount,
    to: rule.destination,
    owner: caller,
    walletId: rule.wallet_id,
    feeRate: null,
    level: null,
  })
  return fee * FEE_ROOM
}

/**
 * Returns amount and fee of a forward. If the wallet pays its fee in the same coin, the fee is
 * taken out of the forwarded amount, so that the wallet can be emptied.
 */
async function costs(
  services: Services,
  { rule, caller, asset, network }: ForwardContext,
  gross: bigint,
): Promise<{ net: bigint; fee: bigint; reserve: bigint }> {
  const chain = services.networks.get(network.code)
  const question = {
    asset,
    to: rule.destination,
    owner: caller,
    walletId: rule.wallet_id,
    feeRate: null,
    level: null,
  }
  const estimate = (amount: bigint) =>
    chain.estimate({ ...question, amount }).catch((error: unknown) => {
      throw asRequestError(error, asset)
    })
  const first = await estimate(gross)
  if (asset.type !== 'native' || chain.fuelled) return { net: gross, ...first }
  if (first.reserve >= gross) return { net: 0n, ...first }
  // Fewer coins may be sufficient for the smaller amount.
  const second = await estimate(gross - first.reserve)
  const reserve = second.reserve > first.reserve ? second.reserve : first.reserve
  return { net: gross - reserve, fee: reserve, reserve }
}

async function ownerOf(services: Services, rule: RuleRow): Promise<Caller> {
  const row = await services.database.one<{ workspace: string; name: string; path_index: number }>(
    `select w.name workspace, s.name, s.path_index from sub_accounts s
      join workspaces w on w.id = s.workspace_id
      where s.workspace_id = $2 and s.id = $1`,
    [rule.sub_account_id, rule.workspace_id],
  )
  if (!row) throw new Error('a rule has no sub-account')
  return {
    apiKey: '',
    role: 'full',
    workspaceId: rule.workspace_id,
    workspace: row.workspace,
    subAccountId: rule.sub_account_id,
    subAccount: row.name,
    subAccountIndex: row.path_index,
  }
}

async function availableOf(services: Services, rule: RuleRow): Promise<bigint> {
  const row = await services.database.one<{ balance: string }>(
    `select balance::text from ledger_accounts where workspace_id = $3 and wallet_id = $1
      and asset = $2 and kind = 'available'`,
    [rule.wallet_id, rule.asset, rule.workspace_id],
  )
  return BigInt(row?.balance ?? '0')
}

/** Whether a sweep will arrive soon. A sweep that was postponed does not count. */
async function isSweeping(services: Services, rule: RuleRow): Promise<boolean> {
  return (
    (await services.database.one(
      `select 1 from transactions
    where workspace_id = $3 and kind = 'SWEEP' and status = 'pending' and wallet_id = $1
      and asset = $2 and not plan ? 'waits' limit 1`,
      [rule.wallet_id, rule.asset, rule.workspace_id],
    )) !== undefined
  )
}
