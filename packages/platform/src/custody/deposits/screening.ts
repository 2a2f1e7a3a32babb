import { stringifyJson } from '@custody/request-auth'
import type { Queryable, Database } from '../../core/database/pool.ts'
import { credit, depositReference } from './credit.ts'
import { emit, post } from '../../core/ledger/post.ts'
import type { Environment } from '../../core/environment.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { Logger } from 'pino'
import type { Forwards, Invoices } from '../../core/engine/interfaces/listeners.ts'
import type { Aml } from '../aml/aml.ts'
import { presentTransaction } from '../../core/engine/present.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { advance, LeaseLost } from '../../core/engine/lease.ts'
import { addressKeys, spaceOf } from '../aml/address-key.ts'
import { confirmHits, hold, isHeld, lockFreezing, type Hit } from '../aml/frozen.ts'
import { screen, ScreeningWaits } from '../aml/screen.ts'
import { partiesOf } from './senders.ts'
import { isOn, readPolicy, type AmlRow } from '../aml/policy.ts'
import { NO_WAIT, waitForProvider } from '../aml/waiting.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  log: Logger
  forwards: Forwards
  invoices: Invoices
  aml: Aml
}

const HELD_POLL_MS = 10 * 60_000

/**
 * CONFIRMING → SCREENING, when a deposit has reached its depth. A deposit to a gas tank is credited
 * immediately.
 */
export async function depthReached(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
  confirmations: number,
): Promise<void> {
  if (row.kind !== 'DEPOSIT' || row.sub_account_id === null)
    return credit(services, tx, row, confirmations)
  await tx.query(
    `update transactions set state = 'SCREENING', confirmations = $2, attempts = 0,
      next_run_at = $3, updated_at = $3
     where workspace_id = $4 and id = $1`,
    [row.id, confirmations, tx.now(), row.workspace_id],
  )
}

/** Reason shown for a deposit that is held because not all its senders are known. */
const UNKNOWN =
  'held: a part of the payment has no known sender address to screen; the operator decides'

/**
 * Whether a deposit is held because a sender without an address cannot be screened: it is where deposits
 * are screened, unless it is worth less than the settings allow. Without a price it is held.
 */
function isHeldUnknown(policy: AmlRow | undefined, { amount_usd: usd }: TransactionRow): boolean {
  if (!isOn(policy, 'deposit')) return false
  return typeof usd !== 'string' || BigInt(usd) >= BigInt(policy.unknown_sender_usd)
}

/** SCREENING → CREDITED or FROZEN. Without a clear response it stays in SCREENING, uncredited. */
export async function screenDeposit(services: Services, row: TransactionRow): Promise<void> {
  const network = services.networks.get(row.network).network
  const subAccountId = row.sub_account_id as string
  let frozen: boolean | null
  try {
    const { parties, unknown } = await partiesOf(services, row, network)
    const isUnknown =
      unknown &&
      isHeldUnknown(await readPolicy(services.database, row.workspace_id, subAccountId), row)
    const hits = await screen(services, row, network, 'deposit', parties)
    frozen = await services.database.transaction(async (tx) => {
      await lockFreezing(tx, subAccountId)
      const fresh = await tx.one<TransactionRow>(
        `select * from transactions where workspace_id = $3 and id = $1 and lease_token = $2
          for update`,
        [row.id, row.lease_token, row.workspace_id],
      )
      if (!fresh) throw new LeaseLost(row.id)
      const keys = parties.flatMap(({ address }) => addressKeys(network, address))
      const all = await confirmHits(tx, row, { space: spaceOf(network), keys }, hits)
      if (all === null) {
        await advance(tx, row, { run_in_ms: 0 })
        return null
      }
      const isUnreleased = isUnknown && !fresh.plan.senders_released
      if (all.length === 0 && !isUnreleased) {
        await credit(services, tx, fresh, fresh.confirmations)
        return false
      }
      await freeze(services, tx, fresh, {
        hits: all,
        space: spaceOf(network),
        isUnknown: isUnreleased,
      })
      return true
    })
  } catch (error) {
    if (error instanceof ScreeningWaits) return waitForProvider(services, row, error)
    throw error
  }
  if (frozen !== null)
    services.environment.checkpoint(frozen ? 'deposit.frozen' : 'deposit.credited')
}

/**
 * Why a deposit is frozen: the frozen addresses among its parties, in the address space `space`, or
 * a sender without an address.
 */
interface Freeze {
  hits: readonly Hit[]
  space: string
  isUnknown: boolean
}

/**
 * Books a held deposit as frozen: the platform holds the coins on the chain, but no wallet may
 * spend them.
 */
async function freeze(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
  { hits, space, isUnknown }: Freeze,
): Promise<void> {
  await hold(services, tx, row, space, hits)
  if (row.plan.frozen_wallet === undefined) {
    await post(tx, 'deposit-frozen', depositReference(row), [
      { workspace: row.workspace_id, asset: row.asset, kind: 'chain', amount: -BigInt(row.amount) },
      {
        workspace: row.workspace_id,
        wallet: row.wallet_id,
        asset: row.asset,
        kind: 'frozen',
        address: row.destination_id,
        amount: BigInt(row.amount),
      },
    ])
  }
  const reason = isUnknown ? UNKNOWN : null
  const shown = presentTransaction(
    { ...row, state: 'FROZEN', failure_reason: reason },
    services.registry,
  )
  await emit(tx, row.workspace_id, row.sub_account_id, 'deposit.frozen', stringifyJson(shown))
  // The wallet is stored because the deposit may be assigned to a wallet later, and the entry must
  // be reversed exactly as it was posted.
  await advance(tx, row, {
    state: 'FROZEN',
    waits: 'AML_HELD',
    last_error: null,
    failure_reason: reason,
    run_in_ms: HELD_POLL_MS,
    plan: {
      ...NO_WAIT,
      frozen_wallet: row.plan.frozen_wallet ?? row.wallet_id ?? '',
      unknown_sender: isUnknown ? '1' : null,
    },
  })
  await services.invoices.moved(tx, row)
}

/**
 * FROZEN → SCREENING, once no freeze holds the deposit; its other senders may still need screening.
 */
export async function awaitDepositUnfreezing(
  services: Pick<Services, 'database' | 'invoices'>,
  row: TransactionRow,
): Promise<void> {
  await services.database.transaction(async (tx) => {
    await lockFreezing(tx, row.sub_account_id as string)
    // The plan is read under the lock: the operator may have just released the unknown sender.
    const fresh = await tx.one<Pick<TransactionRow, 'plan'>>(
      'select plan from transactions where workspace_id = $2 and id = $1',
      [row.id, row.workspace_id],
    )
    const isUnknown = fresh?.plan.unknown_sender === '1' && !fresh.plan.senders_released
    const waits = isUnknown || (await isHeld(tx, row))
    await advance(
      tx,
      row,
      waits ? { waits: 'AML_HELD', run_in_ms: HELD_POLL_MS } : { state: 'SCREENING', run_in_ms: 0 },
    )
    if (!waits) await services.invoices.moved(tx, row)
  })
}
