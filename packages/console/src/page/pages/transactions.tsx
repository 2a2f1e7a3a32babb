import { useState } from 'preact/hooks'
import { assetNames } from '../api/assets.ts'
import { query } from '../api/http.ts'
import { mirror, ofSub, pageAt } from '../api/scope.ts'
import type { TransactionPage } from '../api/types.ts'
import { useRead } from '../api/use.ts'
import { Button, LinkButton } from '../parts/form.tsx'
import { FindBox } from '../parts/find-box.tsx'
import { Icon } from '../parts/icons.tsx'
import { Menu } from '../parts/menu.tsx'
import { Card, Empty, Page } from '../parts/page.tsx'
import { Pager, pageInQuery } from '../parts/table.tsx'
import { TransactionTable, typeWord } from '../parts/transaction-table.tsx'
import { SavedViews } from '../parts/saved-views.tsx'
import { statementAt, type StatementOf } from '../parts/statement-link.tsx'
import { go, place, withQuery } from '../router.ts'

const LIMIT = 50
const TYPES = [
  'Withdraw',
  'Deposit',
  'Sweep',
  'Fuel',
  'GasTankDeposit',
  'GasTankDrain',
  'Stake',
  'Unstake',
  'Release',
  'Consolidation',
  'EnergyLoan',
  'EnergyReturn',
]
const STATUSES = [
  ['pending', 'Pending'],
  ['confirmed', 'Confirmed'],
  ['failed', 'Failed'],
] as const
/** Filters of the API, and the dates, which it expects in seconds. */
const FILTERS = [
  'asset',
  'status',
  'type',
  'memo',
  'memo_begins',
  'id',
  'address',
  'sequence_id',
  'source_type',
  'source_id',
  'dest_type',
  'dest_id',
] as const
const DAY_S = 86_400

/** Converts the URL's query to the API's. Days are UTC; the day `to` is included. */
function filters(): Record<string, string | number | null> {
  const of = (name: string) => place.value.query.get(name)
  const seconds = (name: string) => {
    const at = Date.parse(`${of(name) ?? ''}T00:00:00Z`)
    return Number.isFinite(at) ? at / 1000 : null
  }
  const to = seconds('to')
  // Both bounds of the API are exclusive.
  const from = seconds('from')
  return {
    ...Object.fromEntries(FILTERS.map((name) => [name, of(name)])),
    after: from === null ? null : from - 1,
    before: to === null ? null : to + DAY_S,
  }
}

function Filters() {
  const { query: now } = place.value
  const set = (changes: Record<string, string | null>) =>
    go(withQuery({ ...changes, page: null }), 'replace')
  const more = [
    'type',
    'from',
    'to',
    'dest_id',
    'sequence_id',
    'source_type',
    'source_id',
    'dest_type',
  ]
  const [isMore, setMore] = useState(more.some((name) => now.get(name) !== null))
  const isAny = [...FILTERS, 'from', 'to'].some((name) => now.get(name) !== null)
  const text = (name: string, label: string, type: 'text' | 'date' = 'text') => (
    <label class="mini">
      <span>{label}</span>
      <input
        class="input"
        type={type as 'text'}
        value={now.get(name) ?? ''}
        onChange={(event) => set({ [name]: event.currentTarget.value.trim() })}
      />
    </label>
  )
  const choice = (name: string, label: string, options: readonly (readonly [string, string])[]) => (
    <label class="mini">
      <span>{label}</span>
      <select
        class="input"
        value={now.get(name) ?? ''}
        onChange={(event) => set({ [name]: event.currentTarget.value })}
      >
        <option value="">Any</option>
        {options.map(([value, word]) => (
          <option key={value} value={value} selected={now.get(name) === value}>
            {word}
          </option>
        ))}
      </select>
    </label>
  )
  const ends = [
    ['INTERNAL', 'Own wallet'],
    ['EXTERNAL', 'Outside'],
    ['GAS_TANK', 'Gas tank'],
    ['OMNIBUS', 'Omnibus'],
    ['STAKING', 'Staking'],
  ] as const
  return (
    <form
      class="filters"
      role="search"
      aria-label="Filter transactions"
      onSubmit={(event) => event.preventDefault()}
    >
      <div class="filters-row">
        <FindBox />
        <div class="switch" role="group" aria-label="Status">
          <button
            type="button"
            aria-pressed={now.get('status') === null}
            onClick={() => set({ status: null })}
          >
            All
          </button>
          {STATUSES.map(([value, word]) => (
            <button
              key={value}
              type="button"
              aria-pressed={now.get('status') === value}
              onClick={() => set({ status: value })}
            >
              {word}
            </button>
          ))}
        </div>
        <label class="mini is-inline">
          <span class="sr-only">Asset</span>
          <select
            class="input"
            value={now.get('asset') ?? ''}
            onChange={(event) => set({ asset: event.currentTarget.value })}
          >
            <option value="">All assets</option>
            {[...assetNames.value.keys()].map((asset) => (
              <option key={asset} value={asset} selected={now.get('asset') === asset}>
                {asset}
              </option>
            ))}
          </select>
        </label>
        <Button icon="filter" kind="quiet" aria-expanded={isMore} onClick={() => setMore(!isMore)}>
          More filters
        </Button>
        {isAny ? (
          <Button kind="quiet" onClick={() => go(place.value.path, 'replace')}>
            Clear
          </Button>
        ) : null}
      </div>
      {isMore ? (
        <div class="filters-more">
          {choice(
            'type',
            'Type',
            TYPES.map((type) => [type, typeWord(type)]),
          )}
          {text('from', 'From (UTC)', 'date')}
          {text('to', 'To (UTC)', 'date')}
          {text('dest_id', 'Destination')}
          {text('sequence_id', 'Sequence id')}
          {choice('source_type', 'Source', ends)}
          {choice('dest_type', 'Goes to', ends)}
          {text('source_id', 'Source id')}
        </div>
      ) : null}
    </form>
  )
}

