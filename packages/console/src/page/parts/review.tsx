import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { mirror, pageAt } from '../api/scope.ts'
import { ANOTHER_STANDS, sign } from '../api/sign.ts'
import type { FeeEstimate, Transaction, TransactionPage } from '../api/types.ts'
import { useAction, useRead } from '../api/use.ts'
import { exact } from '../api/wire.ts'
import { toast } from './announce.tsx'
import { Button, Check, onSubmit, Text } from './form.tsx'
import { KeyNotice } from './key-notice.tsx'
import { Card, Note, Page, ProblemNote } from './page.tsx'
import { isDenied, PolicyVerdict, usePolicyVerdict } from './policy-verdict.tsx'
import { Amount, AssetName, Groups, Time } from './values.tsx'
import { AmountWorth } from '../worth/worth.tsx'
import { go } from '../router.ts'

/** Content of a form. */
export interface Draft {
  asset: string
  amount: string
  address: string
  tag: string
  hasNoTag: boolean
  memo: string
  level: 'low' | 'medium' | 'high'
  sequence_id: string
}

const END_LENGTH = 6

/** Review of the request before it is signed and sent. */
export function Review({
  draft,
  tag,
  amount,
  fee,
  price,
  onBack,
  onSent,
  onAnother,
}: {
  draft: Draft
  /** The network's name of a tag, and the tag or its absence; null for an asset without tags. */
  tag: { name: string; shown: ComponentChildren } | null
  amount: NonNullable<ReturnType<typeof exact>>
  fee: FeeEstimate | null
  price: string | null
  onBack(): void
  onSent(): void
  /** The earlier order of this form stays, and a new order gets its own `sequence_id`. */
  onAnother(): void
}) {
  const [end, setEnd] = useState('')
  const [isRight, setRight] = useState(false)
  const { isBusy, problem, run } = useAction()
  const before = useRead<TransactionPage>(
    mirror(`/dac/v1/transactions?dest_id=${encodeURIComponent(draft.address)}&limit=1`),
  )
  const wanted = draft.address.slice(-END_LENGTH)
  const earlier = before.data
  const body = {
    asset: draft.asset,
    amount,
    destination_address: draft.address,
    destination_type: 'EXTERNAL',
    source_type: 'INTERNAL',
    sequence_id: draft.sequence_id,
    fee_level: draft.level,
    ...(draft.tag === '' ? {} : { address_tag: draft.tag }),
    ...(draft.memo.trim() === '' ? {} : { memo: draft.memo.trim() }),
  }
  const verdict = usePolicyVerdict(body)
  const submit = () =>
    run(async () => {
      const made = await sign<Transaction>('POST', '/dac/v1/transaction', body)
      onSent()
      toast('The transfer is ordered')
      go(pageAt(`/transactions/${made.id}`))
    })
  const isAnother = problem?.code === ANOTHER_STANDS
  useEffect(() => {
    if (!isAnother) return
    onAnother()
    setEnd('')
    setRight(false)
  }, [isAnother])
  return (
    <Page title="Review" lead="Nothing is sent yet.">
      <Card>
        <p class="total">
          <AmountWorth isExact before="−" of={{ amount: amount.text, asset: draft.asset, price }} />
        </p>
        <p class="review-address">
          <span class="label">To</span>
          <bdi dir="ltr" class="code">
            <Groups of={draft.address.slice(0, -END_LENGTH)} />
            <mark>{wanted}</mark>
          </bdi>
        </p>
        <dl class="lines">
          <div>
            <dt>Asset</dt>
            <dd>
              <AssetName of={draft.asset} isLong />
            </dd>
          </div>
          {tag === null ? null : (
            <div>
              <dt>{tag.name}</dt>
              <dd>{tag.shown}</dd>
            </div>
          )}
          {fee === null ? null : (
            <div>
              <dt>Network fee, about</dt>
              <dd>
                <Amount isExact value={fee.fee} of={fee.fee_asset} />
              </dd>
            </div>
          )}
          {draft.memo.trim() === '' ? null : (
            <div>
              <dt>Memo for your records</dt>
              <dd>{draft.memo}</dd>
            </div>
          )}
          <div>
            <dt>Sequence id</dt>
            <dd>
              <code class="muted">{draft.sequence_id}</code>
            </dd>
          </div>
        </dl>
        {earlier === undefined ? null : earlier.total === 0 ? (
          <Note tone="warn">
            <p>
              The first time that anything goes to this address from here. Compare it with its
              owner, by another way than the one it came by.
            </p>
          </Note>
        ) : (
          <Note tone="neutral">
            <p>
              {earlier.total === 1 ? 'Once' : `${earlier.total} times`} before to this address; last{' '}
              <Time at={earlier.data[0]?.created_at} />.
            </p>
          </Note>
        )}
        {verdict === null ? null : <PolicyVerdict of={verdict} />}
        <form class="stack review-form" onSubmit={onSubmit(submit)}>
          <Text
            label={`The last ${END_LENGTH} characters of the address`}
            hint="Type it from your source of the address, not from this page"
            value={end}
            onValue={setEnd}
            class="input input-code"
            maxLength={END_LENGTH}
            required
          />
          <Check
            label={
              <>
                Send exactly{' '}
                <strong>
                  <Amount isExact value={amount.text} of={draft.asset} />
                </strong>
              </>
            }
            value={isRight}
            onValue={setRight}
          />
          <KeyNotice />
          <ProblemNote problem={problem} />
          <div class="row">
            <Button
              kind="primary"
              type="submit"
              icon="key"
              isBusy={isBusy}
              disabled={!isRight || end !== wanted || isDenied(verdict)}
            >
              Sign and send
            </Button>
            <Button onClick={onBack}>Back</Button>
          </div>
        </form>
      </Card>
    </Page>
  )
}
