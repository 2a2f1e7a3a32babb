import { insertTransaction } from '../../core/engine/insert.ts'
import { stringifyJson } from '@custody/request-auth'
import { TANK_SUB_ACCOUNT, traitsOf, type Network, type Registry } from '@custody/chains'
import type { Queryable, Database } from '../../core/database/pool.ts'
import { ensureGasTank } from '../../custody/gas-tanks/ensure-tank.ts'
import { chargePlatformFee } from '../../custody/prepaid-fee/fees.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { WorkspaceKeys } from '../../core/signing/keys.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'
import type { Callers } from '../../core/http/authentication/callers.ts'
import type { DevnetControl } from '../../core/devnet.ts'
import { presentTransaction } from '../../core/engine/present.ts'
import { isConsolidation, type Plan, type TransactionRow } from '../../core/engine/transaction.ts'
import { writeAttempts } from './attempts.ts'
import type { Group } from './group.ts'
import { NotAdopted } from './open.ts'
import { ADOPTED_PAYLOAD } from '../../core/engine/payload.ts'
import {
  ensurePath,
  ensureScan,
  ensureWallet,
  subAccountAt,
  type ScanFrom,
} from './restore-wallets.ts'
import { lendFeeWallet, reserve } from './reserve.ts'
import { returnedLoan } from './stake-steps.ts'
import { stepUnderWay } from '../../custody/staking/recorded.ts'

interface Services {
  settings: Pick<Settings, 'network' | 'prepaidTiers'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  keys: WorkspaceKeys
  addresses: Addresses
  callers: Callers
  devnet: DevnetControl | null
}

/** Result of adopting one recorded transaction. */
export interface Adopted {
  id: string
  kind: string
  workspace: string
  asset: string
  amount: string
  hash: string
  done: 'created' | 'continued' | 'replacement'
}

interface EnsuredWallets {
  subAccountId: string | null
  walletId: string | null
  feeWalletId: string | null
  walletsMade: string[]
  /** Tron: cooldown of unstaked TRX in days. */ delayDays: number
}

/** Ensures the wallets and addresses whose existence the transaction itself proves. */
async function placeOf(
  services: Services,
  group: Group,
  scanFrom: ScanFrom,
): Promise<EnsuredWallets> {
  const [{ network, workspaceId, subAccount, coins }] = group.attempts
  const delayDays = group.attempts[0].decoded.action
    ? (await services.networks.stakes(network.code).parameters()).unfreezeDelayDays
    : 0
  if (subAccount === TANK_SUB_ACCOUNT) {
    await ensureScan(services, network, scanFrom)
    await ensureGasTank(services, workspaceId, network)
    const target = await services.database.one<{ sub_account_id: string | null }>(
      'select sub_account_id from chain_addresses where network = $1 and address = $2',
      [network.code, group.to],
    )
    return {
      subAccountId:
        group.kind === 'FUEL' || group.kind === 'LEND' || group.kind === 'LEND_BACK'
          ? (target?.sub_account_id ?? null)
          : null,
      walletId: null,
      feeWalletId: null,
      walletsMade: [],
      delayDays,
    }
  }
  const owner = await subAccountAt(services, workspaceId, subAccount)
  const wallet = await ensureWallet(services, owner, group.asset, network, scanFrom)
  const native = services.registry.asset(network.native_asset)
  const paysElsewhere =
    traitsOf(network).feesFrom === 'wallet' && group.asset.type === 'token' && native
  const feeWallet = paysElsewhere
    ? await ensureWallet(services, owner, native, network, scanFrom)
    : null
  await ensurePath(services, network, owner, group.pathIndex)
  for (const { pathIndex } of coins) await ensurePath(services, network, owner, pathIndex)
  const made = [
    ...(wallet.made ? [group.asset.asset_name] : []),
    ...(feeWallet?.made ? [network.native_asset] : []),
  ]
  return {
    subAccountId: owner.subAccountId,
    walletId: wallet.id,
    feeWalletId: feeWallet?.id ?? null,
    walletsMade: made,
    delayDays,
  }
}

