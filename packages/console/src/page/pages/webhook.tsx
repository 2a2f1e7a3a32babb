import { useEffect, useState } from 'preact/hooks'
import { query } from '../api/http.ts'
import { mirror, pageAt } from '../api/scope.ts'
import { sign } from '../api/sign.ts'
import type { Delivery, NewSecret, Page as PageOf, Webhook } from '../api/types.ts'
import { useAction, useRead } from '../api/use.ts'
import { toast } from '../parts/announce.tsx'
import { Button, Dialog, onSubmit, Tabs, Text } from '../parts/form.tsx'
import { KeyNotice } from '../parts/key-notice.tsx'
import { Card, Empty, Facts, Note, Page, ProblemNote, Skeleton } from '../parts/page.tsx'
import { Secret } from '../parts/secret.tsx'
import { Code, Id, Time } from '../parts/values.tsx'
import { Status } from '../parts/status.tsx'
import { pageInQuery, Pager, Table } from '../parts/table.tsx'
import { go, place, withQuery } from '../router.ts'
import { webhookState } from './webhooks.tsx'

const LIMIT = 25

function formatted(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2)
  } catch {
    return body
  }
}

function DeliveryDialog({
  of,
  path,
  onClose,
  onSent,
}: {
  of: Delivery
  path: string
  onClose(): void
  onSent(): void
}) {
  const { isBusy, problem, run } = useAction()
  return (
    <Dialog title={of.type} onClose={onClose} isWide>
      <Facts
        of={[
          ['State', <Status key="state" of={of.status} />],
          ['Event', <Id key="event" value={of.event_id} label="event id" />],
          of.next_try_at === null
            ? null
            : ['Next try', <Time key="next" at={of.next_try_at} isLong />],
        ]}
      />
      <div class="stack-small">
        <h3 class="small-title">Tries</h3>
        {of.attempts.length === 0 ? (
          <p class="muted">None yet.</p>
        ) : (
          <ol class="timeline">
            {of.attempts.map((attempt) => {
              const isTaken =
                attempt.status !== null && attempt.status >= 200 && attempt.status < 300
              return (
                <li key={attempt.at}>
                  <div>
                    <Status
                      of={isTaken ? 'delivered' : 'failed'}
                      word={
                        attempt.status === null
                          ? (attempt.error ?? 'No answer')
                          : `${attempt.status} in ${attempt.duration_ms} ms`
                      }
                    />
                    <p class="timeline-time">
                      <Time at={attempt.at} isLong />
                    </p>
                    {attempt.answer === null || attempt.answer === '' ? null : (
                      <Code text={attempt.answer} label="Answer" />
                    )}
                  </div>
                </li>
              )
            })}
          </ol>
        )}
      </div>
      <div class="stack-small">
        <h3 class="small-title">Body</h3>
        <Code text={formatted(of.request.body)} label="Body that is sent" />
      </div>
      <ProblemNote problem={problem} />
      <div class="row">
        <Button
          icon="key"
          isBusy={isBusy}
          onClick={() =>
            run(async () => {
              await sign('POST', `${path}/deliveries/${of.id}/resend`, {})
              toast('It is sent again')
              onSent()
            })
          }
        >
          Send again
        </Button>
      </div>
    </Dialog>
  )
}

function Change({ of, path, onSaved }: { of: Webhook; path: string; onSaved(): void }) {
  const [url, setUrl] = useState(of.url)
  const [events, setEvents] = useState(of.events.join(', '))
  const [description, setDescription] = useState(of.description ?? '')
  const { isBusy, problem, run } = useAction()
  const error = (field: string) => (problem?.field === field ? problem.message : null)
  const submit = () =>
    run(async () => {
      await sign('PATCH', path, {
        url: url.trim(),
        events: events.split(/[\s,]+/).filter((each) => each !== ''),
        description: description.trim(),
      })
      toast('Saved')
      onSaved()
    })
  return (
    <form class="stack" onSubmit={onSubmit(submit)}>
      <Text
        label="URL"
        type="url"
        value={url}
        onValue={setUrl}
        required
        maxLength={2000}
        error={error('url')}
      />
      <Text
        label="Events"
        value={events}
        onValue={setEvents}
        required
        maxLength={2000}
        error={error('events')}
      />
      <Text label="Description" value={description} onValue={setDescription} maxLength={500} />
      {(error('url') ?? error('events')) ? null : <ProblemNote problem={problem} />}
      <div class="row">
        <Button type="submit" icon="key" isBusy={isBusy}>
          Save
        </Button>
      </div>
    </form>
  )
}

const TABS = [
  [null, 'All'],
  ['pending', 'Waiting'],
  ['failed', 'Failed'],
  ['delivered', 'Delivered'],
] as const

/** Interval in milliseconds at which an open delivery is read again while it waits. */
const AGAIN_MS = 1500

