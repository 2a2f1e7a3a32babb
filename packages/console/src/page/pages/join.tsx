import { QrCode } from '@custody/site/qr'
import { useState } from 'preact/hooks'
import { panel } from '../api/http.ts'
import { register } from '../api/passkeys.ts'
import { session } from '../api/scope.ts'
import { enter } from '../api/session.ts'
import type { Invitation, Session } from '../api/types.ts'
import { useAction, useRead } from '../api/use.ts'
import { SignedOutLayout } from '../parts/signed-out-layout.tsx'
import { Button, onSubmit, Text } from '../parts/form.tsx'
import { ProblemNote, Skeleton } from '../parts/page.tsx'
import { RecoveryCodes } from '../parts/recovery-codes.tsx'
import { Id, Time } from '../parts/values.tsx'

interface Totp {
  totp_token: string
  secret: string
  otpauth_uri: string
}
const PASSWORD_MIN = 12

/** Reads the invitation of a link; its token is in the fragment, which the browser sends to no server. */
const readInvitation = (link: string) =>
  panel<Invitation>('POST', '/join/invitation', { invitation: link.split('#')[1] ?? '' })

/** Page on which the first owner or an invited person joins. */
export function Join() {
  const link = `${location.pathname}${location.hash}`
  const token = location.hash.slice(1)
  const invitation = useRead<Invitation>(link, undefined, readInvitation)
  const [step, setStep] = useState<'who' | Totp | { codes: string[] | null; session: Session }>(
    'who',
  )
  if (invitation.data === undefined) {
    return (
      <SignedOutLayout title="Invitation">
        {invitation.problem === null ? (
          <Skeleton />
        ) : (
          <ProblemNote problem={invitation.problem} retry={invitation.reload} />
        )}
      </SignedOutLayout>
    )
  }
  const { data } = invitation
  const offerCodes = (entered: Session) => setStep({ codes: null, session: entered })
  if (step === 'who')
    return <Who token={token} invitation={data} onTotp={setStep} onPasskey={offerCodes} />
  if ('codes' in step && step.codes === null) {
    const entered = step.session
    return (
      <WayBack
        onCodes={(codes) => setStep({ codes, session: withCodes(entered, codes.length) })}
        onLater={() => enter(entered)}
      />
    )
  }
  if ('codes' in step) {
    return (
      <SignedOutLayout
        key="codes"
        title="Keep your recovery codes"
        lead="Each code signs you in once if your authenticator or passkey is lost. They are shown only now."
      >
        <RecoveryCodes codes={step.codes ?? []} onKept={() => enter(step.session)} />
      </SignedOutLayout>
    )
  }
  return <Confirm totp={step} onCodes={(codes, entered) => setStep({ codes, session: entered })} />
}

/** Returns the session with the number of codes that were just generated. */
const withCodes = (entered: Session, count: number): Session => ({
  ...entered,
  person: entered.person && { ...entered.person, recovery_codes_left: count },
})

/**
 * Offers recovery codes to a person who joined by passkey. Without them the account is lost with
 * the device.
 */
function WayBack({ onCodes, onLater }: { onCodes(codes: string[]): void; onLater(): void }) {
  const { isBusy, problem, run } = useAction()
  return (
    <SignedOutLayout
      key="way-back"
      title="Keep a way back in"
      lead={
        'Your passkey is the only way to sign in. If you lose the device that holds it, ' +
        'a recovery code signs you in with your e-mail address.'
      }
    >
      <ProblemNote problem={problem} />
      <Button
        kind="primary"
        isBusy={isBusy}
        onClick={() =>
          run(async () =>
            onCodes(
              (await panel<{ recovery_codes: string[] }>('POST', '/me/recovery-codes'))
                .recovery_codes,
            ),
          )
        }
      >
        Make ten recovery codes
      </Button>
      <div class="door-more">
        <Button kind="quiet" onClick={onLater}>
          Later
        </Button>
      </div>
    </SignedOutLayout>
  )
}

