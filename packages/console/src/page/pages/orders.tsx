import { useEffect, useState } from 'preact/hooks'
import { query, serverNow } from '../api/http.ts'
import { mirror, pageAt } from '../api/scope.ts'
import { sign } from '../api/sign.ts'
import type {
  Conversion,
  ExchangeAccount,
  Market,
  Order,
  Page as PageOf,
  Ticker,
} from '../api/types.ts'
import { useAction, useRead } from '../api/use.ts'
import { toast } from '../parts/announce.tsx'
import { Button, Choice, Dialog, LinkButton, onSubmit, Tabs, Text } from '../parts/form.tsx'
import { KeyNotice } from '../parts/key-notice.tsx'
import { Card, Empty, Facts, Page, ProblemNote } from '../parts/page.tsx'
import { amountError, amountOf, useSequence } from '../parts/pick.tsx'
import { Amount, Time } from '../parts/values.tsx'
import { Status } from '../parts/status.tsx'
import { pageInQuery, Pager, Table } from '../parts/table.tsx'
import { go, place, withQuery } from '../router.ts'

const LIMIT = 25
const STATUSES = [
  [null, 'All'],
  ['open', 'Open'],
  ['partially_filled', 'Partly filled'],
  ['filled', 'Filled'],
  ['cancelled', 'Cancelled'],
  ['rejected', 'Rejected'],
  ['unknown', 'Unknown'],
] as const

