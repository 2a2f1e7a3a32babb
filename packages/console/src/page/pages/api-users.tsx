import { useState } from 'preact/hooks'
import { panel } from '../api/http.ts'
import { listKeys, makeExportableKey, readPublicKey } from '../api/keys.ts'
import { may, ofWorkspace, pageAt, scope, session } from '../api/scope.ts'
import { forgetKeyState } from '../api/sign.ts'
import type { ApiUser, Command, Requested } from '../api/types.ts'
import { useAction, useRead } from '../api/use.ts'
import { toast } from '../parts/announce.tsx'
import { Commands } from '../parts/commands.tsx'
import { download } from '../parts/download.ts'
import { Button, Check, Choice, Dialog, Field, LinkButton, onSubmit, Text } from '../parts/form.tsx'
import { Card, Empty, Facts, Note, Page, ProblemNote } from '../parts/page.tsx'
import { Code, Id, Time } from '../parts/show.tsx'
import { Status } from '../parts/status.tsx'
import { Table } from '../parts/table.tsx'

const BITS_MIN = 4096

const linesOf = (text: string) => text.split(/[\s,;]+/).filter((each) => each !== '')

function NewUser({ onClose, onAsked }: { onClose(): void; onAsked(asked: Requested, pem: string): void }) {
  const member = session.value?.workspaces.find(({ name }) => name === scope.value.workspace)
  const [subAccount, setSubAccount] = useState(scope.value.subAccount)
  const [role, setRole] = useState('full')
  const [label, setLabel] = useState('')
  const [rate, setRate] = useState('')
  const [list, setList] = useState('')
  const [how, setHow] = useState<'upload' | 'make'>('upload')
  const [pem, setPem] = useState('')
  const [isOwn, setOwn] = useState(!may('admin'))
  const { isBusy, problem, run } = useAction()
  const submit = () =>
    run(async () => {
      let publicKey = pem.trim()
      if (how === 'make') {
        const made = await makeExportableKey()
        download(`${label.trim() || 'custody'}-private-key.pem`, made.private_key_pem, 'application/x-pem-file')
        publicKey = made.public_key_pem
      } else {
        const { bits } = await readPublicKey(publicKey)
        if (bits < BITS_MIN) throw new TypeError(`The key has ${bits} bits: at least ${BITS_MIN} are needed.`)
      }
      onAsked(
        await panel<Requested>('POST', `${scope.value.panelPath}/api-users`, {
          sub_account: subAccount.trim(),
          role,
          public_key_pem: publicKey,
          own: isOwn,
          ...(label.trim() === '' ? {} : { label: label.trim() }),
          ...(rate.trim() === '' ? {} : { rate_limit: Number(rate) }),
          ...(list.trim() === '' ? {} : { ip_allow_list: linesOf(list) }),
        }),
        publicKey,
      )
    })
  const of = (field: string) => (problem?.field === field ? problem.message : null)
  return (
    <Dialog title="Ask for an API user" onClose={onClose} isWide>
      <form class="grid-form" onSubmit={onSubmit(submit)}>
        <Text
          label="Name"
          value={label}
          onValue={setLabel}
          hint="What uses it: back office, payout service"
          maxLength={100}
          error={of('label')}
        />
        <Field label="Sub-account" hint="A new name makes a new one" error={of('sub_account')}>
          {(props) => (
            <>
              <input
                class="input"
                list="sub-accounts"
                required
                maxLength={100}
                {...props}
                value={subAccount}
                onInput={(event) => setSubAccount(event.currentTarget.value)}
              />
              <datalist id="sub-accounts">
                {member?.sub_accounts.map((name) => (
                  <option key={name} value={name} />
                ))}
              </datalist>
            </>
          )}
        </Field>
        <Choice
          label="May"
          value={role}
          onValue={setRole}
          options={[
            ['full', 'Everything in the sub-account'],
            ['read-only', 'Read only'],
          ]}
        />
        <Text
          label="Requests a minute"
          value={rate}
          onValue={(value) => setRate(value.replaceAll(/\D/g, ''))}
          inputMode="numeric"
          hint="Empty: as everybody"
          maxLength={8}
          error={of('rate_limit')}
        />
        <Field
          isWide
          label="Used from"
          hint="Addresses or ranges such as 203.0.113.0/24, one a line. Empty: from anywhere."
          error={of('ip_allow_list')}
        >
          {(props) => <textarea class="input" rows={2} {...props} value={list} onInput={(event) => setList(event.currentTarget.value)} />}
        </Field>
        <fieldset class="field is-wide">
          <legend>Key</legend>
          <div class="switch" role="group" aria-label="Where the key comes from">
            <button type="button" aria-pressed={how === 'upload'} onClick={() => setHow('upload')}>
              Upload a public key
            </button>
            <button type="button" aria-pressed={how === 'make'} onClick={() => setHow('make')}>
              Make a pair here
            </button>
          </div>
        </fieldset>
        {how === 'upload' ? (
          <Field
            isWide
            label="Public key (PEM)"
            hint={
              <>
                Made by <code>npx custody keygen</code>, or <code>openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:4096</code>.
                Never the private half.
              </>
            }
            error={of('public_key_pem')}
          >
            {(props) => (
              <textarea
                class="input"
                rows={5}
                required
                placeholder="-----BEGIN PUBLIC KEY-----"
                {...props}
                value={pem}
                onInput={(event) => setPem(event.currentTarget.value)}
              />
            )}
          </Field>
        ) : (
          <div class="is-wide">
            <Note tone="warn">
              <p>
                The private key is saved as a file, once, and kept nowhere else. For signing in this browser, use the{' '}
                <a href={pageAt('/browser-key')}>browser key</a>, which no file ever holds.
              </p>
            </Note>
          </div>
        )}
        {may('admin') ? (
          <div class="is-wide">
            <Check label="It is my own" hint="What it signs is shown under your name" value={isOwn} onValue={setOwn} />
          </div>
        ) : null}
        <ProblemNote
          problem={
            problem !== null && ['label', 'sub_account', 'rate_limit', 'ip_allow_list', 'public_key_pem'].includes(problem.field ?? '')
              ? null
              : problem
          }
        />
        <div class="form-end">
          <Button kind="primary" type="submit" isBusy={isBusy}>
            Ask for it
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

function Change({ user, onClose, onDone }: { user: ApiUser; onClose(): void; onDone(): void }) {
  const [label, setLabel] = useState(user.label ?? '')
  const [rate, setRate] = useState(user.rate_limit === null ? '' : String(user.rate_limit))
  const [list, setList] = useState(user.ip_allow_list.join('\n'))
  const [commands, setCommands] = useState<Command[] | null>(null)
  const [isRevoking, setRevoking] = useState(false)
  const { isBusy, problem, run } = useAction()
  const isRequest = user.api_key === null
  const path = `${scope.value.panelPath}/api-users/${user.id}`
  const mayRevoke = may('admin') || user.person?.id === session.value?.person?.id
  if (commands !== null) {
    return (
      <Dialog title="Revoked at the platform" onClose={onDone} isWide>
        <Note tone="warn">
          <p>The nodes still know the key: what it signed before, they would sign for. Have each operator end it there too.</p>
        </Note>
        {commands.map(({ where, command }) => (
          <div key={where} class="stack-small">
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
  return (
    <Dialog title={user.label ?? 'API user'} onClose={onClose} isWide>
      <Facts
        of={[
          user.api_key === null ? null : ['API key', <Id key="key" value={user.api_key} isWhole label="API key" />],
          ['Fingerprint (SHA-256)', <Id key="print" value={user.key_fingerprint} isWhole label="fingerprint" />],
          ['Sub-account', user.sub_account],
          ['May', user.role === 'full' ? 'Everything in the sub-account' : 'Read only'],
          ['Whose', user.person?.name ?? 'A machine’s'],
          ['Made', <Time key="made" at={user.created_at} isLong />],
          ['Last used', <Time key="used" at={user.last_used_at} isLong />],
          user.revoked_at === null ? null : ['Revoked', <Time key="revoked" at={user.revoked_at} isLong />],
        ]}
      />
      <Code text={user.public_key_pem.trim()} label="Public key" />
      {isRequest || user.revoked_at !== null || !may('admin') ? null : (
        <form
          class="grid-form"
          onSubmit={onSubmit(() =>
            run(async () => {
              await panel('PATCH', path, {
                label: label.trim(),
                rate_limit: rate === '' ? 0 : Number(rate),
                ip_allow_list: linesOf(list),
              })
              toast('The API user is changed')
              onDone()
            }),
          )}
        >
          <Text label="Name" value={label} onValue={setLabel} maxLength={100} />
          <Text
            label="Requests a minute"
            value={rate}
            onValue={(value) => setRate(value.replaceAll(/\D/g, ''))}
            inputMode="numeric"
            hint="Empty: as everybody"
            maxLength={8}
          />
          <Field isWide label="Used from" hint="Addresses or ranges, one a line. Empty: from anywhere.">
            {(props) => (
              <textarea class="input" rows={3} {...props} value={list} onInput={(event) => setList(event.currentTarget.value)} />
            )}
          </Field>
          <div class="form-end">
            <Button kind="primary" type="submit" isBusy={isBusy}>
              Save
            </Button>
          </div>
        </form>
      )}
      <ProblemNote problem={problem} />
      {user.revoked_at !== null || !mayRevoke ? null : isRevoking ? (
        <Note tone="bad">
          <p>
            {isRequest ? 'The request is withdrawn.' : 'It is refused at once, and cannot be made good: another API user is needed then.'}
          </p>
          <div class="row">
            <Button
              kind="danger"
              isBusy={isBusy}
              onClick={() =>
                run(async () => {
                  const answer = await panel<{ commands: Command[] }>('POST', `${path}/revoke`)
                  forgetKeyState()
                  if (answer.commands.length === 0) onDone()
                  else setCommands(answer.commands)
                })
              }
            >
              {isRequest ? 'Withdraw' : 'Revoke'}
            </Button>
            <Button onClick={() => setRevoking(false)}>Keep it</Button>
          </div>
        </Note>
      ) : (
        <div>
          <Button kind="danger" class="small" onClick={() => setRevoking(true)}>
            {isRequest ? 'Withdraw the request' : 'Revoke'}
          </Button>
        </div>
      )}
    </Dialog>
  )
}

export function ApiUsers() {
  const users = useRead<ApiUser[]>(ofWorkspace('/api-users'))
  const [isAsking, setAsking] = useState(false)
  const [shown, setShown] = useState<ApiUser | null>(null)
  const [asked, setAsked] = useState<{ requested: Requested; pem: string } | null>(null)
  const [here, setHere] = useState<ReadonlySet<string>>(() => {
    void listKeys().then(
      (keys) => setHere(new Set(keys.map(({ fingerprint }) => fingerprint))),
      () => undefined,
    )
    return new Set()
  })
  const isPast = ({ revoked_at: at }: ApiUser) => at !== null
  const rows = users.data?.toSorted((a, b) => Number(isPast(a)) - Number(isPast(b)) || b.created_at.localeCompare(a.created_at))
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
              Ask for an API user
            </Button>
          ) : null}
        </>
      }
    >
      {asked === null ? null : <Commands requested={asked.requested} publicKeyPem={asked.pem} />}
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
                  word={user.revoked_at !== null ? 'Revoked' : user.enrolment === 'pending' ? 'Waits for enrolment' : 'Enrolled'}
                />
              ),
            },
            { head: 'Sub-account', cell: ({ sub_account: name }) => name },
            { head: 'May', isMinor: true, cell: ({ role }) => (role === 'full' ? 'Full' : 'Read only') },
            { head: 'Whose', isMinor: true, cell: ({ person }) => person?.name ?? <span class="muted">a machine’s</span> },
            { head: 'API key', isMinor: true, cell: ({ api_key: key }) => <Id value={key} label="API key" /> },
            {
              head: 'Used from',
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
                  Make a key in this browser
                </LinkButton>
              }
            >
              What moves coins is signed by one of them. Begin with this browser’s own.
            </Empty>
          }
        />
      </Card>
      {isAsking ? (
        <NewUser
          onClose={() => setAsking(false)}
          onAsked={(requested, pem) => {
            setAsking(false)
            setAsked({ requested, pem })
            users.reload()
          }}
        />
      ) : null}
      {shown === null ? null : (
        <Change
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
