import { useEffect, useState } from 'preact/hooks'
import type { ChallengeView, EmergencyView } from '../views.ts'
import { call } from './api.ts'
import { Failure, Grouped, KeyChoice, Note, Sentences, timeText, useWork } from './parts.tsx'
import { SigningNote, useSigning } from './signing.tsx'

interface Acting {
  isBusy: boolean
  act: (input: object) => void
}

/** Stops, vetoes and the end of stops: what one person can do at once. */
export function Emergency({ person }: { person: string }) {
  const [view, setView] = useState<EmergencyView | null>(null)
  const [done, setDone] = useState<string | null>(null)
  const [key, setKey] = useState('')
  /** Number of acts that succeeded, so that each of them empties the form. */
  const [count, setCount] = useState(0)
  const work = useWork()
  const signing = useSigning()
  const load = async () => {
    const read = await call<EmergencyView>('emergency')
    setView(read)
    setKey((before) => before || (read.keys[0]?.id ?? ''))
  }
  useEffect(() => work.start(load), [])
  const act = (input: object) =>
    work.start(async () => {
      setDone(null)
      try {
        const challenge = await call<ChallengeView>('emergency-challenge', {
          ...input,
          key,
          review: view?.review,
        })
        const assertion = await signing.sign(challenge)
        const { text } = await call<{ text: string }>('emergency-send', {
          attempt: challenge.attempt,
          ...assertion,
        })
        setDone(text)
        setCount((before) => before + 1)
      } finally {
        await load().catch(() => undefined)
      }
    })
  const acting = { isBusy: work.isBusy, act }
  return (
    <>
      <h1>Emergency</h1>
      <Failure problem={work.problem} />
      <SigningNote sentences={signing.sentences} />
      {done === null ? null : <Note tone="ok">{done}</Note>}
      {view === null ? null : view.keys.length === 0 ? (
        <Note tone="warn">
          The policy document in force has no passkey of {person} for this page.
        </Note>
      ) : (
        <>
          <KeyChoice keys={view.keys} value={key} onChange={setKey} />
          {view.stops.length > 0 ? <Stops view={view} acting={acting} /> : null}
          {view.may_stop ? <StopForm key={count} acting={acting} /> : null}
          {view.stops.length === 0 ? <Stops view={view} acting={acting} /> : null}
          <PendingChanges view={view} acting={acting} />
        </>
      )}
    </>
  )
}

function StopForm({ acting: { isBusy, act } }: { acting: Acting }) {
  const [subAccount, setSubAccount] = useState('')
  const [reason, setReason] = useState('')
  return (
    <form
      class="card"
      aria-label="Stop signing"
      onSubmit={(event) => {
        event.preventDefault()
        act({ act: 'stop', sub_account: subAccount, reason })
      }}
    >
      <h2>Stop signing</h2>
      <p>
        The signer nodes sign nothing until several people end the stop. A new stop of the same
        workspace or sub-account replaces the earlier one.
      </p>
      <label class="field">
        <span>Sub-account, exactly as it is named (empty: the whole workspace)</span>
        <input
          value={subAccount}
          maxLength={200}
          autocomplete="off"
          onInput={(event) => setSubAccount(event.currentTarget.value)}
        />
      </label>
      <label class="field">
        <span>Reason</span>
        <input
          value={reason}
          required
          maxLength={200}
          autocomplete="off"
          onInput={(event) => setReason(event.currentTarget.value)}
        />
      </label>
      <button type="submit" class="button danger" disabled={isBusy}>
        Stop signing
      </button>
    </form>
  )
}

function Stops({ view, acting: { isBusy, act } }: { view: EmergencyView; acting: Acting }) {
  return (
    <section aria-label="Stops in force">
      <h2>Stops in force</h2>
      {view.stops.length === 0 ? <p class="muted">Nothing is stopped.</p> : null}
      <ul class="cards">
        {view.stops.map(({ hash, text, refusal }) => (
          <li key={hash} class="card">
            <p>{text}</p>
            <p class="muted">
              <Grouped text={hash} />
            </p>
            {refusal === null ? (
              view.may_resume ? (
                <button
                  type="button"
                  class="button"
                  disabled={isBusy}
                  onClick={() => act({ act: 'resume', hash })}
                >
                  Approve the end of the stop
                </button>
              ) : null
            ) : (
              <Note tone="warn">
                <p>This page cannot end this stop. Reason: {refusal}</p>
                <p>
                  To end it with passkeys, stop the same workspace or sub-account again below: the
                  new stop replaces this one.
                </p>
              </Note>
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}

function PendingChanges({
  view,
  acting: { isBusy, act },
}: {
  view: EmergencyView
  acting: Acting
}) {
  return (
    <section aria-label="Pending changes">
      <h2>Pending changes</h2>
      {view.pending.length === 0 ? <p class="muted">No change is pending.</p> : null}
      <ul class="cards">
        {view.pending.map(({ number, hash, acts_at, differences }) => (
          <li key={hash} class="card">
            <p>
              Document {number}, hash <Grouped text={hash} />
            </p>
            <p class="muted">Comes into force {timeText(acts_at)}</p>
            <Sentences lines={differences} />
            {view.may_veto ? (
              <button
                type="button"
                class="button danger"
                disabled={isBusy}
                onClick={() => act({ act: 'veto', hash })}
              >
                Veto
              </button>
            ) : null}
          </li>
        ))}
      </ul>
    </section>
  )
}
