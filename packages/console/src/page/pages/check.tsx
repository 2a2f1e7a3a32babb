import { useState } from 'preact/hooks'
import { checkRequest, type Verdict } from '../api/check-request.ts'
import { serverNow } from '../api/http.ts'
import { useAction } from '../api/use.ts'
import { Button, Check, Choice, Field, onSubmit, Text } from '../parts/form.tsx'
import { Card, Note, Page, ProblemNote } from '../parts/page.tsx'
import { Status } from '../parts/status.tsx'

const STATES = {
  kept: ['ok', 'Kept'],
  broken: ['bad', 'Broken'],
  skipped: ['neutral', 'Not checked'],
} as const

/**
 * Page that determines which rule a signed request breaks. The input does not leave the browser.
 */
export function CheckRequest() {
  const [token, setToken] = useState('')
  const [method, setMethod] = useState('POST')
  const [url, setUrl] = useState('')
  const [body, setBody] = useState('')
  const [apiKey, setApiKey] = useState('')
  const [publicKey, setPublicKey] = useState('')
  const [isOld, setOld] = useState(false)
  const [verdicts, setVerdicts] = useState<Verdict[] | null>(null)
  const { isBusy, problem, run } = useAction()
  const area = (
    label: string,
    value: string,
    set: (text: string) => void,
    rows: number,
    hint: string,
    isRequired = false,
  ) => (
    <Field isWide label={label} hint={hint}>
      {(props) => (
        <textarea
          class="input"
          rows={rows}
          required={isRequired}
          spellcheck={false}
          {...props}
          value={value}
          onInput={(event) => set(event.currentTarget.value)}
        />
      )}
    </Field>
  )
  const broken = verdicts?.filter(({ is }) => is === 'broken') ?? []
  return (
    <Page
      title="Check a request"
      lead="Paste a signed request that was refused to see which rule it breaks. It does not leave this browser."
    >
      <div class="columns is-even">
        <Card title="Request">
          <form
            class="grid-form"
            onSubmit={onSubmit(() =>
              run(async () =>
                setVerdicts(
                  await checkRequest(
                    { token, method, url, body, apiKey, publicKey },
                    isOld ? null : Math.floor(serverNow() / 1000),
                  ),
                ),
              ),
            )}
          >
            {area('Token', token, setToken, 5, 'The JWT, with “Bearer” before it or without', true)}
            <Choice
              label="Method"
              value={method}
              onValue={setMethod}
              options={['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((each) => [each, each])}
            />
            <Text
              label="Address"
              value={url}
              onValue={setUrl}
              hint="As it was asked: /dac/v1/transaction"
              maxLength={4000}
            />
            {area('Body', body, setBody, 5, 'Exactly as it was sent; empty where there was none')}
            <Text
              isWide
              label="API key"
              value={apiKey}
              onValue={setApiKey}
              hint="The x-api-key header"
              maxLength={100}
            />
            {area(
              'Public key',
              publicKey,
              setPublicKey,
              4,
              'PEM, to verify the signature. Never the private half.',
            )}
            <div class="is-wide">
              <Check
                label="It is an old request: leave its age out"
                value={isOld}
                onValue={setOld}
              />
            </div>
            <ProblemNote problem={problem} />
            <div class="form-end">
              <Button kind="primary" type="submit" isBusy={isBusy}>
                Check
              </Button>
            </div>
          </form>
        </Card>
        <Card title="Rules">
          {verdicts === null ? (
            <p class="muted">
              Each rule, in the order in which the platform and the nodes hold a request to it, is
              shown here.
            </p>
          ) : (
            <div class="stack" aria-live="polite">
              {broken.length === 0 ? (
                <Note tone="ok">
                  <p>
                    No rule is broken
                    {verdicts.some(({ is }) => is === 'skipped')
                      ? ' of those that could be checked'
                      : ''}
                    . Left is what only the platform knows: the nonce, the allowance, the addresses
                    that the key is used from, its role.
                  </p>
                </Note>
              ) : (
                <Note tone="bad">
                  <p>
                    {broken[0]?.rule}: {broken[0]?.says}
                  </p>
                </Note>
              )}
              <ol class="rules">
                {verdicts.map(({ rule, is, says }, index) => (
                  <li key={`${rule}${index}`}>
                    <div>
                      <p class="rule">{rule}</p>
                      <p class="muted">{says}</p>
                    </div>
                    <Status of={is} tone={STATES[is][0]} word={STATES[is][1]} />
                  </li>
                ))}
              </ol>
            </div>
          )}
        </Card>
      </div>
    </Page>
  )
}