function Who({
  token,
  invitation,
  onTotp,
  onPasskey,
}: {
  token: string
  invitation: Invitation
  onTotp(totp: Totp): void
  onPasskey(entered: Session): void
}) {
  const [email, setEmail] = useState(invitation.email ?? '')
  const [name, setName] = useState('')
  const [workspace, setWorkspace] = useState('')
  const [password, setPassword] = useState('')
  const [isByPassword, setByPassword] = useState(false)
  const { isBusy, problem, run } = useAction()
  const person = session.value?.person
  const isPasskeyHere =
    session.value?.passkeys_available === true && 'PublicKeyCredential' in window
  const who = () => ({
    invitation: token,
    email: email.trim(),
    name: name.trim(),
    ...(invitation.is_first ? { workspace: workspace.trim() } : {}),
  })
  const title = invitation.is_first
    ? 'Become the first owner'
    : invitation.is_reset
      ? 'Set new factors'
      : `Join ${invitation.workspace ?? ''}`
  const lead = (
    <>
      {invitation.is_reset ? (
        'What you signed in with before ends'
      ) : (
        <>
          You will be <strong>{invitation.role}</strong>
        </>
      )}
      . The link expires <Time at={invitation.expires_at} />.
    </>
  )
  if (person && !invitation.is_first && !invitation.is_reset) {
    return (
      <SignedOutLayout title={title} lead={lead}>
        <p>
          You are signed in as <strong>{person.email}</strong>.
        </p>
        <ProblemNote problem={problem} />
        <Button
          kind="primary"
          isBusy={isBusy}
          onClick={() =>
            run(async () => enter(await panel<Session>('POST', '/join', { invitation: token })))
          }
        >
          Accept the invitation
        </Button>
      </SignedOutLayout>
    )
  }
  const submit = () =>
    run(async () => {
      if (isByPassword || !isPasskeyHere)
        onTotp(await panel<Totp>('POST', '/join/password', { ...who(), password }))
      else onPasskey(await register<Session>('/join/passkey', who()))
    })
  const of = (field: string) => (problem?.field === field ? problem.message : null)
  return (
    <SignedOutLayout title={title} lead={lead}>
      <form class="stack" onSubmit={onSubmit(submit)}>
        {invitation.is_first ? (
          <Text
            label="Workspace"
            hint="Your organisation’s name. One that the operator has made already becomes yours."
            value={workspace}
            onValue={setWorkspace}
            required
            error={of('workspace')}
            maxLength={64}
          />
        ) : null}
        <Text
          label="Your name"
          value={name}
          onValue={setName}
          required
          autoComplete="name"
          error={of('name')}
          maxLength={100}
        />
        <Text
          label="Email"
          type="email"
          value={email}
          onValue={setEmail}
          required
          readOnly={invitation.email !== null}
          autoComplete="username"
          error={of('email')}
          maxLength={254}
        />
        {isByPassword || !isPasskeyHere ? (
          <Text
            label="Password"
            type="password"
            value={password}
            onValue={setPassword}
            required
            minLength={PASSWORD_MIN}
            maxLength={256}
            autoComplete="new-password"
            error={of('password')}
            hint={`At least ${PASSWORD_MIN} characters, none that is easy to guess. An authenticator app comes next.`}
          />
        ) : null}
        <ProblemNote problem={problem !== null && problem.field === null ? problem : null} />
        <Button
          kind="primary"
          type="submit"
          isBusy={isBusy}
          icon={isByPassword || !isPasskeyHere ? 'right' : 'key'}
        >
          {isByPassword || !isPasskeyHere ? 'Continue' : 'Make a passkey'}
        </Button>
      </form>
      {isPasskeyHere ? (
        <div class="door-more">
          <Button kind="quiet" onClick={() => setByPassword(!isByPassword)}>
            {isByPassword ? 'Use a passkey instead' : 'Use a password and an authenticator app'}
          </Button>
        </div>
      ) : null}
    </SignedOutLayout>
  )
}

function Confirm({
  totp,
  onCodes,
}: {
  totp: Totp
  onCodes(codes: string[], entered: Session): void
}) {
  const [code, setCode] = useState('')
  const { isBusy, problem, run } = useAction()
  const submit = () =>
    run(async () => {
      const { recovery_codes: codes, session: entered } = await panel<{
        recovery_codes: string[]
        session: Session
      }>('POST', '/join/totp', { totp_token: totp.totp_token, code: code.replaceAll(/\s/g, '') })
      onCodes(codes, entered)
    })
  return (
    <SignedOutLayout
      key="totp"
      title="Authenticator app"
      lead="Read the code with an authenticator app, then type the six digits that it shows."
    >
      <div class="qr-box">
        <QrCode text={totp.otpauth_uri} label="Secret for the authenticator app" />
      </div>
      <p class="muted">
        Or type the secret: <Id value={totp.secret} label="secret" isWhole />
      </p>
      <form class="stack" onSubmit={onSubmit(submit)}>
        <Text
          label="Code"
          value={code}
          onValue={setCode}
          required
          class="input input-code"
          inputMode="numeric"
          autoComplete="one-time-code"
          maxLength={10}
        />
        <ProblemNote problem={problem} />
        <Button kind="primary" type="submit" isBusy={isBusy}>
          Confirm
        </Button>
      </form>
    </SignedOutLayout>
  )
}
