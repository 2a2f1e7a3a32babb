import { createHash } from 'node:crypto'
import {
  CHANGE_INDEX,
  OMNIBUS_INDEX,
  TANK_SUB_ACCOUNT,
  traitsOf,
  type Asset,
  type TronResource,
  type Registry,
} from '@custody/chains'
import type { Database } from '../../core/database/pool.ts'
import type { WorkspaceKeys } from '../../core/signing/keys.ts'
import {
  isConsolidation,
  type TransactionKind,
  type TransactionRow,
} from '../../core/engine/transaction.ts'
import { NotAdopted, type Opened } from './open.ts'
import { addressOf } from './restore-wallets.ts'
import { loanIn, stakesOf } from './stake-steps.ts'

interface Services {
  database: Database
  registry: Registry
  keys: WorkspaceKeys
}

/**
 * Recorded transactions of which at most one is mined: the attempts of one of our transactions, the
 * first attempt first.
 */
export interface Group {
  /** Id of the transaction's row, derived from the caller's request or from the record itself. */
  id: string
  kind: TransactionKind
  attempts: [Opened, ...Opened[]]
  asset: Asset
  amount: bigint
  from: string
  to: string
  tag: string | null
  /** The caller's own identifier (`sequence_id`). */
  sequenceId: string | null
  /** The standing rule that created the forward. */
  ruleId: string | null
  /** The operator's order. */
  order: string | null
  /** Path index of the source address. */
  pathIndex: number
  /** The resource that is staked for. */
  resource: TronResource | null
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const BY_REQUEST = new Set(['pay', 'cancel', 'forward', 'stake', 'consolidate'])
const KINDS: Readonly<Record<string, TransactionKind>> = {
  pay: 'WITHDRAWAL',
  cancel: 'WITHDRAWAL',
  forward: 'WITHDRAWAL',
  consolidate: 'CONSOLIDATION',
  sweep: 'SWEEP',
  fuel: 'FUEL',
  drain: 'DRAIN',
  stake: 'STAKE',
  'tank-stake': 'STAKE',
  lend: 'LEND',
}

/** Returns a UUID derived from a text, so that every run gives the same transaction the same id. */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/**
 * Returns a key that is equal for all attempts of one transaction: derived from the request, the
 * order, or the nonce of the account.
 */
export function keyOf({ recorded, decoded, network }: Opened): string {
  if (BY_REQUEST.has(recorded.purpose)) return `request ${recorded.transaction_id ?? ''}`
  if (recorded.purpose === 'drain' || recorded.purpose === 'tank-stake') return recorded.step
  if (decoded.nonce !== null) return `${network.code} ${decoded.from[0]} ${decoded.nonce}`
  return recorded.id
}

function parts(text: string | null | undefined): unknown[] {
  try {
    const value: unknown = JSON.parse(text ?? 'null')
    return Array.isArray(value) ? value : []
  } catch {
    return []
  }
}

/**
 * Determines the meaning of a group of attempts for the ledger. The nodes report the purpose; it is
 * checked against the decoded transaction, so that a lying node cannot cause a booking that the
 * transaction does not justify.
 * @throws NotAdopted
 */
export async function groupOf(services: Services, attempts: [Opened, ...Opened[]]): Promise<Group> {
  // A cancellation only pays its own sender; the attempt that it cancels shows the transaction's
  // purpose.
  const main = attempts.find(({ recorded }) => recorded.purpose !== 'cancel') ?? attempts[0]
  const { recorded, decoded, network, subAccount, workspaceId } = main
  const kind = Object.hasOwn(KINDS, recorded.purpose) ? KINDS[recorded.purpose] : undefined
  if (!kind) throw new NotAdopted(`the purpose ${recorded.purpose} is unknown`)
  if (recorded.purpose === 'cancel') return cancelOf(services, attempts)
  if (attempts.some((each) => !isOfSameWallet(each, main)))
    throw new NotAdopted('its attempts belong to different wallets')
  const asset = services.registry.asset(decoded.asset)
  if (!asset) throw new NotAdopted(`the asset ${decoded.asset} is not in the registry`)
  const isCoin = traitsOf(network).deposits === 'spendable'
  const pathIndex = isCoin ? OMNIBUS_INDEX : (recorded.unsigned.inputs.at(-1)?.path[2] as number)
  const base: Group = {
    id: '',
    asset,
    sequenceId: null,
    ruleId: null,
    order: null,
    pathIndex,
    from: isCoin
      ? await addressOf(services, network, workspaceId, subAccount, OMNIBUS_INDEX)
      : (decoded.from.at(-1) as string),
    ...didOf(recorded.purpose, kind, attempts, main),
  }
  if (
    isConsolidation(base) &&
    base.to !== (await addressOf(services, network, workspaceId, subAccount, CHANGE_INDEX))
  )
    throw mismatch(main)
  if (BY_REQUEST.has(recorded.purpose)) return requestedGroup(base, main)
  const group = { ...base, id: uuidOf(keyOf(main)) }
  if (recorded.purpose === 'lend' || recorded.purpose === 'tank-stake')
    return tankStakeGroup(group, main)
  if (kind !== 'SWEEP') return tankPaymentGroup(services, group, main, kind)
  if (
    subAccount === TANK_SUB_ACCOUNT ||
    pathIndex === OMNIBUS_INDEX ||
    base.to !== (await addressOf(services, network, workspaceId, subAccount, OMNIBUS_INDEX))
  )
    throw mismatch(main)
  return group
}

/** Whether an attempt is of the same wallet and purpose, or cancels an attempt of that wallet. */
const isOfSameWallet = ({ workspaceId, subAccount, recorded }: Opened, main: Opened): boolean =>
  workspaceId === main.workspaceId &&
  subAccount === main.subAccount &&
  (recorded.purpose === main.recorded.purpose || recorded.purpose === 'cancel')

/** Returns the error of a transaction that does not match its recorded purpose. */
const mismatch = ({ recorded }: Opened): NotAdopted =>
  new NotAdopted(
    `it does not match the purpose that the signer nodes recorded, ${recorded.purpose}`,
  )

/**
 * Returns the group of a transaction that a caller requested or that a standing rule created.
 * @throws NotAdopted
 */
function requestedGroup(base: Group, main: Opened): Group {
  const { recorded, decoded, subAccount } = main
  if (
    subAccount === TANK_SUB_ACCOUNT ||
    base.pathIndex !== OMNIBUS_INDEX ||
    (recorded.purpose === 'stake') !== (decoded.action !== undefined) ||
    recorded.transaction_id === null ||
    recorded.transaction_id === undefined ||
    !UUID.test(recorded.transaction_id)
  )
    throw mismatch(main)
  // The record belongs to a forward, or to the cancellation that the owner sent in place of the
  // forward.
  const [step, ruleId] = parts(recorded.step)
  const rule = step === 'forward' ? ruleId : null
  return {
    ...base,
    id: recorded.transaction_id,
    sequenceId: sequenceIdOf(main, base.asset),
    ruleId: typeof rule === 'string' && UUID.test(rule) ? rule : null,
  }
}

/**
 * Returns the caller's `sequence_id` of a recorded transfer or consolidation; null if it has none. The
 * request of a consolidation may name its wallet only.
 */
function sequenceIdOf({ recorded, subAccount }: Opened, asset: Asset): string | null {
  const [word, how, workspace, sub, ticker, sequence] = parts(recorded.intent)
  return word === 'pay' &&
    how === 'sequence' &&
    workspace === recorded.workspace &&
    sub === subAccount &&
    (ticker === asset.asset_name || UUID.test(String(ticker))) &&
    typeof sequence === 'string'
    ? sequence
    : null
}

/**
 * Returns the group of a loan, its return or a staking transaction of a gas tank.
 * @throws NotAdopted
 */
function tankStakeGroup(group: Group, main: Opened): Group {
  const { recorded, subAccount } = main
  const order = recorded.purpose === 'tank-stake' ? parts(recorded.step)[1] : null
  if (
    subAccount !== TANK_SUB_ACCOUNT ||
    (order === null) !== (group.kind === 'LEND' || group.kind === 'LEND_BACK')
  )
    throw mismatch(main)
  return { ...group, order: typeof order === 'string' ? order : null }
}

/**
 * Returns the group of fuel or of a drain of a gas tank.
 * @throws NotAdopted
 */
async function tankPaymentGroup(
  services: Services,
  group: Group,
  main: Opened,
  kind: TransactionKind,
): Promise<Group> {
  const { recorded, network, workspaceId, subAccount } = main
  if (subAccount !== TANK_SUB_ACCOUNT) throw mismatch(main)
  const order = kind === 'DRAIN' ? parts(recorded.step)[1] : null
  // Fuel goes to an address of the workspace, a drain never does.
  const own = await services.database.one(
    `select 1 from chain_addresses where network = $1 and address = $2 and workspace_id = $3
      and sub_account_id is not null`,
    [network.code, group.to, workspaceId],
  )
  if ((own !== undefined) !== (kind === 'FUEL'))
    throw kind === 'FUEL'
      ? new NotAdopted('it pays fuel to an address that this database does not contain', true)
      : mismatch(main)
  return { ...group, order: typeof order === 'string' ? order : null }
}

/** Returns the payment, stake or loan that a group's transactions make, as decoded here. */
function didOf(
  purpose: string,
  kind: TransactionKind,
  attempts: Group['attempts'],
  { decoded }: Opened,
): Pick<Group, 'kind' | 'attempts' | 'amount' | 'to' | 'tag' | 'resource'> {
  if (purpose === 'stake' || purpose === 'tank-stake') return { tag: null, ...stakesOf(attempts) }
  if (purpose === 'lend') return { attempts, tag: null, ...loanIn(attempts[0]) }
  const [payment, more] = decoded.payments
  if (!payment || more)
    throw new NotAdopted(`it makes ${decoded.payments.length} payments, but must make exactly one`)
  return {
    kind,
    attempts,
    amount: payment.amount,
    to: payment.address,
    tag: payment.tag,
    resource: null,
  }
}

/** Returns the group of a cancellation whose transfer is known here. */
async function cancelOf(services: Services, attempts: Group['attempts']): Promise<Group> {
  const [{ recorded, workspaceId, network }] = attempts
  const row = await services.database.one<TransactionRow>(
    `select * from transactions where id::text = $1 and kind = 'WITHDRAWAL' and workspace_id = $2`,
    [recorded.transaction_id ?? '', workspaceId],
  )
  const asset = row && services.registry.asset(row.asset)
  if (!row || !asset || row.network !== network.code)
    throw new NotAdopted('it cancels a transfer that this database does not contain')
  return {
    id: row.id,
    kind: 'WITHDRAWAL',
    attempts,
    asset,
    amount: BigInt(row.amount),
    from: row.source_id as string,
    to: row.destination_id as string,
    tag: row.address_tag,
    sequenceId: row.sequence_id,
    ruleId: null,
    order: null,
    pathIndex: OMNIBUS_INDEX,
    resource: null,
  }
}
