import { useState } from 'preact/hooks'
import { custody } from '../api/command.ts'
import { panel } from '../api/http.ts'
import { makeExportableKey, readPublicKey } from '../api/keys.ts'
import { ROLE_OPTIONS } from '../api/roles.ts'
import { may, pageAt, scope, session } from '../api/scope.ts'
import { useAction } from '../api/use.ts'
import { download } from './download.ts'
import { Button, Check, Choice, Dialog, Field, onSubmit, Text } from './form.tsx'
import { Note, ProblemNote } from './page.tsx'

const BITS_MIN = 4096

/** Splits typed addresses at line breaks, spaces, commas and semicolons. */
export const linesOf = (text: string) => text.split(/[\s,;]+/).filter((each) => each !== '')

/** Form that requests an API user from the operator. */
export function NewApiUser({ onClose, onAsked }: { onClose(): void; onAsked(id: string): void }) {
  const member = session.value?.workspaces.find(({ name }) => name === scope.value.workspace)
  const [subAccount, setSubAccount] = useState(scope.value.subAccount)
  const [role, setRole] = useState<string>('full')
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
        download(
          `${label.trim() || 'custody'}-private-key.pem`,
          made.private_key_pem,
          'application/x-pem-file',
        )
        publicKey = made.public_key_pem
      } else {
        const { bits } = await readPublicKey(publicKey)
        if (bits < BITS_MIN)
          throw new TypeError(`The key has ${bits} bits: at least ${BITS_MIN} are needed.`)
      }
      const { id } = await panel<{ id: string }>('POST', `${scope.value.panelPath}/api-users`, {
        sub_account: subAccount.trim(),
        role,
        public_key_pem: publicKey,
        own: isOwn,
        ...(label.trim() === '' ? {} : { label: label.trim() }),
        ...(rate.trim() === '' ? {} : { rate_limit: Number(rate) }),
        ...(list.trim() === '' ? {} : { ip_allow_list: linesOf(list) }),
      })
      onAsked(id)
    })
  const of = (field: string) => (problem?.field === field ? problem.message : null)
  return (
    <Dialog title="Request an API user" onClose={onClose} isWide>
      <form class="grid-form" onSubmit={onSubmit(submit)}>
        <Text
          label="Name"
          value={label}
          onValue={setLabel}
          hint="The system that uses it, for example: payout service"
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
        <Choice label="May" value={role} onValue={setRole} options={ROLE_OPTIONS} />
        <Text
          label="Requests per minute"
          value={rate}
          onValue={(value) => setRate(value.replaceAll(/\D/g, ''))}
          inputMode="numeric"
          hint="Empty: the default limit"
          maxLength={8}
          error={of('rate_limit')}
        />
        <Field
          isWide
          label="Allowed addresses"
          hint="Addresses or ranges such as 203.0.113.0/24, one per line. Empty: any address."
          error={of('ip_allow_list')}
        >
          {(props) => (
            <textarea
              class="input"
              rows={2}
              {...props}
              value={list}
              onInput={(event) => setList(event.currentTarget.value)}
            />
          )}
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
                Made by <code>{custody('keygen')}</code>, or{' '}
                <code>openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:4096</code>. Never the
                private half.
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
                The private key is saved as a file, once, and kept nowhere else. For signing in this
                browser, use the <a href={pageAt('/browser-key')}>browser key</a>, which no file
                ever holds.
              </p>
            </Note>
          </div>
        )}
        {may('admin') ? (
          <div class="is-wide">
            <Check
              label="This key is mine"
              hint="Requests that it signs are shown under your name"
              value={isOwn}
              onValue={setOwn}
            />
          </div>
        ) : null}
        <ProblemNote
          problem={
            problem !== null &&
            ['label', 'sub_account', 'rate_limit', 'ip_allow_list', 'public_key_pem'].includes(
              problem.field ?? '',
            )
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
