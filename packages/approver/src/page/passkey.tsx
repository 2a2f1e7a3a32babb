import { useState } from 'preact/hooks'
import type { CreatedView, CreationView, StateView } from '../views.ts'
import { call } from './api.ts'
import { Failure, Grouped, Note, useWork } from './parts.tsx'
import { createPasskey } from './webauthn.ts'

export function Passkey({ state }: { state: StateView }) {
  const [id, setId] = useState('passkey-1')
  const [created, setCreated] = useState<CreatedView | null>(null)
  const [isCopied, setCopied] = useState(false)
  const work = useWork()
  const create = () =>
    work.start(async () => {
      setCopied(false)
      const creation = await call<CreationView>('creation')
      const passkey = await createPasskey(creation)
      setCreated(await call('created', { attempt: creation.attempt, id, ...passkey }))
    })
  const copy = () =>
    work.start(async () => {
      await navigator.clipboard.writeText(created?.key ?? '')
      setCopied(true)
    })
  return (
    <>
      <h1>My passkey</h1>
      <p>
        A passkey that you create here works only on this page, at {state.origin}. It signs nothing
        until a policy document contains it as a key of {state.person}.
      </p>
      <Failure problem={work.problem} />
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault()
          create()
        }}
      >
        <label class="field">
          <span>ID of the key in the policy document</span>
          <input
            value={id}
            required
            pattern="[a-z0-9][a-z0-9_.\-]{0,63}"
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => setId(event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="button primary" disabled={work.isBusy}>
          Create a passkey
        </button>
      </form>
      {created === null ? null : (
        <section class="card" aria-label="Created passkey">
          <Note tone="ok">
            The passkey was created. Send this entry to the people who write the policy document. It
            belongs in the list "keys" of {state.person}.
          </Note>
          <pre class="json" tabIndex={0} aria-label="Entry for the policy document">
            {created.key}
          </pre>
          <div class="buttons">
            <button type="button" class="button" onClick={copy}>
              Copy
            </button>
            <span role="status">{isCopied ? 'Copied' : ''}</span>
          </div>
          <p>
            Compare its fingerprint by telephone: <Grouped text={created.fingerprint} />
          </p>
        </section>
      )}
    </>
  )
}
