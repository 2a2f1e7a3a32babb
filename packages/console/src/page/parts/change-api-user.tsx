import { useState } from 'preact/hooks'
import { panel } from '../api/http.ts'
import { roleWord } from '../api/roles.ts'
import { may, scope, session } from '../api/scope.ts'
import { forgetKeyState } from '../api/sign.ts'
import type { ApiUser, Command } from '../api/types.ts'
import { useAction } from '../api/use.ts'
import { toast } from './announce.tsx'
import { Commands } from './commands.tsx'
import { Button, Dialog, Field, onSubmit, Text } from './form.tsx'
import { Facts, Note, ProblemNote } from './page.tsx'
import { Code, Id, Time } from './values.tsx'
import { linesOf } from './new-api-user.tsx'

/** One API user, or a request for one. */
export function ChangeApiUser({
  user,
  onClose,
  onDone,
}: {
  user: ApiUser
  onClose(): void
  onDone(): void
}) {
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
          <p>
            The nodes still know the key: what it signed before, they would sign for. Have each
            operator end it there too.
          </p>
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
          user.api_key === null
            ? null
            : ['API key', <Id key="key" value={user.api_key} isWhole label="API key" />],
          [
            'Fingerprint (SHA-256)',
            <Id key="print" value={user.key_fingerprint} isWhole label="fingerprint" />,
          ],
          ['Sub-account', user.sub_account],
          ['May', roleWord(user.role)],
          ['Whose', user.person?.name ?? 'A machine’s'],
          ['Made', <Time key="made" at={user.created_at} isLong />],
          ['Last used', <Time key="used" at={user.last_used_at} isLong />],
          user.revoked_at === null
            ? null
            : ['Revoked', <Time key="revoked" at={user.revoked_at} isLong />],
        ]}
      />
      {isRequest ? (
        <Commands of={user} />
      ) : (
        <Code text={user.public_key_pem.trim()} label="Public key" />
      )}
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
            label="Requests per minute"
            value={rate}
            onValue={(value) => setRate(value.replaceAll(/\D/g, ''))}
            inputMode="numeric"
            hint="Empty: the default limit"
            maxLength={8}
          />
          <Field
            isWide
            label="Allowed addresses"
            hint="Addresses or ranges, one per line. Empty: any address."
          >
            {(props) => (
              <textarea
                class="input"
                rows={3}
                {...props}
                value={list}
                onInput={(event) => setList(event.currentTarget.value)}
              />
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
            {isRequest
              ? 'The request is withdrawn.'
              : 'It is refused at once, and cannot be made good: another API user is needed then.'}
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
