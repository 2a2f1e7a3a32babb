import { useState } from 'preact/hooks'
import { listKeys } from '../api/keys.ts'
import { roleWord } from '../api/roles.ts'
import { may, ofWorkspace, pageAt } from '../api/scope.ts'
import type { ApiUser } from '../api/types.ts'
import { useRead } from '../api/use.ts'
import { Commands } from '../parts/commands.tsx'
import { Button, LinkButton } from '../parts/form.tsx'
import { Card, Empty, Page } from '../parts/page.tsx'
import { Id, Time } from '../parts/values.tsx'
import { ChangeApiUser } from '../parts/change-api-user.tsx'
import { NewApiUser } from '../parts/new-api-user.tsx'
import { Status } from '../parts/status.tsx'
import { Table } from '../parts/table.tsx'

export function ApiUsers() {
  const users = useRead<ApiUser[]>(ofWorkspace('/api-users'))
  const [isAsking, setAsking] = useState(false)
  const [shown, setShown] = useState<ApiUser | null>(null)
  const [requested, setAsked] = useState<string | null>(null)
  const [here, setHere] = useState<ReadonlySet<string>>(() => {
    void listKeys().then(
      (keys) => setHere(new Set(keys.map(({ fingerprint }) => fingerprint))),
      () => undefined,
    )
    return new Set()
  })
  const isPast = ({ revoked_at: at }: ApiUser) => at !== null
  const rows = users.data?.toSorted(
    (a, b) => Number(isPast(a)) - Number(isPast(b)) || b.created_at.localeCompare(a.created_at),
  )
  const waiting = users.data?.find(
    ({ id, enrolment }) => id === requested && enrolment === 'pending',
  )
  return (
    <Page
      title="API users"
      lead="Keys that sign requests: of machines, and of people’s browsers."
      actions={
        <>
          <LinkButton href={pageAt('/browser-key')} icon="key">
            This browser’s key
          </LinkButton>
          {may('operator') ? (
            <Button kind="primary" icon="plus" onClick={() => setAsking(true)}>
              Request an API user
            </Button>
          ) : null}
        </>
      }
    >
      {waiting === undefined ? null : <Commands of={waiting} />}
      <Card isBare>
        <Table
          label="API users"
          reading={users}
          rows={rows}
          keyOf={({ id }) => id}
          columns={[
            {
              head: 'Name',
              cell: (user) => (
                <>
                  <button type="button" class="link" onClick={() => setShown(user)}>
                    {user.label ?? 'No name'}
                  </button>
                  {here.has(user.key_fingerprint) ? <span class="chip">This browser</span> : null}
                </>
              ),
            },
            {
              head: 'State',
              cell: (user) => (
                <Status
                  of={user.revoked_at !== null ? 'revoked' : user.enrolment}
                  word={
                    user.revoked_at !== null
                      ? 'Revoked'
                      : user.enrolment === 'pending'
                        ? 'Waits for enrolment'
                        : 'Enrolled'
                  }
                />
              ),
            },
            { head: 'Sub-account', cell: ({ sub_account: name }) => name },
            {
              head: 'May',
              isMinor: true,
              cell: ({ role }) => roleWord(role),
            },
            {
              head: 'Whose',
              isMinor: true,
              cell: ({ person }) => person?.name ?? <span class="muted">a machine’s</span>,
            },
            {
              head: 'API key',
              isMinor: true,
              cell: ({ api_key: key }) => <Id value={key} label="API key" />,
            },
            {
              head: 'Allowed addresses',
              isMinor: true,
              cell: ({ ip_allow_list: list }) =>
                list.length === 0 ? (
                  <span class="muted">anywhere</span>
                ) : (
                  <span class="cut" title={list.join(', ')}>
                    {list.join(', ')}
                  </span>
                ),
            },
            { head: 'Last used', cell: ({ last_used_at: at }) => <Time at={at} /> },
          ]}
          empty={
            <Empty
              icon="key"
              title="No API users yet"
              action={
                <LinkButton href={pageAt('/browser-key')} kind="primary">
                  Create a key in this browser
                </LinkButton>
              }
            >
              What moves coins is signed by one of them. Begin with this browser’s own.
            </Empty>
          }
        />
      </Card>
      {isAsking ? (
        <NewApiUser
          onClose={() => setAsking(false)}
          onAsked={(id) => {
            setAsking(false)
            setAsked(id)
            users.reload()
          }}
        />
      ) : null}
      {shown === null ? null : (
        <ChangeApiUser
          user={shown}
          onClose={() => setShown(null)}
          onDone={() => {
            setShown(null)
            users.reload()
          }}
        />
      )}
    </Page>
  )
}
