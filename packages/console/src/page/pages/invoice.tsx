import { useState } from 'preact/hooks'
import { mirror, pageAt } from '../api/scope.ts'
import { sign } from '../api/sign.ts'
import type { TagDraft } from '../api/tag.ts'
import type { Invoice, Transaction } from '../api/types.ts'
import { useAction, useRead } from '../api/use.ts'
import { toast } from '../parts/announce.tsx'
import { Button, Check, Choice, Dialog, onSubmit, Text } from '../parts/form.tsx'
import { KeyNotice } from '../parts/key-notice.tsx'
import { Card, Empty, Facts, Note, Page, ProblemNote, Skeleton } from '../parts/page.tsx'
import { amountError, amountOf, useSequence } from '../parts/pick.tsx'
import { PayTo } from '../parts/receive.tsx'
import { Amount, AssetName, Copy, Id, tickerOf, Time } from '../parts/values.tsx'
import { Status } from '../parts/status.tsx'
import { Table } from '../parts/table.tsx'
import { EMPTY_TAG, TagField, useDestination } from '../parts/tag-field.tsx'
import { RequestedAmount, InvoiceStatusOf } from './invoices.tsx'

const OPEN = new Set(['Pending', 'Processing'])
const NOTES = {
  other_asset: 'another asset than was chosen',
  late: 'after it had expired',
} as const

function Refund({
  invoice,
  path,
  onClose,
  onDone,
}: {
  invoice: Invoice
  path: string
  onClose(): void
  onDone(): void
}) {
  const [asset, setAsset] = useState(invoice.refundable[0]?.asset ?? '')
  const of = (list: readonly Invoice['refundable'][number][]) =>
    list.find((each) => each.asset === asset)?.amount
  const [text, setText] = useState(() =>
    String(invoice.excess[0]?.amount ?? invoice.refundable[0]?.amount ?? ''),
  )
  const [address, setAddress] = useState('')
  const [tag, setTag] = useState<TagDraft>(EMPTY_TAG)
  const [isSure, setSure] = useState(false)
  const { sequence } = useSequence()
  const { isBusy, problem, run } = useAction()
  const amount = amountOf(text)
  const destination = useDestination(asset, address.trim(), tag)
  const submit = () =>
    run(async () => {
      await sign<Transaction>('POST', `${path}/refund`, {
        asset,
        amount,
        destination_address: address.trim(),
        destination_type: 'EXTERNAL',
        source_type: 'INTERNAL',
        sequence_id: sequence,
        ...(destination.tag === '' ? {} : { address_tag: destination.tag }),
      })
      toast('The refund is ordered')
      onDone()
    })
  const most = of(invoice.refundable)
  return (
    <Dialog title="Refund" onClose={onClose}>
      <form class="stack" onSubmit={onSubmit(submit)}>
        <Choice
          label="Asset"
          value={asset}
          onValue={(value) => {
            setAsset(value)
            setTag((before) => ({ ...before, hasNoTag: false }))
          }}
          options={invoice.refundable.map((each) => [each.asset, each.asset])}
        />
        <Text
          label="Amount"
          value={text}
          onValue={setText}
          inputMode="decimal"
          suffix={tickerOf(asset)}
          required
          maxLength={60}
          error={amountError(text) ?? (problem?.field === 'amount' ? problem.message : null)}
          hint={
            <>
              At most <Amount value={most} of={asset} />
              {of(invoice.excess) === undefined ? null : (
                <>
                  ; <Amount value={of(invoice.excess)} of={asset} /> were too much
                </>
              )}
            </>
          }
        />
        <Text
          label="To"
          value={address}
          onValue={(value) => {
            setAddress(value)
            setTag((before) => ({ ...before, hasNoTag: false }))
          }}
          class="input code"
          required
          maxLength={256}
          error={
            problem?.field === 'destination_address' ? problem.message : destination.addressError
          }
          hint="Ask the payer: the source of a payment is often an exchange’s address and not the payer’s"
        />
        <TagField asset={asset} destination={destination} draft={tag} onDraft={setTag} />
        <Check
          label={
            <>
              Pay back exactly{' '}
              <strong>{amount === null ? '–' : <Amount value={amount.text} of={asset} />}</strong>
            </>
          }
          value={isSure}
          onValue={setSure}
        />
        <KeyNotice />
        {problem?.field === 'amount' || problem?.field === 'destination_address' ? null : (
          <ProblemNote problem={problem} />
        )}
        <Button
          kind="primary"
          type="submit"
          icon="key"
          isBusy={isBusy}
          disabled={amount === null || !destination.isReady || !isSure}
        >
          Sign and refund
        </Button>
      </form>
    </Dialog>
  )
}