/**
 * Returns this database's row of a recorded transaction: the row with its id, or an unsigned row
 * that was created for the same operation.
 */
async function rowOf(tx: Queryable, group: Group): Promise<TransactionRow | undefined> {
  const byId = await tx.one<TransactionRow>(
    'select * from transactions where id::text = $1 for update',
    [group.id],
  )
  if (byId) return byId
  const [
    {
      network,
      decoded,
      workspaceId,
      unsigned: { bytes },
    },
  ] = group.attempts
  const built = await tx.one<TransactionRow>(
    `select t.* from transactions t join chain_transactions c on c.workspace_id = t.workspace_id
      and c.transaction_id = t.id
     where c.network = $1 and c.unsigned->>'bytes' = $2 and c.state = 'BUILT' limit 1
       for update of t`,
    [network.code, bytes],
  )
  if (built) return built
  if (group.kind === 'WITHDRAWAL' || isConsolidation(group)) return undefined
  // A known transaction was signed with the same nonce, so the recorded one is a more expensive
  // attempt of it.
  const sibling =
    decoded.nonce === null
      ? undefined
      : await tx.one<TransactionRow>(
          `select t.* from transactions t
            join chain_transactions c on c.workspace_id = t.workspace_id and c.transaction_id = t.id
     where c.workspace_id = $6 and c.network = $1 and c.account = $2 and c.nonce = $3
       and c.hash is not null and c.state <> 'VOID'
       and t.kind = $4
       and t.destination_id = $5 limit 1 for update of t`,
          [network.code, group.from, decoded.nonce.toString(), group.kind, group.to, workspaceId],
        )
  return sibling ?? pendingRowOf(tx, group)
}

/** Returns the unsigned row that was created for the same operation as a recorded transaction. */
async function pendingRowOf(tx: Queryable, group: Group): Promise<TransactionRow | undefined> {
  const [{ network, workspaceId }] = group.attempts
  const unsigned = `and status = 'pending'
    and not exists (select 1 from chain_transactions c
      where c.workspace_id = t.workspace_id and c.transaction_id = t.id and c.hash is not null)`
  if (group.kind === 'SWEEP') {
    return tx.one<TransactionRow>(
      `select t.* from transactions t where workspace_id = $4 and kind = 'SWEEP' and network = $1
         and source_id = $2
         and asset = $3 ${unsigned} limit 1 for update`,
      [network.code, group.from, group.asset.asset_name, workspaceId],
    )
  }
  if (group.kind === 'FUEL') {
    return tx.one<TransactionRow>(
      `select t.* from transactions t
       where workspace_id = $5 and kind = 'FUEL' and network = $1 and source_id = $2
         and destination_id = $3 and amount = $4
         ${unsigned} limit 1 for update`,
      [network.code, group.from, group.to, group.amount.toString(), workspaceId],
    )
  }
  if (group.kind === 'LEND' || group.kind === 'LEND_BACK') {
    return tx.one<TransactionRow>(
      `select t.* from transactions t
       where workspace_id = $6 and kind = $5 and network = $1 and source_id = $2
         and destination_id = $3 and amount = $4
         ${unsigned} limit 1 for update`,
      [network.code, group.from, group.to, group.amount.toString(), group.kind, workspaceId],
    )
  }
  if (group.order !== null) {
    return tx.one<TransactionRow>(
      `select t.* from transactions t where kind = $3 and workspace_id = $1 and plan->>'order' = $2
        ${unsigned} limit 1 for update`,
      [workspaceId, group.order, group.kind],
    )
  }
  return undefined
}

