import { formatAmount, type Asset, type Network } from '@custody/chains'
import { claimedNonceAndSubject, stringifyJson } from '@custody/request-auth'
import { findAsset } from '../assets/find-asset.ts'
import { SQL_ERRORS, sqlErrorOf } from '../database/sql-errors.ts'
import { ApiError } from '../errors.ts'
import type { Caller } from '../http/endpoint.ts'
import { quotePlatformFee } from '../prepaid-fee/fees.ts'
import type { Services } from '../engine/services.ts'
import { checkFeeWallet, checkTransfer, refusalSoon } from '../transactions/payment.ts'
import { presentTransaction } from '../engine/present.ts'
import type { TransactionRow } from '../engine/transaction.ts'
import { findWallet } from '../assets/find-wallet.ts'
import { capOf } from './cap.ts'
import type { RuleRow } from './rule.ts'

const SWEEP_WAIT_MS = 2000
const HELD_WAIT_MS = 60_000
const REFUSED_WAIT_MS = 60_000
const REVOKED_WAIT_MS = 86_400_000
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
    // Not if more funds have arrived since; the rule is then checked again immediately.
    await services.database.query(
      `update forward_rules set next_run_at = $5::timestamptz + $2 * interval '1 millisecond', last_error = $3
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

async function forward(services: Services, rule: RuleRow): Promise<void> {
  const { asset, network } = findAsset(services, rule.asset)
  const [min, waiting] = [BigInt(rule.min_amount), BigInt(rule.waiting)]
  const show = (value: bigint) =>
    `${formatAmount(value < 0n ? 0n : value, asset.decimals)} ${asset.asset_name}`
  if (waiting < min)
    throw new Later(
      waiting === 0n ? '' : `${show(waiting)} are waiting; the smallest forward is ${show(min)}`,
      null,
    )
  const caller = await ownerOf(services, rule)
  const { sub } = claimedNonceAndSubject(rule.request.token)
  // The signer nodes refuse it too, so every transfer would be created and then fail.
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
    `select 1 from forwards f join transactions t on t.workspace_id = f.workspace_id and t.id = f.transaction_id
     where f.workspace_id = $2 and f.rule_id = $1 and t.state = 'AML_HELD' limit 1`,
    [rule.id, rule.workspace_id],
  )
  if (held) throw new Later('screening holds an earlier forward', HELD_WAIT_MS)
  const cap = await capOf(services, services.database, rule)
  const feeRoom = await feeRoomOf(services, caller, rule, asset, network, min)
  const left = cap.left > feeRoom ? cap.left - feeRoom : 0n
  if (left < min) throw new Later(`the daily cap allows ${show(left)} more`, cap.waitMs)

  const chain = services.networks.get(network.code)
  const source = await services.addresses.omnibus(network, caller)
  const kept = await chain.kept(source, asset)
  const available = (await availableOf(services, rule)) - kept
  const wanted = waiting < left ? waiting : left
  // Funds on deposit addresses will be swept here.
  if (available < wanted && (await isSweeping(services, rule)))
    throw new Later('waits for a sweep', SWEEP_WAIT_MS)
  const gross = wanted < available ? wanted : available
  if (gross < min) {
    throw new Later(
      `the wallet has ${show(available)}${kept > 0n ? `, in addition to ${show(kept)} that must stay` : ''}`,
      REFUSED_WAIT_MS,
    )
  }
  const { net, fee, reserve } = await costs(services, caller, rule, asset, network, gross)
  if (net <= 0n)
    throw new Later(
      `the network fee of ${show(reserve)} is not lower than the amount that would be forwarded`,
      REFUSED_WAIT_MS,
    )
  checkTransfer(
    services,
    {
      asset: asset.asset_name,
      amount: formatAmount(net, asset.decimals),
      destination_address: rule.destination,
      address_tag: rule.address_tag ?? undefined,
      destination_type: 'EXTERNAL',
      source_type: 'INTERNAL',
    },
    asset,
    network,
  )
  const refusal = await refusalSoon(services, chain, {
    to: rule.destination,
    tag: rule.address_tag,
    amount: net,
    asset,
  })
  if (refusal) throw new Later(`${refusal.field}: ${refusal.reason}`, REFUSED_WAIT_MS)
  await checkFeeWallet(services, chain, { owner: caller, asset, source, fee })

  const platform = quotePlatformFee(services, wallet.prepaid_tier, asset, net)
  const now = new Date(services.environment.now())
  const row: TransactionRow = {
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
  await services.database.transaction(async (tx) => {
    const fresh = await tx.one<RuleRow>(
      'select * from forward_rules where workspace_id = $2 and id = $1 for no key update',
      [rule.id, rule.workspace_id],
    )
    if (fresh?.state !== 'ACTIVE' || fresh.expires_at <= now || BigInt(fresh.waiting) < gross)
      return
    if ((await capOf(services, tx, fresh)).left < gross + feeRoom) return
    const response = stringifyJson(presentTransaction(row, services.registry))
    await tx.query('select create_withdrawal($1)', [
      JSON.stringify({
        ...row,
        plan: { rule_id: rule.id, fee_reserve: reserve.toString() },
        next_run_at: now,
        fee_reserve: reserve.toString(),
        chain_reserve: kept.toString(),
        platform_fee_least: platform.least.toString(),
        response,
      }),
    ])
    tx.tell({ type: 'transaction.created', workspace: rule.workspace_id, payload: response })
    await tx.query(
      'insert into forwards (transaction_id, rule_id, amount, fee_room, created_at, workspace_id) values ($1, $2, $3, $4, $5, $6)',
      [row.id, rule.id, gross.toString(), feeRoom.toString(), now, rule.workspace_id],
    )
    await tx.query(
      `update forward_rules set waiting = waiting - $2, last_error = null, next_run_at = $3, updated_at = $3
       where workspace_id = $4 and id = $1`,
      [rule.id, gross.toString(), now, rule.workspace_id],
    )
  })
  services.environment.checkpoint('forward.created')
}

/**
 * Factor for rising prices between the estimate and the signature; the nodes count the maximum fee.
 */
const FEE_ROOM = 4n

/**
 * Returns the part of the rule's cap that is kept for the network fee. If a gas tank pays the fee
 * in the coin that is forwarded, the nodes count it against the cap too.
 */
async function feeRoomOf(
  services: Services,
  caller: Caller,
  rule: RuleRow,
  asset: Asset,
  network: Network,
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
  caller: Caller,
  rule: RuleRow,
  asset: Asset,
  network: Network,
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
  const estimate = (amount: bigint) => chain.estimate({ ...question, amount })
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
    `select w.name workspace, s.name, s.path_index from sub_accounts s join workspaces w on w.id = s.workspace_id
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
    `select balance::text from ledger_accounts where workspace_id = $3 and wallet_id = $1 and asset = $2 and kind = 'available'`,
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
