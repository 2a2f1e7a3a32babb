import { amountText } from '../amounts.ts'
import { useState } from 'preact/hooks'
import { Problem } from '../api/http.ts'
import { ofSub, pageAt } from '../api/scope.ts'
import { sign } from '../api/sign.ts'
import type { Transaction, TransactionTimeline } from '../api/types.ts'
import { useAction, useRead } from '../api/use.ts'
import { toast } from '../parts/announce.tsx'
import { Button, Choice, Dialog, onSubmit, Text } from '../parts/form.tsx'
import { KeyNotice } from '../parts/key-notice.tsx'
import { Card, Facts, Note, Page, ProblemNote, Skeleton } from '../parts/page.tsx'
import { Amount, AssetName, Id, tickerOf, Time, Usd } from '../parts/values.tsx'
import { recordedWorth, TransactionWorth } from '../worth/worth.tsx'
import { TransactionStatus } from '../parts/status.tsx'
import {
  Attempts,
  Deliveries,
  Ledger,
  Related,
  Request,
  Screening,
  Timeline,
} from '../parts/timeline.tsx'
import { typeWord } from '../parts/transaction-table.tsx'
import { exact } from '../api/wire.ts'

const ENDED = new Set(['confirmed', 'failed'])

function SpeedUp({
  transaction,
  onClose,
  onDone,
}: {
  transaction: Transaction
  onClose(): void
  onDone(): void
}) {
  const [level, setLevel] = useState('high')
  const [rate, setRate] = useState('')
  const { isBusy, problem, run } = useAction()
  const isOwn = level === 'own'
  return (
    <Dialog title="Speed up" onClose={onClose}>
      <form
        class="stack"
        onSubmit={onSubmit(() =>
          run(async () => {
            const number = exact(rate)
            if (isOwn && number === null)
              throw new Problem(0, 'NOT_A_NUMBER', 'The fee rate is no decimal number.', {
                field: 'fee_rate',
              })
            await sign(
              'POST',
              `/dac/v1/transaction/${transaction.id}/speed-up`,
              isOwn ? { fee_rate: number } : { fee_level: level },
            )
            toast('A replacement with a higher fee is being made')
            onDone()
          }),
        )}
      >
        <p>
          The same payment is offered again with a higher network fee. Only one of the two can ever
          be mined.
        </p>
        <Choice
          label="Fee"
          value={level}
          onValue={setLevel}
          options={[
            ['high', 'High'],
            ['medium', 'Medium'],
            ['own', 'My own rate'],
          ]}
        />
        {isOwn ? (
          <Text
            label="Fee rate"
            hint="In the unit of the network"
            value={rate}
            onValue={setRate}
            inputMode="decimal"
            required
          />
        ) : null}
        <KeyNotice />
        <ProblemNote problem={problem} />
        <Button kind="primary" type="submit" isBusy={isBusy}>
          Speed up
        </Button>
      </form>
    </Dialog>
  )
}

function Cancel({
  transaction,
  onClose,
  onDone,
}: {
  transaction: Transaction
  onClose(): void
  onDone(): void
}) {
  const { isBusy, problem, run } = useAction()
  return (
    <Dialog title="Cancel this transaction" onClose={onClose}>
      <p>
        Before it is signed, it is given up at once. Afterwards a replacement is sent that pays
        nobody: whichever of the two is mined first wins, and the network fee is spent either way.
      </p>
      <KeyNotice />
      <ProblemNote problem={problem} />
      <div class="row">
        <Button
          kind="danger"
          isBusy={isBusy}
          onClick={() =>
            run(async () => {
              await sign('POST', `/dac/v1/transaction/${transaction.id}/cancel`, {})
              toast('It is being cancelled')
              onDone()
            })
          }
        >
          Cancel the transaction
        </Button>
        <Button onClick={onClose}>Keep it</Button>
      </div>
    </Dialog>
  )
}

function Confirmations({ timeline }: { timeline: TransactionTimeline }) {
  const { now, needed } = timeline.confirmations
  if (timeline.transaction.status === 'failed') return null
  if (needed === null)
    return (
      <p class="muted">
        {timeline.transaction.status === 'confirmed'
          ? 'Final'
          : `${now} confirmations: final when the chain says so`}
      </p>
    )
  if (needed === 0) return null
  const shown = timeline.transaction.status === 'confirmed' ? needed : Math.min(now, needed)
  return (
    <div class="confirmations">
      <progress max={needed} value={shown} aria-label="Confirmations" />
      <p class="muted">
        {now >= needed
          ? `${now} confirmations, ${needed} needed`
          : `${now} of ${needed} confirmations`}
      </p>
    </div>
  )
}

