import { amountText, usd } from '../amounts.ts'
import { useState } from 'preact/hooks'
import { query } from '../api/http.ts'
import { mirror, ofSub, pageAt } from '../api/scope.ts'
import { sign } from '../api/sign.ts'
import type { Invoice, InvoiceSettings, Overview, Page as PageOf } from '../api/types.ts'
import { useAction, useRead } from '../api/use.ts'
import { exact } from '../api/wire.ts'
import { toast } from '../parts/announce.tsx'
import { Button, Dialog, onSubmit, Tabs, Text } from '../parts/form.tsx'
import { KeyNotice } from '../parts/key-notice.tsx'
import { Card, Empty, Page, ProblemNote, Skeleton } from '../parts/page.tsx'
import { amountError, amountOf, AssetChoice, NO_DECIMAL, useSequence } from '../parts/pick.tsx'
import { Amount, Time } from '../parts/values.tsx'
import { Status } from '../parts/status.tsx'
import { pageInQuery, Pager, Table } from '../parts/table.tsx'
import { go, place, withQuery } from '../router.ts'

const LIMIT = 25
const STATUSES = [
  [null, 'All'],
  ['Pending', 'Pending'],
  ['Processing', 'Processing'],
  ['Paid', 'Paid'],
  ['Expired', 'Expired'],
  ['Invalid', 'Invalid'],
] as const

/** The requested amount in its original currency. */
export function RequestedAmount({
  invoice,
}: {
  invoice: Pick<Invoice, 'fiat' | 'fiat_amount' | 'asset' | 'crypto_amount' | 'assets'>
}) {
  const [only] = invoice.assets
  return invoice.fiat_amount === null ? (
    <Amount
      value={invoice.crypto_amount ?? only?.crypto_amount}
      of={invoice.asset ?? only?.asset}
    />
  ) : (
    <span class="amount">
      {invoice.fiat === 'USD'
        ? usd(invoice.fiat_amount)
        : `${amountText(invoice.fiat_amount)} ${invoice.fiat}`}
    </span>
  )
}

/** Status of an invoice and its irregularities. */
export function InvoiceStatusOf({
  invoice,
}: {
  invoice: Pick<Invoice, 'inv_status' | 'exception'>
}) {
  return (
    <>
      {<Status of={invoice.inv_status} />}
      {invoice.exception === null ? null : (
        <>
          {' '}
          <Status of={invoice.exception} />
        </>
      )}
    </>
  )
}

