import { useState } from 'preact/hooks'
import { query } from '../api/http.ts'
import { mirror, pageAt } from '../api/scope.ts'
import { sign } from '../api/sign.ts'
import type { ForwardRule, TransactionPage } from '../api/types.ts'
import { useAction, useRead } from '../api/use.ts'
import { toast } from '../parts/announce.tsx'
import { Button, Dialog } from '../parts/form.tsx'
import { KeyNotice } from '../parts/key-notice.tsx'
import { Card, Empty, Facts, Note, Page, ProblemNote, Skeleton } from '../parts/page.tsx'
import { Amount, Id, tickerOf, Time } from '../parts/values.tsx'
import { Status } from '../parts/status.tsx'
import { pageInQuery, Pager } from '../parts/table.tsx'
import { TransactionTable } from '../parts/transaction-table.tsx'

const LIVE = /^(?:forward|auto_forwarding|transaction|deposit)/
const LIMIT = 25

export function ForwardRulePage({ id }: { id: string }) {
  const path = `/dac/v1/auto-forwarding/${encodeURIComponent(id)}`
  const reading = useRead<ForwardRule>(mirror(path), LIVE)
  const history = useRead<TransactionPage>(
    mirror(`${path}/history${query({ page: pageInQuery(), limit: LIMIT })}`),
    LIVE,
  )
  const { isBusy, problem, run } = useAction()
  const [isDeleting, setDeleting] = useState(false)
  const rule = reading.data
  const back = { href: pageAt('/forwarding'), word: 'Auto-forwarding' }
  if (rule === undefined) {
    return (
      <Page title="Rule" back={back}>
        {reading.problem === null ? (
          <Skeleton lines={6} />
        ) : (
          <ProblemNote problem={reading.problem} retry={reading.reload} />
        )}
      </Page>
    )
  }
  const act = (verb: 'pause' | 'resume') =>
    run(async () => {
      await sign('POST', `${path}/${verb}`, {})
      toast(verb === 'pause' ? 'The rule is paused' : 'The rule is active again')
      reading.reload()
    })
  const isAwaiting = rule.status === 'awaiting_approval'
  const isOpen = isAwaiting || ['pending', 'active', 'paused'].includes(rule.status)
  return (
    <Page
      title={`Forward ${tickerOf(rule.asset)}`}
      back={back}
      lead={<Status of={rule.status} />}
      actions={
        isOpen ? (
          <>
            {isAwaiting ? null : rule.status === 'paused' ? (
              <Button isBusy={isBusy} onClick={() => void act('resume')}>
                Resume
              </Button>
            ) : (
              <Button isBusy={isBusy} onClick={() => void act('pause')}>
                Pause
              </Button>
            )}
            <Button kind="danger" onClick={() => setDeleting(true)}>
              Delete
            </Button>
          </>
        ) : undefined
      }
    >
      <ProblemNote problem={problem} />
      {rule.reason === null ? null : (
        <Note tone="warn">
          <p>
            {rule.reason}
            {isAwaiting ? (
              <>
                . <a href={pageAt(`/approvals/${rule.id}`)}>Open the approvals</a>
              </>
            ) : null}
          </p>
        </Note>
      )}
      <Card>
        <Facts
          of={[
            [
              'Destination',
              <Id key="to" value={rule.destination_address} label="destination" isWhole />,
            ],
            rule.address_tag === null
              ? null
              : ['Tag', <Id key="tag" value={rule.address_tag} label="tag" isWhole />],
            [
              'Waiting to be forwarded',
              <Amount key="waiting" value={rule.waiting} of={rule.asset} />,
            ],
            ['Forwarded once it is', <Amount key="min" value={rule.min_amount} of={rule.asset} />],
            ['Maximum in 24 hours', <Amount key="cap" value={rule.daily_cap} of={rule.asset} />],
            ['Until', <Time key="until" at={rule.expires_at} isLong />],
            ['Made', <Time key="made" at={rule.created_at} isLong />],
          ]}
        />
      </Card>
      <Card title="Forwards" isBare>
        <TransactionTable
          reading={history}
          rows={history.data?.data}
          empty={<Empty icon="forward" title="No forwards yet" />}
        />
        {history.data === undefined ? null : <Pager {...history.data} />}
      </Card>
      {isDeleting ? (
        <Dialog title="Delete the rule" onClose={() => setDeleting(false)}>
          <p>
            The rule never forwards anything again. Forwards in progress that are not signed yet are
            cancelled.
          </p>
          <KeyNotice />
          <ProblemNote problem={problem} />
          <div class="row">
            <Button
              kind="danger"
              icon="key"
              isBusy={isBusy}
              onClick={() =>
                run(async () => {
                  await sign('DELETE', path, {})
                  setDeleting(false)
                  toast('The rule was deleted')
                  reading.reload()
                })
              }
            >
              Delete for good
            </Button>
            <Button onClick={() => setDeleting(false)}>Keep it</Button>
          </div>
        </Dialog>
      ) : null}
    </Page>
  )
}
