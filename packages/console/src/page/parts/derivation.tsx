// Checks whether an address is derived from the key that all three signer nodes certified. It is
// computed locally and trusts only the nodes.
import { useState } from 'preact/hooks'
import { custody } from '../api/command.ts'
import { read } from '../api/http.ts'
import { mirror, scope } from '../api/scope.ts'
import type { Address } from '../api/types.ts'
import { Button, Field } from './form.tsx'
import { Note } from './page.tsx'

const key = () => `custody-console-trust:${scope.value.workspace}/${scope.value.subAccount}`

type Outcome = { is: 'verified'; by: number[]; path: number[] } | { is: 'refused'; why: string }

/** Highest index that is searched for an address without a path. */
const INDEX_MAX = 0

export function Derivation({ address }: { address: Address }) {
  const [trust, setTrust] = useState<string | null>(() => localStorage.getItem(key()))
  const [outcome, setOutcome] = useState<Outcome | null>(null)
  const [isBusy, setBusy] = useState(false)
  const verify = async (text: string) => {
    setBusy(true)
    try {
      const [{ verifyAddress }, keys] = await Promise.all([
        import('@custody/client/verify-address'),
        read(mirror('/dac/v1/keys')),
      ])
      const { certified_by: by, path } = await verifyAddress(
        JSON.parse(text),
        keys,
        address.asset,
        address.address,
        {
          path: address.path,
          indexMax: INDEX_MAX,
        },
      )
      localStorage.setItem(key(), text)
      setTrust(text)
      setOutcome({ is: 'verified', by, path })
    } catch (error) {
      setOutcome({
        is: 'refused',
        why:
          error instanceof SyntaxError
            ? 'That file is no JSON.'
            : error instanceof Error
              ? error.message
              : String(error),
      })
    } finally {
      setBusy(false)
    }
  }
  const load = async (event: Event) => {
    const file = (event.currentTarget as HTMLInputElement).files?.[0]
    if (file !== undefined) await verify(await file.text())
  }
  return (
    <section class="derivation">
      <h3 class="small-title">Verified derivation</h3>
      {outcome === null ? (
        <Note tone="neutral">
          <p>
            Not verified in this browser yet.{' '}
            {trust === null
              ? 'For that it needs the trust object, which names the three signer nodes. Your operator writes it with --trust-file ' +
                'when an API user is enrolled; have it brought by a way that is not this page.'
              : 'The trust object that you gave it before is kept here.'}
          </p>
        </Note>
      ) : outcome.is === 'verified' ? (
        <Note tone="ok">
          <p>
            Derived in this browser, along <code>{outcome.path.join(' / ')}</code>, from the key
            that nodes {outcome.by.join(', ')} of your trust object certified. It is yours.
          </p>
          <p class="note-fine">
            What this does not say: that the panel’s own code is genuine. For a second opinion:{' '}
            <code>{custody('verify-address')}</code>.
          </p>
        </Note>
      ) : (
        <Note tone="bad">
          <p>{outcome.why}</p>
          <p>Send nothing to this address before your operator has looked.</p>
        </Note>
      )}
      {trust !== null && outcome?.is !== 'verified' ? (
        <Button class="small" isBusy={isBusy} onClick={() => void verify(trust)}>
          Verify now
        </Button>
      ) : null}
      {outcome?.is === 'verified' ? null : (
        <Field label={trust === null ? 'Trust object (JSON file)' : 'Another trust object'}>
          {(props) => (
            <input
              type="file"
              class="input"
              accept=".json,application/json"
              {...props}
              onChange={(event) => void load(event)}
            />
          )}
        </Field>
      )}
    </section>
  )
}