function NewInvoice({ assets, onClose }: { assets: readonly string[]; onClose(): void }) {
  const [unit, setUnit] = useState('USD')
  const [entered, setAmount] = useState('')
  const [offered, setOffered] = useState<ReadonlySet<string>>(new Set())
  const [order, setOrder] = useState('')
  const [memo, setMemo] = useState('')
  const [email, setEmail] = useState('')
  const [minutes, setMinutes] = useState('30')
  const { sequence } = useSequence()
  const { isBusy, problem, run } = useAction()
  const amount = amountOf(entered)
  const life = /^\d{1,5}$/.test(minutes.trim()) && Number(minutes) > 0 ? Number(minutes) * 60 : null
  const submit = () =>
    run(async () => {
      const what =
        unit === 'USD'
          ? {
              fiat: 'USD',
              fiat_amount: amount,
              ...(offered.size === 0 ? {} : { assets: [...offered] }),
            }
          : { asset: unit, amount }
      const made = await sign<Invoice>('POST', '/dac/v1/invoices', {
        ...what,
        expires_in: life,
        sequence_id: sequence,
        ...(order.trim() === '' ? {} : { order_id: order.trim() }),
        ...(memo.trim() === '' ? {} : { memo: memo.trim() }),
        ...(email.trim() === '' ? {} : { payer: { email: email.trim() } }),
      })
      toast('The invoice is made')
      go(pageAt(`/invoices/${made.inv_id}`))
    })
  const toggle = (asset: string) =>
    setOffered(
      (before) =>
        new Set(
          before.has(asset) ? [...before].filter((each) => each !== asset) : [...before, asset],
        ),
    )
  return (
    <Dialog title="New invoice" onClose={onClose} isWide>
      <form class="grid-form" onSubmit={onSubmit(submit)}>
        <AssetChoice
          label="Counted in"
          value={unit}
          onValue={setUnit}
          of={['USD', ...assets]}
          hint={unit === 'USD' ? 'Rates stay until it expires' : 'No price is required'}
        />
        <Text
          label="Amount"
          value={entered}
          onValue={setAmount}
          inputMode="decimal"
          suffix={unit}
          required
          maxLength={60}
          error={amountError(entered)}
        />
        {unit === 'USD' ? (
          <fieldset class="field is-wide">
            <legend class="label">The payer may choose</legend>
            <div class="row">
              {assets.map((asset) => (
                <button
                  key={asset}
                  type="button"
                  class="button small"
                  aria-pressed={offered.has(asset)}
                  onClick={() => toggle(asset)}
                >
                  {offered.has(asset) ? '✓ ' : ''}
                  {asset}
                </button>
              ))}
            </div>
            <p class="field-hint">
              {offered.size === 0
                ? 'Everything that has a wallet and a price'
                : `${offered.size} chosen`}
            </p>
          </fieldset>
        ) : null}
        <Text
          label="Order"
          value={order}
          onValue={setOrder}
          maxLength={200}
          hint="Your own number; the payer sees it"
        />
        <Text
          label="Expires after"
          value={minutes}
          onValue={setMinutes}
          inputMode="numeric"
          suffix="minutes"
          required
          error={
            life === null
              ? 'A whole number of minutes.'
              : problem?.field === 'expires_in'
                ? problem.message
                : null
          }
        />
        <Text
          label="Memo"
          value={memo}
          onValue={setMemo}
          maxLength={1000}
          hint="Visible to the payer"
        />
        <Text
          label="Payer’s e-mail"
          type="email"
          value={email}
          onValue={setEmail}
          maxLength={320}
          hint="Not visible to the payer"
        />
        <div class="is-wide">
          <KeyNotice />
        </div>
        <div class="is-wide">
          <ProblemNote problem={problem} />
        </div>
        <div class="form-end">
          <Button
            kind="primary"
            type="submit"
            icon="key"
            isBusy={isBusy}
            disabled={amount === null || life === null}
          >
            Make the invoice
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

function Settings() {
  const settings = useRead<InvoiceSettings>(mirror('/dac/v1/invoice-settings'))
  return (
    <Card title="Settings" lead="For all invoices of the workspace.">
      <ProblemNote problem={settings.problem} retry={settings.reload} />
      {settings.data === undefined ? (
        settings.problem === null ? (
          <Skeleton lines={3} />
        ) : null
      ) : (
        <SettingsForm
          key={JSON.stringify(settings.data)}
          of={settings.data}
          onSaved={settings.reload}
        />
      )}
    </Card>
  )
}

function SettingsForm({ of, onSaved }: { of: InvoiceSettings; onSaved(): void }) {
  const [name, setName] = useState(of.display_name ?? '')
  const [origins, setOrigins] = useState(of.allowed_origins.join(', '))
  const [tolerance, setTolerance] = useState(String(of.tolerance))
  const [minutes, setMinutes] = useState(String(Math.round(Number(of.expires_in) / 60)))
  const { isBusy, problem, run } = useAction()
  const error = (field: string) =>
    problem?.field?.startsWith(field) === true ? problem.message : null
  const isKnown = ['display_name', 'allowed_origins', 'tolerance', 'expires_in'].some(
    (field) => error(field) !== null,
  )
  const submit = () =>
    run(async () => {
      await sign('PUT', '/dac/v1/invoice-settings', {
        display_name: name.trim() === '' ? null : name.trim(),
        allowed_origins: origins.split(/[\s,]+/).filter((each) => each !== ''),
        tolerance: exact(tolerance),
        expires_in: Math.round(Number(minutes) * 60),
        confirmations: of.confirmations.map((each) => ({
          from_usd: exact(String(each.from_usd)),
          confirmations: each.confirmations,
        })),
      })
      toast('Saved')
      onSaved()
    })
  return (
    <form class="grid-form" onSubmit={onSubmit(submit)}>
      <Text
        label="Name that payers see"
        value={name}
        onValue={setName}
        maxLength={100}
        error={error('display_name')}
      />
      <Text
        label="Pages that may show the checkout"
        value={origins}
        onValue={setOrigins}
        maxLength={2000}
        placeholder="https://shop.example"
        error={error('allowed_origins')}
        hint="Origins, separated by commas"
      />
      <Text
        label="May be missing"
        value={tolerance}
        onValue={setTolerance}
        inputMode="decimal"
        suffix="%"
        error={error('tolerance') ?? (exact(tolerance) === null ? NO_DECIMAL : null)}
      />
      <Text
        label="Expires after"
        value={minutes}
        onValue={setMinutes}
        inputMode="numeric"
        suffix="minutes"
        error={error('expires_in')}
      />
      {isKnown ? null : (
        <div class="is-wide">
          <ProblemNote problem={problem} />
        </div>
      )}
      <div class="form-end">
        <Button
          type="submit"
          icon="key"
          isBusy={isBusy}
          disabled={exact(tolerance) === null || !/^\d+$/.test(minutes.trim())}
        >
          Save
        </Button>
      </div>
    </form>
  )
}

/** Page of invoices. */
export function Invoices() {
  const { query: now } = place.value
  const [status, order] = [now.get('status'), now.get('order_id')]
  const list = useRead<PageOf<Invoice>>(
    mirror(
      `/dac/v1/invoices${query({ status, order_id: order, page: pageInQuery(), limit: LIMIT })}`,
    ),
    /^invoice\./,
  )
  const overview = useRead<Overview>(ofSub('/overview'))
  const [isMaking, setMaking] = useState(now.get('new') !== null)
  const assets = overview.data?.balances.map(({ asset }) => asset) ?? []
  const make = (
    <Button
      kind="primary"
      icon="plus"
      onClick={() => setMaking(true)}
      disabled={assets.length === 0}
    >
      New invoice
    </Button>
  )
  return (
    <Page
      title="Invoices"
      lead="Each asset that a payer chooses gets an address that is this invoice’s alone."
      actions={make}
    >
      <Card isBare>
        <div class="filters">
          <div class="filters-row">
            <input
              class="input filters-find"
              data-search
              type="search"
              aria-label="Order"
              placeholder="Order"
              defaultValue={order ?? ''}
              onChange={(event) =>
                go(withQuery({ order_id: event.currentTarget.value.trim(), page: null }), 'replace')
              }
            />
          </div>
          <Tabs
            label="Which invoices"
            of={STATUSES.map(([name, word]) => ({
              href: withQuery({ status: name, page: null }),
              word,
              isOpen: status === name,
            }))}
          />
        </div>
        <Table
          label="Invoices"
          reading={list}
          rows={list.data?.data}
          keyOf={({ inv_id: id }) => id}
          hrefOf={({ inv_id: id }) => pageAt(`/invoices/${id}`)}
          columns={[
            {
              head: 'Order',
              cell: ({ order_id: id, memo }) => id ?? memo ?? <span class="muted">No number</span>,
            },
            { head: 'State', cell: (invoice) => <InvoiceStatusOf invoice={invoice} /> },
            {
              head: 'Asked',
              isNumber: true,
              cell: (invoice) => <RequestedAmount invoice={invoice} />,
            },
            {
              head: 'Paid',
              isNumber: true,
              isMinor: true,
              cell: ({ paid_amount: paid, asset }) =>
                paid === null || Number(paid) === 0 ? (
                  <span class="muted">–</span>
                ) : (
                  <Amount value={paid} of={asset ?? undefined} />
                ),
            },
            {
              head: 'Payer',
              isMinor: true,
              cell: ({ payer }) => payer?.email ?? payer?.name ?? <span class="muted">–</span>,
            },
            { head: 'Made', isMinor: true, cell: ({ created_at: at }) => <Time at={at} /> },
            { head: 'Expires', isMinor: true, cell: ({ expiry }) => <Time at={expiry} /> },
          ]}
          empty={
            status === null && order === null ? (
              <Empty
                icon="invoices"
                title="No invoices yet"
                action={assets.length === 0 ? undefined : make}
              >
                Request a payment: the payer gets a payment page, and you see the payments here.
              </Empty>
            ) : (
              <Empty
                icon="search"
                title="Nothing fits"
                action={<Button onClick={() => go(place.value.path, 'replace')}>Show all</Button>}
              />
            )
          }
        />
        {list.data === undefined ? null : <Pager {...list.data} />}
      </Card>
      <Settings />
      {isMaking ? <NewInvoice assets={assets} onClose={() => setMaking(false)} /> : null}
    </Page>
  )
}
