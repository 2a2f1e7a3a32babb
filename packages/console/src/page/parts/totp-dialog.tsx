import { QrCode } from '@custody/site/qr'
import { useEffect, useState } from 'preact/hooks'
import { panel } from '../api/http.ts'
import { openSession } from '../api/session.ts'
import { useAction } from '../api/use.ts'
import { toast } from './announce.tsx'
import { Button, Dialog, onSubmit, Text } from './form.tsx'
import { ProblemNote, Skeleton } from './page.tsx'
import { RecoveryCodes } from './recovery-codes.tsx'
import { Id } from './values.tsx'

interface Secret {
  totp_token: string
  secret: string
  otpauth_uri: string
}

/** Sets up an authenticator app, which replaces the previous one. */
export function TotpDialog({ onClose }: { onClose(): void }) {
  const [secret, setSecret] = useState<Secret | null>(null)
  const [codes, setCodes] = useState<string[] | null>(null)
  const [code, setCode] = useState('')
  const { isBusy, problem, run } = useAction()
  useEffect(() => void run(async () => setSecret(await panel<Secret>('POST', '/me/totp'))), [])
  const confirm = () =>
    run(async () => {
      const { recovery_codes: fresh } = await panel<{ recovery_codes: string[] | null }>(
        'POST',
        '/me/totp/confirm',
        {
          totp_token: secret?.totp_token,
          code: code.replaceAll(/\s/g, ''),
        },
      )
      await openSession()
      toast('The authenticator app is set up')
      if (fresh === null) onClose()
      else setCodes(fresh)
    })
  return (
    <Dialog title="Authenticator app" onClose={onClose}>
      {codes !== null ? (
        <RecoveryCodes codes={codes} onKept={onClose} />
      ) : secret === null ? (
        problem === null ? (
          <Skeleton lines={4} />
        ) : (
          <ProblemNote problem={problem} />
        )
      ) : (
        <form class="stack" onSubmit={onSubmit(confirm)}>
          <div class="qr-box">
            <QrCode text={secret.otpauth_uri} label="Secret for the authenticator app" />
          </div>
          <p class="muted">
            Or type the secret: <Id value={secret.secret} label="secret" isWhole />
          </p>
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
      )}
    </Dialog>
  )
}
