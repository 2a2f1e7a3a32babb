import { useState } from 'preact/hooks'
import { panel } from '../api/http.ts'
import { may, ofWorkspace, scope, session } from '../api/scope.ts'
import { openSession } from '../api/session.ts'
import type { Command, Member, OpenInvitation, Role } from '../api/types.ts'
import { useAction, useRead } from '../api/use.ts'
import { toast } from '../parts/announce.tsx'
import { Button, Choice, Dialog, onSubmit, Text } from '../parts/form.tsx'
import { Card, Empty, Note, Page, ProblemNote } from '../parts/page.tsx'
import { Code, Time } from '../parts/values.tsx'
import { Table } from '../parts/table.tsx'

const ROLES: readonly (readonly [Role, string])[] = [
  ['viewer', 'Viewer: can read'],
  ['operator', 'Operator: can also request their own API key'],
  ['admin', 'Admin: can also manage people, API users and allow-lists, and read the audit log'],
  ['owner', 'Owner: can do everything, including managing owners'],
]
const rolesFor = () => ROLES.filter(([role]) => role !== 'owner' || may('owner'))

function Invite({ onClose, onInvited }: { onClose(): void; onInvited(): void }) {
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<string>('viewer')
  const [made, setMade] = useState<{ link: string; expires_at: string } | null>(null)
  const { isBusy, problem, run } = useAction()
  if (made !== null) {
    return (
      <Dialog title="Invitation" onClose={onClose}>
        <p>
          Bring this link to the person by a way that you trust. It works once, until{' '}
          <Time at={made.expires_at} />, and is shown now only.
        </p>
        <Code text={made.link} label="Link" />
        <div>
          <Button kind="primary" onClick={onClose}>
            Done
          </Button>
        </div>
      </Dialog>
    )
  }
  return (
    <Dialog title="Invite a person" onClose={onClose}>
      <form
        class="stack"
        onSubmit={onSubmit(() =>
          run(async () => {
            setMade(
              await panel('POST', `${scope.value.panelPath}/invitations`, {
                role,
                email: email.trim(),
              }),
            )
            onInvited()
          }),
        )}
      >
        <Text
          label="Email"
          type="email"
          value={email}
          onValue={setEmail}
          maxLength={254}
          required
          hint="Only this e-mail address can accept the invitation"
        />
        <Choice label="Role" value={role} onValue={setRole} options={rolesFor()} />
        <p class="muted">The platform sends no mail: you get a link, and bring it over yourself.</p>
        <ProblemNote problem={problem} />
        <Button kind="primary" type="submit" isBusy={isBusy}>
          Make the link
        </Button>
      </form>
    </Dialog>
  )
}

function Change({ member, onClose, onDone }: { member: Member; onClose(): void; onDone(): void }) {
  const [role, setRole] = useState<string>(member.role)
  const [commands, setCommands] = useState<Command[] | null>(null)
  const [isRemoving, setRemoving] = useState(false)
  const { isBusy, problem, run } = useAction()
  const isMe = member.id === session.value?.person?.id
  const path = `${scope.value.panelPath}/people/${member.id}`
  if (commands !== null) {
    return (
      <Dialog title={`${member.name} was removed from the workspace`} onClose={onDone} isWide>
        <Note tone="warn">
          <p>
            Their own keys are revoked at the platform. The nodes still know them: have each
            operator end them there too.
          </p>
        </Note>
        {commands.map(({ where, command }) => (
          <div key={where + command} class="stack-small">
            <p class="label">{where}</p>
            <Code text={command} label={`Command: ${where}`} />
          </div>
        ))}
        <div>
          <Button onClick={onDone}>Done</Button>
        </div>
      </Dialog>
    )
  }
  const remove = () =>
    run(async () => {
      const { commands: left } = await panel<{ commands: Command[] }>('DELETE', path)
      if (isMe) return openSession()
      if (left.length === 0) onDone()
      else setCommands(left)
    })
  return (
    <Dialog title={member.name} onClose={onClose}>
      <p class="muted">{member.email}</p>
      {may('admin') ? (
        <form
          class="stack"
          onSubmit={onSubmit(() =>
            run(async () => {
              await panel('PATCH', path, { role })
              toast(`${member.name} is ${role} now`)
              if (isMe) await openSession()
              onDone()
            }),
          )}
        >
          <Choice
            label="Role"
            value={role}
            onValue={setRole}
            options={rolesFor().some(([each]) => each === member.role) ? rolesFor() : ROLES}
          />
          <Button kind="primary" type="submit" isBusy={isBusy} disabled={role === member.role}>
            Change the role
          </Button>
        </form>
      ) : null}
      <ProblemNote problem={problem} />
      {isRemoving ? (
        <Note tone="bad">
          <p>
            {isMe ? 'You leave this workspace.' : 'All sessions of this person end immediately.'} An
            invitation is needed to come back.
          </p>
          <div class="row">
            <Button kind="danger" isBusy={isBusy} onClick={remove}>
              {isMe ? 'Leave' : 'Take out'}
            </Button>
            <Button onClick={() => setRemoving(false)}>Keep</Button>
          </div>
        </Note>
      ) : (
        <div>
          <Button kind="danger" class="small" onClick={() => setRemoving(true)}>
            {isMe ? 'Leave this workspace' : 'Remove from the workspace'}
          </Button>
        </div>
      )}
    </Dialog>
  )
}