function Mark({ path, onClose, onDone }: { path: string; onClose(): void; onDone(): void }) {
  const [status, setStatus] = useState('settled')
  const [reason, setReason] = useState('')
  const { isBusy, problem, run } = useAction()
  return (
    <Dialog title="Decide it yourself" onClose={onClose}>
      <form
        class="stack"
        onSubmit={onSubmit(() =>
          run(async () => {
            await sign('POST', `${path}/mark`, { status, reason: reason.trim() })
            toast('Your decision applies')
            onDone()
          }),
        )}
      >
        <Choice
          label="It is"
          value={status}
          onValue={setStatus}
          options={[
            ['settled', 'Paid'],
            ['invalid', 'Invalid'],
          ]}
          hint="Your decision overrides what was paid; the latest one applies. It moves no coins."
        />
        <Text
          label="Because"
          value={reason}
          onValue={setReason}
          required
          maxLength={1000}
          hint="It is kept with the invoice"
        />
        <KeyNotice />
        <ProblemNote problem={problem} />
        <Button
          kind="primary"
          type="submit"
          icon="key"
          isBusy={isBusy}
          disabled={reason.trim() === ''}
        >
          Save
        </Button>
      </form>
    </Dialog>
  )
}

export function InvoicePage({ id }: { id: string }) {
  const path = `/dac/v1/invoices/${encodeURIComponent(id)}`
  const reading = useRead<Invoice>(mirror(path), /^(?:invoice|transaction)\./)
  const [dialog, setDialog] = useState<'refund' | 'mark' | null>(null)
  const { isBusy, problem, run } = useAction()
  const invoice = reading.data
  const back = { href: pageAt('/invoices'), word: 'Invoices' }
  if (invoice === undefined) {
    return (
      <Page title="Invoice" back={back}>
        {reading.problem === null ? (
          <Skeleton lines={6} />
        ) : (
          <ProblemNote problem={reading.problem} retry={reading.reload} />
        )}
      </Page>
    )
  }
  const done = () => {
    setDialog(null)
    reading.reload()
  }
  return (
    <Page
      title={invoice.order_id === null ? 'Invoice' : `Invoice ${invoice.order_id}`}
      back={back}
      lead={<InvoiceStatusOf invoice={invoice} />}
      actions={
        <>
          <a class="button" href={invoice.checkout_url} target="_blank" rel="noreferrer">
            Open the checkout
          </a>
          {invoice.refundable.length === 0 ? null : (
            <Button onClick={() => setDialog('refund')}>Refund</Button>
          )}
          <Button onClick={() => setDialog('mark')}>Decide</Button>
          {OPEN.has(invoice.inv_status) && invoice.cancelled_at === null ? (
            <Button
              kind="danger"
              isBusy={isBusy}
              onClick={() =>
                run(async () => {
                  await sign('POST', `${path}/cancel`, {})
                  toast('It is cancelled')
                  reading.reload()
                })
              }
            >
              Cancel
            </Button>
          ) : null}
        </>
      }
    >
      <ProblemNote problem={problem} />
      {invoice.marked === null ? null : (
        <Note tone="info">
          <p>
            Decided by hand <Time at={invoice.marked.at} />: {invoice.marked.status}.{' '}
            {invoice.marked.reason}
          </p>
        </Note>
      )}
      {invoice.cancelled_at === null ? null : (
        <Note tone="neutral">
          <p>
            Cancelled <Time at={invoice.cancelled_at} />. Payments that still arrive are shown below
            and belong to you.
          </p>
        </Note>
      )}
      <div class="columns">
        <div class="column-main">
          <Card>
            <p class="total">
              <RequestedAmount invoice={invoice} />
            </p>
            <Facts
              of={[
                ['Invoice', <Id key="id" value={invoice.inv_id} label="invoice id" />],
                ['Made', <Time key="made" at={invoice.created_at} isLong />],
                ['Expires', <Time key="expiry" at={invoice.expiry} isLong />],
                invoice.paid_amount === null
                  ? null
                  : [
                      'Paid',
                      <Amount
                        key="paid"
                        value={invoice.paid_amount}
                        of={invoice.asset ?? undefined}
                      />,
                    ],
                invoice.due_amount === null
                  ? null
                  : [
                      'Still due',
                      <Amount
                        key="due"
                        value={invoice.due_amount}
                        of={invoice.asset ?? undefined}
                      />,
                    ],
                ['May be missing', `${invoice.tolerance} %`],
                invoice.memo === null ? null : ['Memo', invoice.memo],
                invoice.payer === null
                  ? null
                  : [
                      'Payer',
                      [invoice.payer.name, invoice.payer.email]
                        .filter((each) => each !== null)
                        .join(', '),
                    ],
                invoice.webhook_url === null
                  ? null
                  : ['Told', <code key="hook">{invoice.webhook_url}</code>],
              ]}
            />
          </Card>
          <Card title="Payments" isBare>
            <Table
              label="Payments"
              reading={reading}
              rows={invoice.payments}
              keyOf={({ hash, asset, amount }) => `${hash} ${asset} ${amount}`}
              columns={[
                {
                  head: 'Amount',
                  cell: ({ amount, asset }) => <Amount value={amount} of={asset} />,
                },
                {
                  head: 'State',
                  cell: ({ status, confirmations, required }) =>
                    status === 'detected' ? (
                      <Status of={status} word={`${confirmations} of ${required} confirmations`} />
                    ) : (
                      <Status of={status} />
                    ),
                },
                {
                  head: 'Counts',
                  cell: ({ counts, note }) =>
                    counts ? (
                      'Yes'
                    ) : (
                      <span class="muted">No{note === null ? '' : `: ${NOTES[note]}`}</span>
                    ),
                },
                {
                  head: 'Hash',
                  isMinor: true,
                  cell: ({ hash, explorer_url: url }) => (
                    <>
                      <Id value={hash} label="hash" />
                      {url === null ? null : (
                        <>
                          {' '}
                          <a href={url} target="_blank" rel="noreferrer">
                            Explorer
                          </a>
                        </>
                      )}
                    </>
                  ),
                },
                {
                  head: 'Seen',
                  isMinor: true,
                  cell: ({ seen_at: at, transaction_id: deposit }) =>
                    deposit === null ? (
                      <Time at={at} />
                    ) : (
                      <a href={pageAt(`/transactions/${deposit}`)}>
                        <Time at={at} />
                      </a>
                    ),
                },
              ]}
              empty={
                <Empty icon="invoices" title="Nothing was paid yet">
                  A payment is shown as soon as the network has it.
                </Empty>
              }
            />
          </Card>
          {invoice.refunds.length === 0 ? null : (
            <Card title="Refunds" isBare>
              <Table
                label="Refunds"
                reading={reading}
                rows={invoice.refunds}
                keyOf={({ transaction_id: transfer }) => transfer}
                hrefOf={({ transaction_id: transfer }) => pageAt(`/transactions/${transfer}`)}
                columns={[
                  {
                    head: 'Amount',
                    cell: ({ amount, asset }) => <Amount value={amount} of={asset} />,
                  },
                  { head: 'State', cell: ({ status }) => <Status of={status} /> },
                  { head: 'Hash', cell: ({ hash }) => <Id value={hash} label="hash" /> },
                ]}
                empty={null}
              />
            </Card>
          )}
        </div>
        <div class="column-side">
          {invoice.address === null ? null : (
            <Card title={`Pay ${tickerOf(invoice.asset ?? '')}`}>
              <PayTo
                address={invoice.payment_uri ?? invoice.address}
                shown={invoice.address}
                label="What a wallet reads"
              />
              {invoice.address_tag === null ? null : (
                <p>
                  Tag <Id value={invoice.address_tag} label="tag" isWhole />
                </p>
              )}
            </Card>
          )}
          <Card title="Checkout">
            <p class="muted">The page for the payer.</p>
            <Copy text={invoice.checkout_url} label="checkout link" word="Copy the link" />
          </Card>
          <Card title="Offered">
            <dl class="lines">
              {invoice.assets.map((each) => (
                <div key={each.asset}>
                  <dt>
                    <AssetName of={each.asset} />
                  </dt>
                  <dd>
                    <Amount value={each.crypto_amount} of={each.asset} />
                  </dd>
                </div>
              ))}
            </dl>
          </Card>
        </div>
      </div>
      {dialog === 'refund' ? (
        <Refund invoice={invoice} path={path} onClose={() => setDialog(null)} onDone={done} />
      ) : null}
      {dialog === 'mark' ? (
        <Mark path={path} onClose={() => setDialog(null)} onDone={done} />
      ) : null}
    </Page>
  )
}