function NewOrder({
  accounts,
  onClose,
}: {
  accounts: readonly ExchangeAccount[]
  onClose(): void
}) {
  const [accountId, setAccount] = useState(
    place.value.query.get('exchange_account') ?? accounts[0]?.id ?? '',
  )
  const [marketName, setMarket] = useState('')
  const [side, setSide] = useState<'buy' | 'sell'>('buy')
  const [type, setType] = useState<'market' | 'limit'>('limit')
  const [text, setText] = useState('')
  const [priceText, setPrice] = useState('')
  const { sequence } = useSequence()
  const { isBusy, problem, run } = useAction()
  const account = accounts.find((each) => each.id === accountId) ?? accounts[0]
  const markets = useRead<{ data: Market[] }>(
    account === undefined
      ? null
      : mirror(`/dac/v1/markets${query({ exchange: account.exchange })}`),
  )
  const all = markets.data?.data.filter(({ active }) => active) ?? []
  const market =
    all.find((each) => each.market === marketName) ??
    all.find((each) => each.market === 'BTC/USD') ??
    all[0]
  const ticker = useRead<Ticker>(
    account === undefined || market === undefined
      ? null
      : mirror(`/dac/v1/ticker${query({ exchange: account.exchange, market: market.market })}`),
  )
  const [amount, price] = [amountOf(text), amountOf(priceText)]
  const error = (field: string) => (problem?.field === field ? problem.message : null)
  const submit = () =>
    run(async () => {
      const made = await sign<Order>('POST', '/dac/v1/orders', {
        exchange_account: account?.id,
        market: market?.market,
        side,
        type,
        amount,
        sequence_id: sequence,
        ...(type === 'limit' ? { price } : {}),
      })
      toast('The order is made')
      go(pageAt(`/orders/${made.id}`))
    })
  const bid = ticker.data
  return (
    <Dialog title="New order" onClose={onClose} isWide>
      <form class="grid-form" onSubmit={onSubmit(submit)}>
        <Choice
          label="Account"
          value={account?.id ?? ''}
          onValue={setAccount}
          options={accounts.map((each) => [each.id, `${each.label} (${each.exchange})`])}
        />
        <Choice
          label="Market"
          value={market?.market ?? ''}
          onValue={setMarket}
          options={all.map((each) => [each.market, each.market])}
          hint={
            bid === undefined ? (
              (ticker.problem?.message ?? markets.problem?.message ?? 'Asking the exchange')
            ) : (
              <>
                Bid <Amount value={bid.bid} /> · ask <Amount value={bid.ask} />
              </>
            )
          }
        />
        <div class="switch" role="group" aria-label="Side">
          {(['buy', 'sell'] as const).map((each) => (
            <button
              key={each}
              type="button"
              aria-pressed={side === each}
              onClick={() => setSide(each)}
            >
              {each === 'buy' ? 'Buy' : 'Sell'}
            </button>
          ))}
        </div>
        <div class="switch" role="group" aria-label="Type">
          {(['limit', 'market'] as const).map((each) => (
            <button
              key={each}
              type="button"
              aria-pressed={type === each}
              onClick={() => setType(each)}
            >
              {each === 'limit' ? 'At a price' : 'At the market'}
            </button>
          ))}
        </div>
        <Text
          label="Amount"
          value={text}
          onValue={setText}
          inputMode="decimal"
          suffix={market?.base}
          required
          maxLength={40}
          error={amountError(text) ?? error('amount')}
          hint={
            market === undefined ? undefined : (
              <>
                In steps of <Amount value={market.amount_step} />
                {market.min_amount === null ? null : (
                  <>
                    , at least <Amount value={market.min_amount} />
                  </>
                )}
              </>
            )
          }
        />
        {type === 'limit' ? (
          <Text
            label="Price"
            value={priceText}
            onValue={setPrice}
            inputMode="decimal"
            suffix={market?.quote}
            required
            maxLength={40}
            error={amountError(priceText) ?? error('price')}
            hint={
              market === undefined ? undefined : (
                <>
                  In steps of <Amount value={market.price_step} />
                </>
              )
            }
          />
        ) : (
          <p class="field-hint">
            At most half a percent worse than the best price, unless the platform’s limit is
            another.
          </p>
        )}
        <div class="is-wide">
          <KeyNotice />
        </div>
        {(error('amount') ?? error('price')) ? null : (
          <div class="is-wide">
            <ProblemNote problem={problem} />
          </div>
        )}
        <div class="form-end">
          <Button
            kind="primary"
            type="submit"
            icon="key"
            isBusy={isBusy}
            disabled={
              amount === null || market === undefined || (type === 'limit' && price === null)
            }
          >
            Sign and order
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

/** Returns the seconds until a time, updated every second. */
function useLeft(at: string | undefined): number | null {
  const [left, setLeft] = useState<number | null>(null)
  useEffect(() => {
    if (at === undefined) return setLeft(null)
    const tick = () => setLeft(Math.max(0, Math.ceil((Date.parse(at) - serverNow()) / 1000)))
    tick()
    const timer = setInterval(tick, 500)
    return () => clearInterval(timer)
  }, [at])
  return left
}

function Convert({ onClose }: { onClose(): void }) {
  const [from, setFrom] = useState('BTC')
  const [to, setTo] = useState('USD')
  const [text, setText] = useState('')
  const [quote, setQuote] = useState<Conversion | null>(null)
  const { isBusy, problem, run } = useAction()
  const left = useLeft(quote?.expires_at)
  const amount = amountOf(text)
  const error = (field: string) => (problem?.field === field ? problem.message : null)
  const ask = () =>
    run(async () => {
      setQuote(
        await sign<Conversion>('POST', '/dac/v1/conversions/quote', {
          from_asset: from.trim().toUpperCase(),
          to_asset: to.trim().toUpperCase(),
          amount,
        }),
      )
    })
  const take = () =>
    run(async () => {
      const done = await sign<Conversion>('POST', '/dac/v1/conversions', { quote: quote?.id })
      toast('The conversion is ordered')
      if (done.order !== null) go(pageAt(`/orders/${done.order.id}`))
    })
  return (
    <Dialog title="Convert" onClose={onClose}>
      <form class="stack" onSubmit={onSubmit(quote === null || left === 0 ? ask : take)}>
        <Text
          label="Give"
          value={text}
          onValue={(value) => (setText(value), setQuote(null))}
          inputMode="decimal"
          required
          maxLength={40}
          error={amountError(text) ?? error('amount')}
        />
        <Text
          label="Of"
          value={from}
          onValue={(value) => (setFrom(value), setQuote(null))}
          required
          maxLength={20}
          error={error('from_asset')}
          hint="Ticker of the coin at exchanges"
        />
        <Text
          label="For"
          value={to}
          onValue={(value) => (setTo(value), setQuote(null))}
          required
          maxLength={20}
          error={error('to_asset')}
        />
        {quote === null ? null : (
          <>
            <p class="total">
              <Amount value={quote.receive} of={quote.to_asset} />
            </p>
            <Facts
              of={[
                ['Best at', quote.exchange],
                ['Market', quote.market],
                quote.price === null ? null : ['Price', <Amount key="price" value={quote.price} />],
                ['Never worse than', <Amount key="limit" value={quote.limit_price} />],
                ...quote.others.map((each): [string, string] => [
                  `At ${each.exchange}`,
                  each.receive ?? each.reason ?? '–',
                ]),
              ]}
            />
          </>
        )}
        <KeyNotice />
        <ProblemNote problem={problem?.field === null ? problem : null} />
        <div class="row">
          {quote === null || left === 0 ? (
            <Button
              kind="primary"
              type="submit"
              icon="key"
              isBusy={isBusy}
              disabled={amount === null}
            >
              {quote === null
                ? 'Ask what it comes to'
                : 'The quote has expired. Request a new one.'}
            </Button>
          ) : (
            <Button kind="primary" type="submit" icon="key" isBusy={isBusy}>
              Convert, {left} s left
            </Button>
          )}
        </div>
      </form>
    </Dialog>
  )
}

/** Page of orders at exchanges. */
export function Orders() {
  const { query: now } = place.value
  const [status, account] = [now.get('status'), now.get('exchange_account')]
  const accounts = useRead<PageOf<ExchangeAccount>>(
    mirror('/dac/v1/exchange-accounts?limit=100'),
    /^exchange_account\./,
  )
  const orders = useRead<PageOf<Order>>(
    mirror(
      `/dac/v1/orders${query({ status, exchange_account: account, page: pageInQuery(), limit: LIMIT })}`,
    ),
    /^order\./,
  )
  const [dialog, setDialog] = useState<'order' | 'convert' | null>(null)
  const linked = accounts.data?.data ?? []
  const name = (id: string) => linked.find((each) => each.id === id)?.label
  const none = linked.length === 0
  return (
    <Page
      title="Orders"
      lead={account === null ? 'At all linked exchanges.' : `At ${name(account) ?? 'one account'}.`}
      back={{ href: pageAt('/exchanges'), word: 'Exchanges' }}
      actions={
        <>
          <Button onClick={() => setDialog('convert')} disabled={none}>
            Convert
          </Button>
          <Button kind="primary" icon="plus" onClick={() => setDialog('order')} disabled={none}>
            New order
          </Button>
        </>
      }
    >
      <Card isBare>
        <div class="pad">
          <Tabs
            label="Which orders"
            of={STATUSES.map(([state, word]) => ({
              href: withQuery({ status: state, page: null }),
              word,
              isOpen: status === state,
            }))}
          />
        </div>
        <Table
          label="Orders"
          reading={orders}
          rows={orders.data?.data}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => pageAt(`/orders/${id}`)}
          columns={[
            { head: 'Market', cell: ({ market }) => market },
            {
              head: 'Side',
              cell: ({ side, type }) =>
                `${side === 'buy' ? 'Buy' : 'Sell'}${type === 'market' ? ' at the market' : ''}`,
            },
            { head: 'State', cell: ({ status: state }) => <Status of={state} /> },
            {
              head: 'Amount',
              isNumber: true,
              cell: ({ amount, market }) => <Amount value={amount} of={market.split('/')[0]} />,
            },
            {
              head: 'Filled',
              isNumber: true,
              isMinor: true,
              cell: ({ filled }) => <Amount value={filled} />,
            },
            {
              head: 'Price',
              isNumber: true,
              isMinor: true,
              cell: ({ price, average_price: average }) => <Amount value={average ?? price} />,
            },
            {
              head: 'At',
              isMinor: true,
              cell: ({ exchange_account: id, exchange }) => name(id) ?? exchange,
            },
            { head: 'Made', isMinor: true, cell: ({ created_at: at }) => <Time at={at} /> },
          ]}
          empty={
            status !== null ? (
              <Empty
                icon="search"
                title="None of these"
                action={<LinkButton href={withQuery({ status: null })}>Show all</LinkButton>}
              />
            ) : (
              <Empty
                icon="exchange"
                title="No orders yet"
                action={
                  none ? (
                    <LinkButton href={pageAt('/exchanges')} kind="primary">
                      Link an exchange account
                    </LinkButton>
                  ) : undefined
                }
              >
                An order is sent once, and asked for until its end is known.
              </Empty>
            )
          }
        />
        {orders.data === undefined ? null : <Pager {...orders.data} />}
      </Card>
      {dialog === 'order' ? <NewOrder accounts={linked} onClose={() => setDialog(null)} /> : null}
      {dialog === 'convert' ? <Convert onClose={() => setDialog(null)} /> : null}
    </Page>
  )
}