/** Returns the statement of the period and the asset in the filters; without an asset that of all. */
function statementIn({ asset, after, before }: ReturnType<typeof filters>): StatementOf {
  return {
    ...(asset ? { asset: String(asset) } : {}),
    ...(typeof after === 'number' ? { from: after + 1 } : {}),
    ...(typeof before === 'number' ? { to: before } : {}),
  }
}

export function Transactions() {
  const values = filters()
  const statement = statementIn(values)
  const page = pageInQuery()
  const reading = useRead<TransactionPage>(
    mirror(`/dac/v1/transactions${query({ ...values, page, limit: LIMIT })}`),
    /^(?:transaction|deposit|staking)\./,
  )
  const isFiltered = Object.values(values).some((value) => value !== null)
  const exported = (format: string) => ofSub(`/transactions/export${query({ format, ...values })}`)
  return (
    <Page
      title="Transactions"
      actions={
        <>
          <Menu
            label="as a file"
            isEnd
            button={
              <span class="button">
                <Icon name="download" />
                <span>Export</span>
              </span>
            }
          >
            <a role="menuitem" href={exported('csv')} download>
              <span>CSV</span>
            </a>
            <a role="menuitem" href={exported('json')} download>
              <span>JSON</span>
            </a>
            <p class="menu-title muted">All that the filters let through, of any length.</p>
            <a role="menuitem" href={statementAt(statement)} download>
              <span>
                {statement.asset === undefined
                  ? 'Statements of all wallets (CSV)'
                  : `Statement of ${statement.asset} (CSV)`}
              </span>
            </a>
            <p class="menu-title muted">
              Every movement with its fees. The lines of an asset sum to its balance.
            </p>
          </Menu>
          <LinkButton href={pageAt('/batch')} icon="batch">
            Batch
          </LinkButton>
          <LinkButton href={pageAt('/send')} kind="primary" icon="send">
            Send
          </LinkButton>
        </>
      }
    >
      <Card isBare>
        <SavedViews page="transactions" />
        <Filters />
        <TransactionTable
          reading={reading}
          rows={reading.data?.data}
          empty={
            isFiltered ? (
              <Empty
                icon="search"
                title="Nothing fits these filters"
                action={
                  <Button onClick={() => go(place.value.path, 'replace')}>Clear the filters</Button>
                }
              />
            ) : (
              <Empty
                icon="transactions"
                title="No transactions yet"
                action={
                  <LinkButton href={pageAt('/wallets')} kind="primary">
                    Show the addresses
                  </LinkButton>
                }
              >
                Pay something to an address of yours, or send something: each is here within
                seconds.
              </Empty>
            )
          }
        />
        {reading.data === undefined ? null : (
          <Pager page={reading.data.page} limit={reading.data.limit} total={reading.data.total} />
        )}
      </Card>
    </Page>
  )
}
