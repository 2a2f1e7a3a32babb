import { useState } from 'preact/hooks'
import { panel } from '../api/http.ts'
import { authenticate } from '../api/passkeys.ts'
import { session } from '../api/scope.ts'
import { enter } from '../api/session.ts'
import type { Session } from '../api/types.ts'
import { useAction } from '../api/use.ts'
import { Door } from '../parts/door.tsx'
import { Button, onSubmit, Text } from '../parts/form.tsx'
import { Note, ProblemNote } from '../parts/page.tsx'

type Step = { is: 'first' } | { is: 'totp' | 'recovery'; mfa_token: string }

/** Passkey, or password and a second factor. */
export function SignIn() {
  const [step, setStep] = useState<Step>({ is: 'first' })
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const { isBusy, problem, run, clear } = useAction()
  const isPasskeyHere = session.value?.passkeys_available === true && 'PublicKeyCredential' in window
  const withPassword = () =>
    run(async () => {
      const { mfa_token } = await panel<{ mfa_token: string }>('POST', '/sign-in/password', { email: email.trim(), password })
      setPassword('')
      setStep({ is: 'totp', mfa_token })
    })
  const withCode = () =>
    run(async () => {
      if (step.is === 'first') return
      enter(await panel<Session>('POST', `/sign-in/${step.is}`, { mfa_token: step.mfa_token, code: code.replaceAll(/\s/g, '') }))
    })
  const change = (is: 'totp' | 'recovery' | 'first') => {
    clear()
    setCode('')
    setStep(is === 'first' || step.is === 'first' ? { is: 'first' } : { is, mfa_token: step.mfa_token })
  }
  if (step.is !== 'first') {
    const isRecovery = step.is === 'recovery'
    return (
      <Door
        key={step.is}
        title={isRecovery ? 'Recovery code' : 'Second factor'}
        lead={isRecovery ? 'Each of your ten codes works once.' : 'The six digits that your authenticator app shows now.'}
      >
        <form class="stack" onSubmit={onSubmit(withCode)}>
          <Text
            label={isRecovery ? 'Recovery code' : 'Code'}
            value={code}
            onValue={setCode}
            required
            autoFocus
            class="input input-code"
            autoComplete="one-time-code"
            inputMode={isRecovery ? 'text' : 'numeric'}
            maxLength={40}
          />
          <ProblemNote problem={problem} />
          <Button kind="primary" type="submit" isBusy={isBusy}>
            Sign in
          </Button>
        </form>
        <div class="door-more">
          <Button kind="quiet" onClick={() => change(isRecovery ? 'totp' : 'recovery')}>
            {isRecovery ? 'Use the authenticator app' : 'Use a recovery code'}
          </Button>
          <Button kind="quiet" onClick={() => change('first')}>
            Start again
          </Button>
        </div>
      </Door>
    )
  }
  return (
    <Door title="Sign in" lead="Custody control panel">
      {isPasskeyHere ? (
        <>
          <Button kind="primary" icon="key" isBusy={isBusy} onClick={() => run(async () => enter(await authenticate()))}>
            Sign in with a passkey
          </Button>
          <p class="or">
            <span>or</span>
          </p>
        </>
      ) : (
        <Note tone="info">
          <p>
            Passkeys need a name for this address. Open the panel at <code>localhost</code> or at your domain, over https.
          </p>
        </Note>
      )}
      <form class="stack" onSubmit={onSubmit(withPassword)}>
        <Text label="Email" type="email" value={email} onValue={setEmail} required autoComplete="username" maxLength={254} />
        <Text
          label="Password"
          type="password"
          value={password}
          onValue={setPassword}
          required
          autoComplete="current-password"
          maxLength={256}
        />
        <ProblemNote problem={problem} />
        <Button kind={isPasskeyHere ? 'secondary' : 'primary'} type="submit" isBusy={isBusy}>
          Continue
        </Button>
      </form>
    </Door>
  )
}