/**
 * Records an adopted transaction in one commit: its row or the unsigned row of the same operation,
 * its attempts with their signed bytes, and the coins that they spend and create. The ordinary
 * steps confirm and book it, so only amounts that the chain confirms at its depth are booked.
 * @throws NotAdopted
 */
export async function adopt(
  services: Services,
  group: Group,
  scanFrom: ScanFrom,
): Promise<{ adopted: Adopted; walletsMade: string[] }> {
  const { network, workspaceId, recorded } = group.attempts[0]
  const place = await placeOf(services, group, scanFrom)
  // If the bytes do not contain the expiry, the latest expiry of a transaction that is signed now
  // is used, because it is later than theirs.
  const end = (await services.networks.get(network.code).latestEnd?.()) ?? null
  const newest = group.attempts.at(-1) as Group['attempts'][0]
  const adopted = await services.database.transaction(async (tx) => {
    const existing = await rowOf(tx, group)
    if (existing && !isOf(existing, group, workspaceId))
      throw new NotAdopted(`another transaction already has its id ${existing.id}`)
    if (existing && existing.status !== 'pending')
      throw new NotAdopted(
        `the transaction ${existing.id} has already ended with the state ${existing.state}`,
      )
    const row = existing ?? (await create(services, tx, group, place))
    const signedBefore = await writeAttempts(services, tx, group, row, end)
    if (existing) await goOn(services, tx, group, row, place)
    const done: Adopted['done'] = !existing ? 'created' : signedBefore ? 'replacement' : 'continued'
    return {
      id: row.id,
      kind: row.kind,
      workspace: recorded.workspace,
      asset: row.asset,
      amount: group.amount.toString(),
      hash: newest.signed.hash,
      done,
    }
  })
  services.environment.checkpoint('recovery.adopted')
  return { adopted, walletsMade: place.walletsMade }
}

/**
 * Whether a row matches the recorded transaction. Amounts of sweeps, releases and consolidations are not
 * compared, because they are only known at the end.
 */
function isOf(existing: TransactionRow, group: Group, workspaceId: string): boolean {
  const isFixed =
    existing.kind !== 'SWEEP' && existing.kind !== 'RELEASE' && !isConsolidation(existing)
  const isSame =
    existing.workspace_id === workspaceId &&
    existing.kind === group.kind &&
    existing.asset === group.asset.asset_name
  return isSame && (!isFixed || existing.amount === group.amount.toString())
}

/** Returns the source type and destination type of a kind, as the API shows them. */
function endsOf(
  kind: TransactionRow['kind'],
  isTank: boolean,
): [source: string, destination: string] {
  if (isTank)
    return [
      'GAS_TANK',
      kind === 'DRAIN' ? 'EXTERNAL' : /^(?:UN)?STAKE$|^RELEASE$/.test(kind) ? 'STAKING' : 'OMNIBUS',
    ]
  if (kind === 'STAKE') return ['INTERNAL', 'STAKING']
  if (kind === 'UNSTAKE') return ['STAKING', 'STAKING']
  if (kind === 'RELEASE') return ['STAKING', 'INTERNAL']
  if (kind === 'CONSOLIDATION') return ['INTERNAL', 'INTERNAL']
  return ['INTERNAL', kind === 'WITHDRAWAL' ? 'EXTERNAL' : 'OMNIBUS']
}

/**
 * Inserts a row for a recorded transaction, with the reservations that an ordinary transaction has
 * when it is signed.
 */
