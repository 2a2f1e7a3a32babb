// Components that display an amount together with its value. The value is computed here from the
// displayed amount, so the two cannot come from different readings. `worth.test.ts` refuses values
// that are displayed in another way.
import type { ComponentChildren } from 'preact'
import { usd } from '../amounts.ts'
import { worth } from '../api/decimal.ts'
import type { Decimal, Overview, Transaction } from '../api/types.ts'
import { isOutgoing } from './outgoing.ts'
import { Amount, Dollars, isPhone } from '../parts/values.tsx'
import type { Column } from '../parts/table.tsx'

/** An amount of an asset and the price of one unit in US dollars; `price` null: not known. */
export interface Valued {
  amount: Decimal | null
  asset: string
  price: Decimal | null
}

/** Value of an amount at a price, to the cent; a dash if one of them is not known. */
export const Worth = ({ amount, price }: Pick<Valued, 'amount' | 'price'>) => (
  <Dollars value={amount === null || price === null ? null : worth(amount, price)} />
)

/**
 * An amount followed by its value, if the price is known.
 * @param before text before the amount, for example a sign
 * @param isExact all digits also on phones
 */
export function AmountWorth({
  of,
  before = '',
  isExact = false,
}: {
  of: Valued
  before?: string
  isExact?: boolean
}) {
  return (
    <>
      {before}
      <Amount value={of.amount} of={of.asset} isExact={isExact} />
      {of.price === null || of.amount === null ? null : (
        <>
          {' '}
          <span class="total-usd muted">
            <Worth {...of} />
          </span>
        </>
      )}
    </>
  )
}

/**
 * Item of `Figures` with an amount and its value below it.
 * @param more displayed below the value
 */
export function worthFigure(name: string, of: Valued, more: ComponentChildren = null) {
  return {
    name,
    value: <Amount value={of.amount} of={of.asset} />,
    note: (
      <>
        {of.price === null ? null : <Worth {...of} />}
        {more}
      </>
    ),
  }
}

/** An amount, and on a phone its value below it. */
const AmountOverWorth = ({ of }: { of: Valued }) => (
  <>
    <Amount value={of.amount} of={of.asset} />
    {isPhone.value ? (
      <div class="muted worth">
        <Worth {...of} />
      </div>
    ) : null}
  </>
)

/**
 * The two columns of an amount and its value, for a table whose rows open a page. On a phone the
 * value is below the amount.
 * @param of the amount of a row
 * @param heads names of the columns
 */
function worthColumns<Row>(
  heads: { amount: string; worth: string },
  of: (row: Row) => Valued,
): { amount: Column<Row>; worth: Column<Row> } {
  return {
    amount: {
      head: heads.amount,
      isNumber: true,
      cell: (row) => <AmountOverWorth of={of(row)} />,
    },
    worth: {
      head: heads.worth,
      isNumber: true,
      isElsewhere: true,
      cell: (row) => <Worth {...of(row)} />,
    },
  }
}

type Balance = Overview['balances'][number]

/** Columns of the total balance of an asset and its value. */
export const BALANCE = worthColumns(
  { amount: 'Balance', worth: 'Value' },
  ({ balance: amount, asset, price_usd: price }: Balance) => ({ amount, asset, price }),
)

/** Returns balances by their value, the largest first. */
export const sortedByWorth = (balances: readonly Balance[] | undefined): Balance[] | undefined =>
  balances?.toSorted(
    (a, b) =>
      Number(b.balance) * Number(b.price_usd ?? 0) - Number(a.balance) * Number(a.price_usd ?? 0),
  )

type Recorded = Pick<Transaction, 'amount' | 'asset' | 'type' | 'amount_in_usd'>

/** The amount of a transaction, followed by the value that was recorded with this amount. */
export const TransactionWorth = ({ of }: { of: Recorded }) => (
  <>
    {isOutgoing(of) ? '−' : '+'}
    <Amount value={of.amount} of={of.asset} />
    {of.amount_in_usd === null ? null : (
      <>
        {' '}
        <span class="total-usd muted">
          <Dollars value={of.amount_in_usd} /> at the time
        </span>
      </>
    )}
  </>
)

/** Columns of the amount of a transaction and the value that was recorded with this amount. */
export const TRANSACTION_WORTH: { amount: Column<Transaction>; worth: Column<Transaction> } = {
  amount: {
    head: 'Amount',
    isNumber: true,
    cell: (of) => (
      <Amount value={isOutgoing(of) ? `-${of.amount}` : of.amount} of={of.asset} isSigned />
    ),
  },
  worth: {
    head: 'Value at that time',
    isNumber: true,
    isMinor: true,
    cell: ({ amount_in_usd: value }) => <Dollars value={value} />,
  },
}

/** All digits of the value that was recorded with a transaction; null if none was. */
export const recordedWorth = ({ amount_in_usd: value }: Recorded): string | null =>
  value === null ? null : usd(value)