export function TransactionPage({ id = '' }: { id?: string }) {
  const path = encodeURIComponent(id)
  const timeline = useRead<TransactionTimeline>(
    ofSub(`/transactions/${path}/story`),
    /^(?:transaction|deposit|address|webhook)\./,
  )
  const [dialog, setDialog] = useState<'speed-up' | 'cancel' | null>(null)
  const transaction = timeline.data?.transaction
  const back = { href: pageAt('/transactions'), word: 'Transactions' }
  if (transaction === undefined || timeline.data === undefined) {
    const { problem } = timeline
    return (
      <Page title="Transaction" back={back}>
        {problem === null ? (
          <Skeleton lines={8} />
        ) : (
          <ProblemNote problem={problem} retry={timeline.reload} />
        )}
      </Page>
    )
  }
  const { data } = timeline
  const reload = () => {
    setDialog(null)
    timeline.reload()
  }
  const isWaiting = !ENDED.has(transaction.status)
  const value = recordedWorth(transaction)
  const canChange = isWaiting && transaction.type === 'Withdraw'
  const replacements = data.transaction.replacements ?? []
  return (
    <Page
      title={`${typeWord(transaction.type)} of ${amountText(transaction.amount)} ${tickerOf(transaction.asset)}`}
      back={back}
      lead={
        <span class="row">
          <TransactionStatus status={transaction.status} sub={transaction.sub_status} />
          <Id value={transaction.id} keep={8} label="transaction id" />
        </span>
      }
      actions={
        canChange ? (
          <>
            <Button onClick={() => setDialog('speed-up')}>Speed up</Button>
            <Button kind="danger" onClick={() => setDialog('cancel')}>
              Cancel
            </Button>
          </>
        ) : undefined
      }
    >
      {timeline.problem === null ? null : (
        <ProblemNote problem={timeline.problem} retry={timeline.reload} />
      )}
      {transaction.failure_reason === null ? null : (
        <Note tone="bad">
          <p>{transaction.failure_reason}</p>
        </Note>
      )}
      {transaction.waiting === null || transaction.waiting.code === 'AML_HELD' ? null : (
        <Note tone="info">
          <p>
            {transaction.waiting.reason} Waiting since <Time at={transaction.waiting.since} />.
          </p>
        </Note>
      )}
      {transaction.sub_status === 'AML_HELD' ? (
        <Note tone="frozen">
          <p>
            Screening holds it. <a href={pageAt('/aml')}>Frozen addresses</a> say why, and let it go
            on.
          </p>
        </Note>
      ) : null}
      <div class="columns">
        <div class="column-main">
          <Card>
            <p class="total">
              <TransactionWorth of={transaction} />
            </p>
            <Confirmations timeline={data} />
            <Facts
              of={[
                ['Asset', <AssetName key="asset" of={transaction.asset} isLong />],
                [
                  'To',
                  <Id key="to" value={transaction.destination_id} keep={10} label="destination" />,
                ],
                transaction.address_tag === null
                  ? null
                  : ['Tag', <Id key="tag" value={transaction.address_tag} isWhole label="tag" />],
                [
                  'From',
                  transaction.source_id === null ? (
                    transaction.source_type
                  ) : (
                    <Id key="from" value={transaction.source_id} keep={10} label="source" />
                  ),
                ],
                [
                  'Hash',
                  <span key="hash" class="row">
                    <Id value={transaction.hash} keep={10} label="hash" />
                    {data.explorer_url === null ? null : (
                      <a href={data.explorer_url} target="_blank" rel="noreferrer">
                        Explorer
                      </a>
                    )}
                  </span>,
                ],
                [
                  'Network fee',
                  <span key="fee">
                    <Amount value={data.fee.paid ?? data.fee.planned} of={data.fee.asset} />{' '}
                    <span class="muted">{data.fee.paid === null ? 'at most' : 'paid'}</span>
                  </span>,
                ],
                data.fee.paid !== null
                  ? [
                      'Planned at most',
                      <Amount key="planned" value={data.fee.planned} of={data.fee.asset} />,
                    ]
                  : null,
                value === null
                  ? null
                  : [
                      'Value at that time',
                      <span key="value" class="amount">
                        {value}
                      </span>,
                    ],
                transaction.platform_fee === null
                  ? null
                  : ['Platform fee', <Usd key="platform" value={transaction.platform_fee} />],
                [
                  'Signed by nodes',
                  data.signed_by.length === 0 ? (
                    <span key="none" class="muted">
                      Not yet
                    </span>
                  ) : (
                    data.signed_by
                      .map(
                        ({ attempt, nodes }) =>
                          `${nodes.toSorted().join(' and ')}${data.signed_by.length > 1 ? ` (attempt ${attempt})` : ''}`,
                      )
                      .join(', ')
                  ),
                ],
                data.receipts.length === 0
                  ? null
                  : ['Request shown to nodes', data.receipts.join(', ')],
                transaction.memo === '' ? null : ['Memo', transaction.memo],
                transaction.sequence_id === null
                  ? null
                  : [
                      'Sequence id',
                      <Id
                        key="sequence"
                        value={transaction.sequence_id}
                        keep={10}
                        label="sequence id"
                      />,
                    ],
              ]}
            />
          </Card>
          <Attempts attempts={data.attempts} replacements={replacements} asset={data.fee.asset} />
          <Request request={data.request} />
          <Screening rows={data.screening} holds={data.holds} />
          <Related rows={data.related} />
          <Ledger rows={data.ledger} />
          <Deliveries events={data.events} rows={data.deliveries} />
        </div>
        <div class="column-side">
          <Timeline states={data.states} isWaiting={isWaiting} />
        </div>
      </div>
      {dialog === 'speed-up' ? (
        <SpeedUp transaction={transaction} onClose={() => setDialog(null)} onDone={reload} />
      ) : null}
      {dialog === 'cancel' ? (
        <Cancel transaction={transaction} onClose={() => setDialog(null)} onDone={reload} />
      ) : null}
    </Page>
  )
}