async function create(
  services: Services,
  tx: Queryable,
  group: Group,
  place: EnsuredWallets,
): Promise<TransactionRow> {
  const { network, workspaceId, recorded } = group.attempts[0]
  const fee = worstFee(group)
  const rule = group.ruleId
    ? await tx.one<{ id: string }>(
        `select id from forward_rules where workspace_id = $3 and id = $1
          and wallet_id = $2 for no key update`,
        [group.ruleId, place.walletId, workspaceId],
      )
    : undefined
  const [source, destination] = endsOf(group.kind, place.walletId === null)
  const loan =
    group.kind === 'LEND_BACK' ? await returnedLoan(tx, workspaceId, network.code, group) : null
  const row = await insertTransaction(tx, {
    id: group.id,
    kind: group.kind,
    state: 'CONFIRMING',
    workspace_id: workspaceId,
    sub_account_id: place.subAccountId,
    wallet_id: place.walletId,
    asset: group.asset.asset_name,
    network: network.code,
    amount: group.amount,
    fee,
    fee_asset: group.asset.fee_asset,
    source_type: source,
    source_id: group.from,
    destination_type: destination,
    destination_id: group.to,
    address_tag: group.tag,
    sequence_id: group.sequenceId,
    hash: group.attempts.at(-1)?.signed.hash ?? null,
    memo: rule ? `auto-forwarding ${rule.id}` : null,
    plan: planOf(group, place, rule?.id ?? null, loan === null ? fee : BigInt(loan.fee)),
    created_at: new Date(recorded.at),
    updated_at: tx.now(),
  })
  if (loan === null) await reserve(tx, row, fee)
  if (source === 'GAS_TANK')
    await tx.query(
      `update transactions set parent_id = (select id from transactions where workspace_id = $3
        and id::text = $2)
       where workspace_id = $3 and id = $1`,
      [row.id, loan?.parentId ?? recorded.transaction_id, workspaceId],
    )
  if (rule) await recordForward(tx, row, rule.id, group)
  if (group.sequenceId !== null) {
    await tx.query(
      `insert into idempotency (workspace_id, wallet_id, sequence_id, transaction_id, payload_hash,
        response)
       values ($6, $1, $2, $3, $4, $5) on conflict do nothing`,
      [
        place.walletId,
        group.sequenceId,
        row.id,
        ADOPTED_PAYLOAD,
        answerOf(services, row),
        workspaceId,
      ],
    )
  }
  return row
}

/** Returns the plan of an adopted transaction. `reserved`: fee that its reservation contains. */
function planOf(
  group: Group,
  place: EnsuredWallets,
  ruleId: string | null,
  reserved: bigint,
): Plan {
  const { network, recorded, decoded } = group.attempts[0]
  return {
    // The caller's request is missing, so nothing more can be signed for an adopted transaction.
    adopted: '1',
    ...(ruleId === null ? {} : { rule_id: ruleId }),
    ...(group.kind === 'SWEEP' ? { height: `adopted ${recorded.id}` } : {}),
    ...(group.order === null ? {} : { order: group.order }),
    ...reservedIn(network, group, place, reserved),
    ...(decoded.action
      ? {
          fee_limit: '0',
          step: '0',
          fees_paid: '0',
          delay_days: String(place.delayDays),
          adopted_steps: '1',
        }
      : {}),
    ...(group.resource === null ? {} : { resource: group.resource }),
  }
}

/**
 * Returns the response that the caller's request received; for a staking request only id, status
 * and hash.
 */
const answerOf = (services: Services, row: TransactionRow): string =>
  stringifyJson(
    row.kind === 'WITHDRAWAL' || isConsolidation(row)
      ? presentTransaction(row, services.registry)
      : { id: row.id, status: row.status, hash: row.hash },
  )

const worstFee = (group: Group): bigint =>
  group.attempts.reduce(
    (most, { decoded }) => (decoded.fee_max > most ? decoded.fee_max : most),
    0n,
  )

/** Whether the transaction is a sweep of a native coin, which pays its own fee. */
const paysForItself = (network: Network, group: Group): boolean =>
  group.kind === 'SWEEP' && group.asset.type === 'native' && traitsOf(network).feesFrom === 'tank'

/**
 * Returns the plan fields about reservations that an ordinary transaction has, as needed for
 * booking.
 */