function Invitations({ reading }: { reading: ReturnType<typeof useRead<OpenInvitation[]>> }) {
  const { problem, run } = useAction()
  if ((reading.data?.length ?? 0) === 0 && reading.problem === null) return null
  return (
    <Card title="Open invitations" isBare>
      <ProblemNote problem={problem} />
      <Table
        label="Invitations"
        reading={reading}
        rows={reading.data}
        keyOf={({ id }) => id}
        columns={[
          {
            head: 'For',
            cell: ({ email }) => email ?? <span class="muted">anyone who has the link</span>,
          },
          { head: 'Role', cell: ({ role }) => role },
          { head: 'By', isMinor: true, cell: ({ invited_by: by }) => by ?? 'the operator' },
          { head: 'Until', cell: ({ expires_at: at }) => <Time at={at} /> },
          {
            head: '',
            cell: ({ id }) => (
              <Button
                class="small"
                onClick={() =>
                  run(async () => {
                    await panel('DELETE', `${scope.value.panelPath}/invitations/${id}`)
                    toast('The link is no longer valid')
                    reading.reload()
                  })
                }
              >
                Withdraw
              </Button>
            ),
          },
        ]}
        empty={null}
      />
    </Card>
  )
}

export function People() {
  const people = useRead<Member[]>(ofWorkspace('/people'))
  const invitations = useRead<OpenInvitation[]>(may('admin') ? ofWorkspace('/invitations') : null)
  const [isInviting, setInviting] = useState(false)
  const [shown, setShown] = useState<Member | null>(null)
  const me = session.value?.person?.id
  const invite = may('admin') ? (
    <Button kind="primary" icon="plus" onClick={() => setInviting(true)}>
      Invite
    </Button>
  ) : undefined
  return (
    <Page
      title="People"
      lead={`Who may open this panel for ${scope.value.workspace}. None of them can move coins by that alone.`}
      actions={invite}
    >
      <Card isBare>
        <Table
          label="People"
          reading={people}
          rows={people.data}
          keyOf={({ id }) => id}
          columns={[
            {
              head: 'Name',
              cell: (member) => (
                <>
                  {may('admin') || member.id === me ? (
                    <button type="button" class="link" onClick={() => setShown(member)}>
                      {member.name}
                    </button>
                  ) : (
                    member.name
                  )}
                  {member.id === me ? <span class="chip">You</span> : null}
                </>
              ),
            },
            { head: 'Email', isMinor: true, cell: ({ email }) => email },
            { head: 'Role', cell: ({ role }) => role },
            {
              head: 'Signs in by',
              isMinor: true,
              cell: ({ passkeys, has_totp: totp }) =>
                [passkeys > 0 ? 'passkey' : '', totp ? 'authenticator app' : '']
                  .filter((each) => each !== '')
                  .join(', ') || <span class="muted">–</span>,
            },
            { head: 'Last seen', cell: ({ last_seen_at: at }) => <Time at={at} /> },
          ]}
          empty={<Empty icon="people" title="No people yet" action={invite} />}
        />
      </Card>
      {may('admin') ? <Invitations reading={invitations} /> : null}
      {isInviting ? (
        <Invite onClose={() => setInviting(false)} onInvited={invitations.reload} />
      ) : null}
      {shown === null ? null : (
        <Change
          member={shown}
          onClose={() => setShown(null)}
          onDone={() => {
            setShown(null)
            people.reload()
          }}
        />
      )}
    </Page>
  )
}
