import { useState } from 'preact/hooks'
import { panel } from '../api/http.ts'
import { register } from '../api/passkeys.ts'
import { session } from '../api/scope.ts'
import { openSession } from '../api/session.ts'
import type { OpenSession, Passkey } from '../api/types.ts'
import { useAction, useRead } from '../api/use.ts'
import { toast } from '../parts/announce.tsx'
import { Button, Dialog, onSubmit, Text } from '../parts/form.tsx'
import { Card, Empty, Facts, Note, Page, ProblemNote } from '../parts/page.tsx'
import { RecoveryCodes } from '../parts/recovery-codes.tsx'
import { Time } from '../parts/values.tsx'
import { Table } from '../parts/table.tsx'
import { TotpDialog } from '../parts/totp-dialog.tsx'

/** Returns `Chrome on Linux` of a user agent, approximately. */
function browserOf(agent: string | null): string {
  if (agent === null) return 'Unknown browser'
  const find = (names: readonly (readonly [RegExp, string])[], fallback: string) =>
    names.find(([pattern]) => pattern.test(agent))?.[1] ?? fallback
  const name = find(
    [
      [/Edg\//, 'Edge'],
      [/Firefox\//, 'Firefox'],
      [/Chrom(?:e|ium)\//, 'Chrome'],
      [/Safari\//, 'Safari'],
    ],
    agent.slice(0, 30),
  )
  const system = find(
    [
      [/Android/, 'Android'],
      [/iPhone|iPad/, 'iOS'],
      [/Mac OS X|Macintosh/, 'macOS'],
      [/Windows/, 'Windows'],
      [/Linux/, 'Linux'],
    ],
    '',
  )
  return system === '' ? name : `${name} on ${system}`
}

function Passkeys() {
  const passkeys = useRead<Passkey[]>('/console/api/me/passkeys')
  const [isAdding, setAdding] = useState(false)
  const [name, setName] = useState('')
  const add = useAction()
  const change = useAction()
  const isAvailable = session.value?.passkeys_available === true && 'PublicKeyCredential' in window
  return (
    <Card
      title="Passkeys"
      lead="A key in your device or on a security token: the strongest way to sign in."
      isBare
      actions={
        isAvailable ? (
          <Button icon="plus" class="small" onClick={() => setAdding(true)}>
            Add a passkey
          </Button>
        ) : undefined
      }
    >
      <ProblemNote problem={change.problem} />
      <Table
        label="Passkeys"
        reading={passkeys}
        rows={passkeys.data}
        keyOf={({ id }) => id}
        columns={[
          { head: 'Name', cell: ({ name }) => name },
          { head: 'Added', cell: ({ created_at }) => <Time at={created_at} />, isMinor: true },
          { head: 'Last used', cell: ({ last_used_at }) => <Time at={last_used_at} /> },
          {
            head: '',
            cell: (key) => (
              <Button
                class="small"
                onClick={() =>
                  change.run(async () => {
                    await panel('DELETE', `/me/passkeys/${key.id}`)
                    toast(`The passkey “${key.name}” is gone`)
                    passkeys.reload()
                    await openSession()
                  })
                }
              >
                Remove
              </Button>
            ),
          },
        ]}
        empty={
          <Empty icon="key" title="No passkey yet">
            {isAvailable
              ? 'Add one: it signs in without a password, and cannot be phished.'
              : 'Open the panel at localhost or at your domain over https to add one.'}
          </Empty>
        }
      />
      {isAdding ? (
        <Dialog title="Add a passkey" onClose={() => setAdding(false)}>
          <form
            class="stack"
            onSubmit={onSubmit(() =>
              add.run(async () => {
                await register('/me/passkeys', {}, { name: name.trim() })
                setAdding(false)
                setName('')
                toast('The passkey signs you in from now on')
                passkeys.reload()
                await openSession()
              }),
            )}
          >
            <Text
              label="Name"
              hint="So that you know it again: laptop, token in the safe"
              value={name}
              onValue={setName}
              required
              maxLength={60}
            />
            <ProblemNote problem={add.problem} />
            <Button kind="primary" type="submit" isBusy={add.isBusy} icon="key">
              Make it
            </Button>
          </form>
        </Dialog>
      ) : null}
    </Card>
  )
}

function Password() {
  const person = session.value?.person
  const [current, setCurrent] = useState('')
  const [password, setPassword] = useState('')
  const { isBusy, problem, run } = useAction()
  return (
    <Card
      title={person?.has_password ? 'Password' : 'Set a password'}
      lead="For when no passkey is at hand. It is always asked for together with your authenticator app."
    >
      <form
        class="grid-form"
        onSubmit={onSubmit(() =>
          run(async () => {
            await panel('POST', '/me/password', {
              ...(person?.has_password ? { current } : {}),
              password,
            })
            setCurrent('')
            setPassword('')
            toast('The password is changed')
            await openSession()
          }),
        )}
      >
        {person?.has_password ? (
          <Text
            label="Current password"
            type="password"
            value={current}
            onValue={setCurrent}
            required
            autoComplete="current-password"
            maxLength={256}
          />
        ) : null}
        <Text
          label="New password"
          type="password"
          value={password}
          onValue={setPassword}
          required
          minLength={12}
          maxLength={256}
          autoComplete="new-password"
          hint="At least 12 characters, and not easy to guess"
        />
        <ProblemNote problem={problem} />
        <div class="form-end">
          <Button type="submit" isBusy={isBusy}>
            {person?.has_password ? 'Change password' : 'Set password'}
          </Button>
        </div>
      </form>
    </Card>
  )
}

function SecondFactor() {
  const person = session.value?.person
  const [isSetting, setSetting] = useState(false)
  const [codes, setCodes] = useState<string[] | null>(null)
  const { isBusy, problem, run } = useAction()
  return (
    <Card title="Authenticator app and recovery codes">
      <Facts
        of={[
          ['Authenticator app', person?.has_totp ? 'Set up' : 'Not set up'],
          ['Recovery codes', `${person?.recovery_codes_left ?? 0} of 10 left`],
        ]}
      />
      {person && person.recovery_codes_left < 3 ? (
        <Note tone="warn">
          <p>
            {person.recovery_codes_left === 0
              ? 'You have no recovery codes'
              : 'Few recovery codes are left'}
            : make ten new ones. Each signs you in once,{' '}
            {person.has_password ? 'after your password' : 'with your e-mail address'}.
          </p>
        </Note>
      ) : null}
      <ProblemNote problem={problem} />
      <div class="row">
        <Button class="small" onClick={() => setSetting(true)}>
          {person?.has_totp ? 'Set up another app' : 'Set up an app'}
        </Button>
        <Button
          class="small"
          isBusy={isBusy}
          onClick={() =>
            run(async () =>
              setCodes(
                (await panel<{ recovery_codes: string[] }>('POST', '/me/recovery-codes'))
                  .recovery_codes,
              ),
            )
          }
        >
          New recovery codes
        </Button>
      </div>
      {isSetting ? <TotpDialog onClose={() => setSetting(false)} /> : null}
      {codes === null ? null : (
        <Dialog title="Ten new recovery codes" onClose={() => setCodes(null)}>
          <p>The old codes are no longer valid. The new ones are shown only now.</p>
          <RecoveryCodes
            codes={codes}
            onKept={() => {
              setCodes(null)
              void openSession()
            }}
          />
        </Dialog>
      )}
    </Card>
  )
}

function Sessions() {
  const sessions = useRead<OpenSession[]>('/console/api/me/sessions')
  const { isBusy, problem, run } = useAction()
  const others = sessions.data?.filter(({ is_current }) => !is_current).length ?? 0
  return (
    <Card
      title="Signed in"
      lead="Every browser in which you are signed in."
      isBare
      actions={
        others === 0 ? undefined : (
          <Button
            class="small"
            isBusy={isBusy}
            onClick={() =>
              run(async () => {
                await panel('POST', '/me/sessions/revoke-others')
                toast('You are signed in here only')
                sessions.reload()
              })
            }
          >
            Sign out everywhere else
          </Button>
        )
      }
    >
      <ProblemNote problem={problem} />
      <Table
        label="Sessions"
        reading={sessions}
        rows={sessions.data}
        keyOf={({ id }) => id}
        columns={[
          {
            head: 'Browser',
            cell: ({ user_agent, is_current }) => (
              <>
                {browserOf(user_agent)}
                {is_current ? <span class="chip">This one</span> : null}
              </>
            ),
          },
          { head: 'Address', cell: ({ ip }) => ip ?? '–', isMinor: true },
          { head: 'Signed in', cell: ({ created_at }) => <Time at={created_at} />, isMinor: true },
          { head: 'Last seen', cell: ({ last_seen_at }) => <Time at={last_seen_at} /> },
          {
            head: '',
            cell: (each) =>
              each.is_current ? null : (
                <Button
                  class="small"
                  onClick={() =>
                    run(async () => {
                      await panel('DELETE', `/me/sessions/${each.id}`)
                      toast('That browser is signed out')
                      sessions.reload()
                    })
                  }
                >
                  Sign out
                </Button>
              ),
          },
        ]}
        empty={null}
      />
    </Card>
  )
}

export function Account() {
  const person = session.value?.person
  return (
    <Page
      title="Account and sign-in"
      lead={
        <>
          {person?.name} · {person?.email}
        </>
      }
    >
      {person !== null &&
      person !== undefined &&
      person.passkeys === 0 &&
      session.value?.passkeys_available === true ? (
        <Note tone="info">
          <p>
            You sign in by password. A passkey is faster, and nobody can have it typed into a false
            page.
          </p>
        </Note>
      ) : null}
      <Passkeys />
      <Password />
      <SecondFactor />
      <Sessions />
    </Page>
  )
}
