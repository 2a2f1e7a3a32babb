import { useState } from 'preact/hooks'
import { mirror, pageAt } from '../api/scope.ts'
import { sign } from '../api/sign.ts'
import type { NewSecret, Webhook } from '../api/types.ts'
import { useAction, useRead } from '../api/use.ts'
import { toast } from '../parts/announce.tsx'
import { Button, Choice, Dialog, onSubmit, Text } from '../parts/form.tsx'
import { KeyNotice } from '../parts/key-notice.tsx'
import { Card, Empty, Page, ProblemNote } from '../parts/page.tsx'
import { Secret } from '../parts/secret.tsx'
import { Time } from '../parts/values.tsx'
import { Status } from '../parts/status.tsx'
import { Table } from '../parts/table.tsx'
import { go } from '../router.ts'

/** Returns the state: enabled, failing, or off. */
export const webhookState = ({ disabled, failures }: Webhook): string =>
  disabled ? 'disabled' : failures > 0 ? 'failing' : 'active'

function NewWebhook({ onClose, onMade }: { onClose(): void; onMade(made: NewSecret): void }) {
  const [url, setUrl] = useState('')
  const [events, setEvents] = useState('*')
  const [description, setDescription] = useState('')
  const [format, setFormat] = useState('standard')
  const { isBusy, problem, run } = useAction()
  const of = (field: string) => (problem?.field === field ? problem.message : null)
  const submit = () =>
    run(async () => {
      onMade(
        await sign<NewSecret>('POST', '/dac/v1/webhooks', {
          url: url.trim(),
          events: events.split(/[\s,]+/).filter((each) => each !== ''),
          format,
          ...(description.trim() === '' ? {} : { description: description.trim() }),
        }),
      )
      toast('The webhook is made')
    })
  return (
    <Dialog title="New webhook" onClose={onClose}>
      <form class="stack" onSubmit={onSubmit(submit)}>
        <Text
          label="URL"
          type="url"
          value={url}
          onValue={setUrl}
          required
          maxLength={2000}
          placeholder="https://example.com/webhooks"
          error={of('url')}
          hint="https, and reachable from the platform"
        />
        <Text
          label="Events"
          value={events}
          onValue={setEvents}
          required
          maxLength={2000}
          error={of('events')}
          hint="Names, groups such as invoice.*, or * for all; separated by commas"
        />
        <Choice
          label="Format"
          value={format}
          onValue={setFormat}
          options={[
            ['standard', 'Standard Webhooks'],
            ['classic', 'Classic: transactions in the shape of earlier integrations'],
          ]}
        />
        <Text
          label="Description"
          value={description}
          onValue={setDescription}
          maxLength={500}
          hint="For you"
        />
        <KeyNotice />
        {problem?.field === 'url' || problem?.field === 'events' ? null : (
          <ProblemNote problem={problem} />
        )}
        <Button
          kind="primary"
          type="submit"
          icon="key"
          isBusy={isBusy}
          disabled={url.trim() === ''}
        >
          Make it
        </Button>
      </form>
    </Dialog>
  )
}

/** Page of webhooks. */
export function Webhooks() {
  const webhooks = useRead<{ data: Webhook[] }>(mirror('/dac/v1/webhooks'), /^webhook\./)
  const [isMaking, setMaking] = useState(false)
  const [made, setMade] = useState<NewSecret | null>(null)
  const create = (
    <Button kind="primary" icon="plus" onClick={() => setMaking(true)}>
      New webhook
    </Button>
  )
  return (
    <Page
      title="Webhooks"
      lead="Events are posted to your URL: signed, in order, and repeated until your server accepts them."
      actions={create}
    >
      <Card isBare>
        <Table
          label="Webhooks"
          reading={webhooks}
          rows={webhooks.data?.data}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => pageAt(`/webhooks/${id}`)}
          columns={[
            {
              head: 'URL',
              cell: ({ url }) => (
                <span class="cut code" title={url}>
                  {url}
                </span>
              ),
            },
            { head: 'State', cell: (webhook) => <Status of={webhookState(webhook)} /> },
            {
              head: 'Events',
              cell: ({ events }) => (
                <span class="cut" title={events.join(', ')}>
                  {events.includes('*') ? 'All' : events.join(', ')}
                </span>
              ),
            },
            {
              head: 'Description',
              isMinor: true,
              cell: ({ description }) => description ?? <span class="muted">–</span>,
            },
            { head: 'Made', isMinor: true, cell: ({ created_at: at }) => <Time at={at} /> },
          ]}
          empty={
            <Empty icon="webhooks" title="No webhooks yet" action={create}>
              Your server is notified of a deposit within a second and does not have to poll.
            </Empty>
          }
        />
      </Card>
      {isMaking ? (
        <NewWebhook
          onClose={() => setMaking(false)}
          onMade={(webhook) => {
            setMaking(false)
            setMade(webhook)
            webhooks.reload()
          }}
        />
      ) : null}
      {made === null ? null : (
        <Secret of={made.secret} onClose={() => go(pageAt(`/webhooks/${made.id}`))} />
      )}
    </Page>
  )
}
