import { pageAt } from '../api/scope.ts'
import type { ExchangeTransfer } from '../api/types.ts'
import type { Reading } from '../api/use.ts'
import { Empty } from './page.tsx'
import { Amount, Time } from './values.tsx'
import { Status } from './status.tsx'
import { Table } from './table.tsx'

/** Table of transfers to and from exchanges. */
export function TransfersTable({
  reading,
  rows,
}: {
  reading: Pick<Reading<unknown>, 'problem' | 'reload'>
  rows: readonly ExchangeTransfer[] | undefined
}) {
  return (
    <Table
      label="Transfers to and from exchanges"
      reading={reading}
      rows={rows}
      keyOf={({ id }) => id}
      columns={[
        {
          head: 'What',
          cell: ({ direction, exchange }) =>
            direction === 'to_exchange' ? `To ${exchange}` : `From ${exchange}`,
        },
        {
          head: 'Amount',
          isNumber: true,
          cell: ({ amount, asset }) => <Amount value={amount} of={asset} />,
        },
        {
          head: 'State',
          cell: ({ status, overdue, reason }) => (
            <span title={reason ?? undefined}>
              {overdue && status === 'pending' ? (
                <Status of="warn" word="Overdue" />
              ) : (
                <Status of={status} />
              )}
            </span>
          ),
        },
        {
          head: 'Arrived',
          isNumber: true,
          isMinor: true,
          cell: ({ credited, asset }) => <Amount value={credited} of={asset} />,
        },
        {
          head: 'On the chain',
          isMinor: true,
          cell: ({ transaction_id: id }) =>
            id === null ? (
              <span class="muted">–</span>
            ) : (
              <a href={pageAt(`/transactions/${id}`)}>Transaction</a>
            ),
        },
        { head: 'Made', isMinor: true, cell: ({ created_at: at }) => <Time at={at} /> },
      ]}
      empty={<Empty icon="exchange" title="Nothing was moved yet" />}
    />
  )
}
