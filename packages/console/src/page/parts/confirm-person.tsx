import { signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import { onRecentSignInRequired, panel } from '../api/http.ts'
import { authenticate } from '../api/passkeys.ts'
import { session } from '../api/scope.ts'
import { useAction } from '../api/use.ts'
import { Button, Dialog, onSubmit, Text } from './form.tsx'
import { ProblemNote } from './page.tsx'

const pending = signal<((isConfirmed: boolean) => void) | null>(null)

onRecentSignInRequired(
  () =>
    new Promise((resolve) => {
      pending.value?.(false)
      pending.value = resolve
    }),
)

function end(isConfirmed: boolean): void {
  pending.value?.(isConfirmed)
  pending.value = null
}

/** Requests a factor again before the person's way of signing in is changed. */
export function ConfirmPerson() {
  const [code, setCode] = useState('')
  const { isBusy, problem, run } = useAction()
  const person = session.value?.person
  if (pending.value === null || !person) return null
  const confirmed = () => {
    setCode('')
    end(true)
  }
  return (
    <Dialog title="Confirm that it is you" onClose={() => end(false)}>
      <p>
        You signed in more than 15 minutes ago. Confirm your identity to change how you sign in.
      </p>
      {person.passkeys > 0 ? (
        <Button
          kind="primary"
          icon="key"
          isBusy={isBusy}
          onClick={() =>
            run(async () => {
              await authenticate('/me/confirm/passkey')
              confirmed()
            })
          }
        >
          Confirm with a passkey
        </Button>
      ) : null}
      {person.has_totp ? (
        <form
          class="stack"
          onSubmit={onSubmit(() =>
            run(async () => {
              await panel('POST', '/me/confirm/totp', { code: code.replaceAll(/\s/g, '') })
              confirmed()
            }),
          )}
        >
          <Text
            label="Code of your authenticator app"
            value={code}
            onValue={setCode}
            required
            class="input input-code"
            inputMode="numeric"
            autoComplete="one-time-code"
            maxLength={10}
          />
          <Button type="submit" isBusy={isBusy}>
            Confirm
          </Button>
        </form>
      ) : null}
      <ProblemNote problem={problem} />
    </Dialog>
  )
}