function reservedIn(network: Network, group: Group, place: EnsuredWallets, fee: bigint): Plan {
  if (group.kind === 'FUEL') return { need: fee.toString() }
  if (group.kind === 'LEND' || group.kind === 'LEND_BACK')
    return { reserved_fee: fee.toString(), back_fee: '0' }
  if (group.kind === 'DRAIN' || (group.attempts[0].decoded.action && place.walletId === null))
    return { reserved_fee: fee.toString() }
  if (paysForItself(network, group)) return { need: '0', own: '1' }
  // The fee is paid from the float at the address, to which its fuel is booked as well.
  if (traitsOf(network).feesFrom === 'tank') return { need: '0' }
  if (place.feeWalletId !== null) return { fee_wallet: place.feeWalletId, fee_held: fee.toString() }
  return group.kind === 'WITHDRAWAL' || isConsolidation(group)
    ? { fee_reserve: fee.toString() }
    : {}
}

/**
 * Subtracts a forward from the amount that its rule is waiting to forward. Deposits that are not
 * found again yet are recorded as forwarded in advance.
 */
async function recordForward(
  tx: Queryable,
  row: TransactionRow,
  ruleId: string,
  group: Group,
): Promise<void> {
  const { network, recorded } = group.attempts[0]
  const gross =
    BigInt(row.amount) +
    (traitsOf(network).feesFrom === 'wallet' && row.asset === row.fee_asset ? worstFee(group) : 0n)
  await tx.query(
    `insert into forwards (transaction_id, rule_id, amount, created_at, workspace_id)
      values ($1, $2, $3, $4, $5)`,
    [row.id, ruleId, gross.toString(), new Date(recorded.at), row.workspace_id],
  )
  await tx.query(
    `update forward_rules set ahead = ahead + greatest(0, $2 - waiting),
      waiting = greatest(0, waiting - $2)
     where workspace_id = $3 and id = $1`,
    [ruleId, gross.toString(), row.workspace_id],
  )
}

/**
 * Moves a row that this database has, but whose transaction was not signed here, to CONFIRMING;
 * from then on it is an ordinary transaction.
 */
async function goOn(
  services: Services,
  tx: Queryable,
  group: Group,
  row: TransactionRow,
  place: EnsuredWallets,
): Promise<void> {
  const newest = group.attempts.at(-1) as Group['attempts'][0]
  if (newest.decoded.action) {
    await tx.query(
      `update transactions
        set plan = '{"step":"0","fees_paid":"0"}'::jsonb || plan || '{"adopted_steps":"1"}'
       where workspace_id = $2 and id = $1`,
      [row.id, row.workspace_id],
    )
    // An earlier call of the same staking transaction is pending; the recorded one follows it.
    if (
      group.kind !== 'LEND' &&
      group.kind !== 'LEND_BACK' &&
      !group.attempts.some(({ decoded }) => decoded.action?.kind === stepUnderWay(row))
    )
      return
  }
  await tx.query(
    `update transactions set state = 'CONFIRMING', hash = $2, amount = $3, attempts = 0,
       last_error = null, waiting = null,
       lease_until = null,
       lease_token = null, next_run_at = $4, updated_at = $4,
         plan = plan - 'cancel' - 'reason' - 'waits'
     where workspace_id = $5 and id = $1`,
    [
      row.id,
      newest.signed.hash,
      group.amount.toString(),
      new Date(services.environment.now()),
      row.workspace_id,
    ],
  )
  if (paysForItself(group.attempts[0].network, group)) {
    await tx.query(
      `update transactions set plan = plan || '{"need":"0","own":"1"}' where workspace_id = $2
        and id = $1`,
      [row.id, row.workspace_id],
    )
  }
  if (place.feeWalletId !== null && row.plan.fee_wallet === undefined)
    await lendFeeWallet(tx, row, place.feeWalletId, worstFee(group))
  // The fee is charged here, because the transaction's bytes may already have been public before
  // the backup was restored.
  await chargePlatformFee(services, tx, row)
}
