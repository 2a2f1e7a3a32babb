import { formatAmount, type Registry } from '@custody/chains'
import { JsonNumber, parseJson } from '@custody/request-auth'
import type { Queryable } from '../../core/database/pool.ts'
import { presentTransaction } from '../../core/engine/present.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import type { Published } from '../events/publish.ts'
import { exact } from '../../core/decimals.ts'

interface Services {
  registry: Registry
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Fields of the classic format that are not in the API's representation of a transaction. */
type Beyond = Pick<
  Row,
  'kind' | 'network' | 'fee_asset' | 'sub_account_id' | 'sub_account' | 'fuel' | 'request'
>
type ClassicTransaction = ReturnType<typeof presentTransaction>
type Row = TransactionRow & {
  sub_account: string | null
  sub_account_number: number | null
  fuel: string | null
}

/**
 * Returns the data of transaction and deposit events in the format of earlier integrations, by the
 * event's uid; other events keep their own format. Fields that are not in the event are read when
 * the event is published.
 */
export async function classicData(
  services: Services,
  tx: Queryable,
  events: readonly Published[],
): Promise<Map<string, object>> {
  const ours = events.filter(
    ({ type, object }) => /^(transaction|deposit)\./.test(type) && UUID.test(object),
  )
  if (ours.length === 0) return new Map()
  const rows = new Map(
    (
      await tx.query<Row>(
        `select t.*, t.amount::text amount, t.fee::text fee, s.name sub_account,
          s.path_index sub_account_number,
       (select sum(trunc(f.fee / greatest(1, (select count(*) from fuel_parts p
            where p.workspace_id = f.workspace_id and p.fuel_id = f.id))))::text
        from transactions f where f.workspace_id = t.workspace_id and f.kind = 'FUEL'
          and f.status = 'confirmed' and f.id in (
          select id from transactions where workspace_id = t.workspace_id and parent_id = t.id
          union select fuel_id from fuel_parts where workspace_id = t.workspace_id
            and transaction_id = t.id)) fuel
     from transactions t left join sub_accounts s on s.workspace_id = t.workspace_id
       and s.id = t.sub_account_id
     where t.workspace_id = any($2) and t.id = any($1)`,
        [
          [...new Set(ours.map(({ object }) => object))],
          [...new Set(ours.map(({ workspaceId }) => workspaceId))],
        ],
      )
    ).map((row) => [row.id, row]),
  )
  return new Map(
    ours.flatMap((event) => {
      const row = rows.get(event.object)
      return row
        ? [
            [
              event.uid,
              classicOf(services, row, parseJson(event.payload) as Record<string, unknown>),
            ] as const,
          ]
        : []
    }),
  )
}

const seconds = (iso: string): number => Math.floor(Date.parse(iso) / 1000)
/** Formats a time as `2026-01-31 12:00:00`, in UTC. */
const utc = (iso: string): string => new Date(iso).toISOString().slice(0, 19).replace('T', ' ')

/**
 * Returns the classic data of an event.
 * @param reported the event's data; fields that it does not have are the current ones
 */
function classicOf(
  services: Services,
  row: Row,
  reported: Record<string, unknown>,
): Record<string, unknown> {
  return classicShape(services, row, {
    ...presentTransaction(row, services.registry),
    ...reported,
  } as ClassicTransaction)
}

/**
 * Returns the classic format of a transaction.
 * @param shown the API's representation
 */
export function classicShape(
  { registry }: Services,
  row: Beyond,
  shown: ClassicTransaction,
): Record<string, unknown> {
  const network = registry.network(row.network)
  const native = registry.asset(row.fee_asset)
  const isDeposit = row.kind === 'DEPOSIT'
  const zero = new JsonNumber('0')
  const alias = (type: string): string | null => (type === 'INTERNAL' ? 'Omnibus Wallet' : null)
  const explorer = network?.explorer_transaction_url
  return {
    id: shown.id,
    sub_account: { id: row.sub_account_id, title: row.sub_account },
    type: shown.type,
    asset: shown.asset,
    amount: shown.amount,
    amount_in_usd: shown.amount_in_usd,
    network_fee: shown.fee,
    // Fees are charged in addition to the amount, never deducted from it.
    nett: shown.amount,
    fees: {
      sweep_fee: zero,
      refill_fee:
        row.fuel === null ? zero : exact(formatAmount(BigInt(row.fuel), native?.decimals ?? 18)),
      withdrawal_fee: shown.platform_fee ?? zero,
    },
    hash: shown.hash,
    source_type: shown.source_type,
    source_id: shown.source_id,
    source_alias: alias(shown.source_type),
    dest_type: shown.destination_type,
    dest_id: shown.destination_id,
    dest_alias: alias(shown.destination_type),
    dest_outputs:
      shown.destination_id === null
        ? []
        : [
            {
              address: shown.destination_id,
              address_tag: shown.address_tag,
              amount: shown.amount,
            },
          ],
    memo: shown.memo,
    sequence_id: shown.sequence_id,
    created_on_utc: utc(shown.created_at),
    created_timestamp_utc: seconds(shown.created_at),
    status: shown.status,
    confirmations: { required: network?.confirmations ?? null, actual: shown.confirmations },
    explorer_url: shown.hash !== null && explorer !== undefined ? `${explorer}${shown.hash}` : null,
    last_updated_on_utc: utc(shown.updated_at),
    tx_key: null,
    failure_reason: shown.failure_reason,
    approvals: [],
    aml: { cid: null, risk_score: null },
    created_by: isDeposit ? null : { name: row.request?.api_key ?? null, email: null },
    cancelled_by: null,
  }
}
