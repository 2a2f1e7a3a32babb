import { useState } from 'preact/hooks'
import { panel, read } from '../api/http.ts'
import { authenticate, register } from '../api/passkeys.ts'
import { session } from '../api/scope.ts'
import { enter } from '../api/session.ts'
import type { Session } from '../api/types.ts'
import { useAction } from '../api/use.ts'
import { SignedOutLayout } from '../parts/signed-out-layout.tsx'
import { Button, onSubmit, Text } from '../parts/form.tsx'
import { Note, ProblemNote } from '../parts/page.tsx'
import { go } from '../router.ts'

type Step =
  | { is: 'first' }
  | { is: 'totp' | 'recovery'; mfa_token: string }
  | { is: 'recover' }
  | { is: 'recovered'; session: Session }

/**
 * Sign-in by passkey, by password and a second factor, or without a password by a recovery code.
 */
export function SignIn() {
  const [step, setStep] = useState<Step>({ is: 'first' })
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const { isBusy, problem, run, clear } = useAction()
  const isPasskeyHere =
    session.value?.passkeys_available === true && 'PublicKeyCredential' in window
  const withPassword = () =>
    run(async () => {
      const { mfa_token } = await panel<{ mfa_token: string }>('POST', '/sign-in/password', {
        email: email.trim(),
        password,
      })
      setPassword('')
      setStep({ is: 'totp', mfa_token })
    })
  const withCode = () =>
    run(async () => {
      if (step.is !== 'totp' && step.is !== 'recovery') return
      enter(
        await panel<Session>('POST', `/sign-in/${step.is}`, {
          mfa_token: step.mfa_token,
          code: code.replaceAll(/\s/g, ''),
        }),
      )
    })
  const change = (is: 'totp' | 'recovery' | 'first') => {
    clear()
    setCode('')
    setStep(
      is === 'first' || !('mfa_token' in step)
        ? { is: 'first' }
        : { is, mfa_token: step.mfa_token },
    )
  }
  if (step.is === 'recovered') return <Recovered session={step.session} />
  if (step.is === 'recover')
    return (
      <Recover
        email={email}
        onEmail={setEmail}
        onBack={() => change('first')}
        onSession={(entered) => setStep({ is: 'recovered', session: entered })}
      />
    )
  if (step.is !== 'first') {
    const isRecovery = step.is === 'recovery'
    return (
      <SignedOutLayout
        key={step.is}
        title={isRecovery ? 'Recovery code' : 'Second factor'}
        lead={
          isRecovery
            ? 'Each of your ten codes works once.'
            : 'The six digits that your authenticator app shows now.'
        }
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
      </SignedOutLayout>
    )
  }
  return (
    <SignedOutLayout title="Sign in" lead="Custody control panel">
      {isPasskeyHere ? (
        <>
          <Button
            kind="primary"
            icon="key"
            isBusy={isBusy}
            onClick={() => run(async () => enter(await authenticate()))}
          >
            Sign in with a passkey
          </Button>
          <p class="or">
            <span>or</span>
          </p>
        </>
      ) : (
        <Note tone="info">
          <p>
            Passkeys need a name for this address. Open the panel at <code>localhost</code> or at
            your domain, over https.
          </p>
        </Note>
      )}
      <form class="stack" onSubmit={onSubmit(withPassword)}>
        <Text
          label="Email"
          type="email"
          value={email}
          onValue={setEmail}
          required
          autoComplete="username"
          maxLength={254}
        />
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
      <div class="door-more">
        <Button
          kind="quiet"
          onClick={() => {
            clear()
            setStep({ is: 'recover' })
          }}
        >
          I have lost my passkey
        </Button>
      </div>
    </SignedOutLayout>
  )
}

/** Sign-in by e-mail address and recovery code, for people without a password. */
function Recover({
  email,
  onEmail,
  onBack,
  onSession,
}: {
  email: string
  onEmail(email: string): void
  onBack(): void
  onSession(session: Session): void
}) {
  const [code, setCode] = useState('')
  const { isBusy, problem, run } = useAction()
  const submit = () =>
    run(async () =>
      onSession(
        await panel<Session>('POST', '/sign-in/recovery-code', { email: email.trim(), code }),
      ),
    )
  return (
    <SignedOutLayout
      key="recover"
      title="Sign in with a recovery code"
      lead="Each code works once, and signs you out everywhere else. If you have a password, sign in with it first."
    >
      <form class="stack" onSubmit={onSubmit(submit)}>
        <Text
          label="Email"
          type="email"
          value={email}
          onValue={onEmail}
          required
          autoComplete="username"
          maxLength={254}
        />
        <Text
          label="Recovery code"
          value={code}
          onValue={setCode}
          required
          class="input input-code"
          autoComplete="off"
          maxLength={40}
        />
        <ProblemNote problem={problem} />
        <Button kind="primary" type="submit" isBusy={isBusy}>
          Sign in
        </Button>
      </form>
      <div class="door-more">
        <Button kind="quiet" onClick={onBack}>
          Start again
        </Button>
      </div>
      <p class="muted door-lead">
        Without codes, ask the operator of the platform for a link that sets new factors.
      </p>
    </SignedOutLayout>
  )
}

/** Shown after a sign-in by recovery code, because the person needs a new passkey. */
function Recovered({ session: entered }: { session: Session }) {
  const { isBusy, problem, run } = useAction()
  const count = entered.person?.recovery_codes_left ?? 0
  const left = `${count} recovery ${count === 1 ? 'code is' : 'codes are'} left`
  const make = () =>
    run(async () => {
      await register('/me/passkeys', {}, { name: 'Passkey after recovery' })
      enter(await read<Session>('/console/api/session'))
      go('/console/account', 'replace')
    })
  return (
    <SignedOutLayout
      key="recovered"
      title="Make a new passkey"
      lead={`You are signed in here only, and ${left}. Make a passkey on this device, then remove the lost one in your account.`}
    >
      <ProblemNote problem={problem} />
      {entered.passkeys_available && 'PublicKeyCredential' in window ? (
        <Button kind="primary" icon="key" isBusy={isBusy} onClick={make}>
          Make a passkey
        </Button>
      ) : (
        <Note tone="warn">
          <p>
            Passkeys are not available at this address. Set a password and an authenticator app in
            your account.
          </p>
        </Note>
      )}
      <div class="door-more">
        <Button
          kind="quiet"
          onClick={() => {
            enter(entered)
            go('/console/account', 'replace')
          }}
        >
          Later, in my account
        </Button>
      </div>
    </SignedOutLayout>
  )
}
