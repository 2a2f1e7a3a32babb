import { amountText } from '../amounts.ts'
import { mirror, pageAt } from '../api/scope.ts'
import { sign } from '../api/sign.ts'
import type { OrderWithFills } from '../api/types.ts'
import { useAction, useRead } from '../api/use.ts'
import { toast } from '../parts/announce.tsx'
import { Button } from '../parts/form.tsx'
import { Card, Empty, Facts, Note, Page, ProblemNote, Skeleton } from '../parts/page.tsx'
import { Amount, Id, Time, Usd } from '../parts/values.tsx'
import { Status } from '../parts/status.tsx'
import { Table } from '../parts/table.tsx'

const OPEN = new Set(['open', 'partially_filled', 'unknown'])

export function OrderPage({ id }: { id: string }) {
  const path = `/dac/v1/orders/${encodeURIComponent(id)}`
  const reading = useRead<OrderWithFills>(mirror(path), /^order\./)
  const { isBusy, problem, run } = useAction()
  const order = reading.data
  const back = { href: pageAt('/orders'), word: 'Orders' }
  if (order === undefined) {
    return (
      <Page title="Order" back={back}>
        {reading.problem === null ? (
          <Skeleton lines={6} />
        ) : (
          <ProblemNote problem={reading.problem} retry={reading.reload} />
        )}
      </Page>
    )
  }
  const [base, quote] = order.market.split('/')
  return (
    <Page
      title={`${order.side === 'buy' ? 'Buy' : 'Sell'} ${order.market}`}
      back={back}
      lead={<Status of={order.status} />}
      actions={
        OPEN.has(order.status) ? (
          <Button
            kind="danger"
            isBusy={isBusy}
            disabled={order.cancel_requested}
            onClick={() =>
              run(async () => {
                await sign('POST', `${path}/cancel`, {})
                toast('The exchange is asked to cancel it')
                reading.reload()
              })
            }
          >
            {order.cancel_requested ? 'Being cancelled' : 'Cancel'}
          </Button>
        ) : undefined
      }
    >
      <ProblemNote problem={problem} />
      {order.status === 'unknown' ? (
        <Note tone="warn">
          <p>
            The exchange has not said what became of it. It is asked until that is known, and sent
            no second time.
          </p>
        </Note>
      ) : null}
      {order.reason === null ? null : (
        <Note tone={order.status === 'rejected' ? 'bad' : 'info'}>
          <p>{order.reason}</p>
        </Note>
      )}
      <Card>
        <p class="total">
          <Amount value={order.filled} of={base} />
          <span class="total-usd muted">
            {' '}
            of <Amount value={order.amount} of={base} />
          </span>
        </p>
        <progress
          value={Number(order.filled)}
          max={Number(order.amount) || 1}
          aria-label="Filled"
        />
        <Facts
          of={[
            ['Type', order.type === 'market' ? 'At the market' : 'At a price'],
            order.price === null
              ? null
              : ['Price', <Amount key="price" value={order.price} of={quote} />],
            order.protection_price === null
              ? null
              : [
                  'Never worse than',
                  <Amount key="worst" value={order.protection_price} of={quote} />,
                ],
            ['Average price', <Amount key="average" value={order.average_price} of={quote} />],
            ['Cost', <Amount key="cost" value={order.cost} of={quote} />],
            [
              'Fees of the exchange',
              order.fees.length === 0
                ? '–'
                : order.fees.map((fee) => `${amountText(fee.amount)} ${fee.asset}`).join(', '),
            ],
            ['Platform fee', <Usd key="platform" value={order.platform_fee} />],
            ['Time in force', order.time_in_force + (order.post_only ? ', post only' : '')],
            [
              'Account',
              <a key="account" href={pageAt(`/exchanges/${order.exchange_account}`)}>
                {order.exchange}
              </a>,
            ],
            [
              'Id at the exchange',
              <Id key="theirs" value={order.exchange_order_id} label="exchange’s id" />,
            ],
            [
              'Client order id',
              <Id key="client" value={order.client_order_id} label="client order id" />,
            ],
            ['Order', <Id key="id" value={order.id} label="order id" />],
            order.sequence_id === null
              ? null
              : [
                  'Sequence id',
                  <Id key="sequence" value={order.sequence_id} label="sequence id" />,
                ],
            ['Made', <Time key="made" at={order.created_at} isLong />],
            ['Last change', <Time key="changed" at={order.updated_at} isLong />],
          ]}
        />
      </Card>
      <Card title="Fills" isBare>
        <Table
          label="Fills"
          reading={reading}
          rows={order.fills}
          keyOf={({ id: fill }) => fill}
          columns={[
            { head: 'When', cell: ({ at }) => <Time at={at} isLong /> },
            {
              head: 'Amount',
              isNumber: true,
              cell: ({ amount }) => <Amount value={amount} of={base} />,
            },
            {
              head: 'Price',
              isNumber: true,
              cell: ({ price }) => <Amount value={price} of={quote} />,
            },
            {
              head: 'Cost',
              isNumber: true,
              isMinor: true,
              cell: ({ cost }) => <Amount value={cost} of={quote} />,
            },
            {
              head: 'Fee',
              isNumber: true,
              isMinor: true,
              cell: ({ fee, fee_asset: of }) => <Amount value={fee} of={of} />,
            },
            {
              head: 'Side',
              isMinor: true,
              cell: ({ maker }) =>
                maker === null ? <span class="muted">–</span> : maker ? 'Maker' : 'Taker',
            },
          ]}
          empty={<Empty icon="exchange" title="No fills" />}
        />
      </Card>
    </Page>
  )
}
