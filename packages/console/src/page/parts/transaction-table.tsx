import type { ComponentChildren } from 'preact'
import { pageAt } from '../api/scope.ts'
import type { Transaction } from '../api/types.ts'
import type { Reading } from '../api/use.ts'
import { AssetName, Id, Time } from './values.tsx'
import { TransactionStatus } from './status.tsx'
import { Table, type Column } from './table.tsx'
import { TRANSACTION_WORTH } from '../worth/worth.tsx'

const TYPES: Record<string, string> = {
  Withdraw: 'Withdrawal',
  GasTankDeposit: 'Tank deposit',
  GasTankDrain: 'Tank drain',
  EnergyLoan: 'Energy loan',
  EnergyReturn: 'Energy return',
}
export const typeWord = (type: string): string => TYPES[type] ?? type

const COLUMNS: readonly Column<Transaction>[] = [
  {
    head: 'Status',
    cell: ({ status, sub_status: sub }) => <TransactionStatus status={status} sub={sub} />,
  },
  { head: 'Type', cell: ({ type }) => typeWord(type), isMinor: true },
  { head: 'Asset', cell: ({ asset }) => <AssetName of={asset} />, isMinor: true },
  TRANSACTION_WORTH.amount,
  TRANSACTION_WORTH.worth,
  {
    head: 'Destination',
    isMinor: true,
    cell: ({ destination_id: to }) => <Id value={to} label="destination" />,
  },
  {
    head: 'Memo',
    isMinor: true,
    cell: ({ memo }) =>
      memo === '' ? <span class="muted">–</span> : <span class="cut">{memo}</span>,
  },
  { head: 'When', cell: ({ created_at: at }) => <Time at={at} /> },
]

/** Table of transactions, each with a link to its timeline. */
export function TransactionTable({
  reading,
  rows,
  empty,
}: {
  reading: Pick<Reading<unknown>, 'problem' | 'reload'>
  rows: readonly Transaction[] | undefined
  empty: ComponentChildren
}) {
  return (
    <Table
      label="Transactions"
      reading={reading}
      rows={rows}
      columns={COLUMNS}
      keyOf={({ id }) => id}
      hrefOf={({ id }) => pageAt(`/transactions/${id}`)}
      empty={empty}
    />
  )
}