export function WebhookPage({ id }: { id: string }) {
  const path = `/dac/v1/webhooks/${encodeURIComponent(id)}`
  const status = place.value.query.get('status')
  const reading = useRead<Webhook>(mirror(path), /^webhook\./)
  // Every event can create a delivery.
  const deliveries = useRead<PageOf<Delivery>>(
    mirror(`${path}/deliveries${query({ status, page: pageInQuery(), limit: LIMIT })}`),
    /./,
  )
  const { isBusy, problem, run } = useAction()
  const [opened, setOpen] = useState<Delivery | null>(null)
  // The current version, because the opened delivery may have been tried since.
  const open = deliveries.data?.data.find((each) => each.id === opened?.id) ?? opened
  const isWaiting = open?.status === 'pending'
  useEffect(() => {
    if (!isWaiting) return
    const timer = setInterval(deliveries.reload, AGAIN_MS)
    return () => clearInterval(timer)
  }, [isWaiting, deliveries.reload])
  const [secret, setSecret] = useState<string | null>(null)
  const [isDeleting, setDeleting] = useState(false)
  const webhook = reading.data
  const back = { href: pageAt('/webhooks'), word: 'Webhooks' }
  if (webhook === undefined) {
    return (
      <Page title="Webhook" back={back}>
        {reading.problem === null ? (
          <Skeleton lines={6} />
        ) : (
          <ProblemNote problem={reading.problem} retry={reading.reload} />
        )}
      </Page>
    )
  }
  const after = (word: string) => {
    toast(word)
    reading.reload()
    deliveries.reload()
  }
  return (
    <Page
      title={new URL(webhook.url).host}
      back={back}
      lead={
        <>
          <Status of={webhookState(webhook)} /> · <code>{webhook.url}</code>
        </>
      }
      actions={
        <>
          <Button
            isBusy={isBusy}
            onClick={() =>
              run(async () => {
                const sent = await sign<Delivery>('POST', `${path}/test`, {})
                after(
                  {
                    delivered: 'The test was accepted',
                    failed: 'The test was not accepted',
                    pending: 'The test event was sent',
                  }[sent.status],
                )
                setOpen(sent)
              })
            }
          >
            Send a test
          </Button>
          <Button
            isBusy={isBusy}
            onClick={() =>
              run(async () => {
                await sign('PATCH', path, { disabled: !webhook.disabled })
                after(webhook.disabled ? 'It is on again' : 'It is off')
              })
            }
          >
            {webhook.disabled ? 'Turn on' : 'Turn off'}
          </Button>
          <Button
            isBusy={isBusy}
            onClick={() =>
              run(async () =>
                setSecret((await sign<NewSecret>('POST', `${path}/rotate`, {})).secret),
              )
            }
          >
            New secret
          </Button>
          <Button kind="danger" onClick={() => setDeleting(true)}>
            Delete
          </Button>
        </>
      }
    >
      <ProblemNote problem={problem} />
      {webhook.disabled ? (
        <Note tone="warn">
          <p>
            It is off{webhook.disabled_reason === null ? '' : `: ${webhook.disabled_reason}`}.
            Events that occur while it is off are not sent later.
          </p>
        </Note>
      ) : webhook.failures > 0 ? (
        <Note tone="bad">
          <p>{webhook.failures} tries in a row failed. At 50 it is turned off.</p>
        </Note>
      ) : null}
      {webhook.previous_secret_until === null ? null : (
        <Note tone="info">
          <p>
            The previous secret also signs until <Time at={webhook.previous_secret_until} isLong />.
          </p>
        </Note>
      )}
      <div class="columns">
        <Card title="Deliveries" isBare>
          <div class="pad">
            <Tabs
              label="Which deliveries"
              of={TABS.map(([name, word]) => ({
                href: withQuery({ status: name, page: null }),
                word,
                isOpen: status === name,
              }))}
            />
          </div>
          <Table
            label="Deliveries"
            reading={deliveries}
            rows={deliveries.data?.data}
            keyOf={({ id: delivery }) => delivery}
            columns={[
              {
                head: 'Event',
                cell: (row) => (
                  <button type="button" class="link" onClick={() => setOpen(row)}>
                    {row.type}
                  </button>
                ),
              },
              { head: 'State', cell: ({ status: state }) => <Status of={state} /> },
              { head: 'Tries', isNumber: true, cell: ({ tries }) => tries },
              {
                head: 'Answer',
                isMinor: true,
                cell: ({ attempts }) =>
                  attempts.at(-1)?.status ?? attempts.at(-1)?.error ?? <span class="muted">–</span>,
              },
              { head: 'When', isMinor: true, cell: ({ created_at: at }) => <Time at={at} /> },
            ]}
            empty={
              <Empty
                icon="webhooks"
                title={status === null ? 'Nothing was sent yet' : 'None of these'}
              >
                {status === null ? 'Send a test to check that your server accepts it.' : undefined}
              </Empty>
            }
          />
          {deliveries.data === undefined ? null : <Pager {...deliveries.data} />}
        </Card>
        <div class="column-side">
          <Card title="Settings">
            <Change key={webhook.updated_at} of={webhook} path={path} onSaved={reading.reload} />
          </Card>
        </div>
      </div>
      {open === null ? null : (
        <DeliveryDialog
          of={open}
          path={path}
          onClose={() => setOpen(null)}
          onSent={() => {
            setOpen(null)
            deliveries.reload()
          }}
        />
      )}
      {secret === null ? null : (
        <Secret
          of={secret}
          onClose={() => {
            setSecret(null)
            reading.reload()
          }}
        />
      )}
      {isDeleting ? (
        <Dialog title="Delete the webhook" onClose={() => setDeleting(false)}>
          <p>Nothing is sent to it any more, and its deliveries are gone.</p>
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
                  toast('The webhook is deleted')
                  go(pageAt('/webhooks'))
                })
              }
            >
              Delete
            </Button>
            <Button onClick={() => setDeleting(false)}>Keep it</Button>
          </div>
        </Dialog>
      ) : null}
    </Page>
  )
}
