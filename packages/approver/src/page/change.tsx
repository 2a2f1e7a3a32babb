import { useEffect, useState } from 'preact/hooks'
import type { ChallengeView, ChangeView, DecisionView, KeyView } from '../views.ts'
import { call } from './api.ts'
import { Failure, Grouped, KeyChoice, Needs, Note, Sentences, timeText, useWork } from './parts.tsx'
import { SigningNote, useSigning } from './signing.tsx'

type Choice = 'approve' | 'reject' | 'prove'
interface Decide {
  isBusy: boolean
  decide: (key: string, choice: Choice) => void
}

/** Returns what happened, for the person. */
const outcomeText = (state: string): string =>
  ({
    approved: 'The change has all approvals. The signer nodes verify it.',
    held: 'The signer nodes hold the change. It comes into force after its delay.',
    in_force: 'The change is in force.',
    rejected: 'The change is vetoed and cannot come into force.',
    open: 'Your statement is stored. The change waits for further people.',
  })[state] ?? `The change is ${state}.`

/** Returns from when a change that is not decided is in force. */
function forceText({ state, acts_at: actsAt }: ChangeView): string {
  const at = actsAt ?? ''
  if (state === 'held') return `Comes into force ${timeText(at)}`
  return Date.parse(at) > Date.now()
    ? `Comes into force ${timeText(at)}, or later if the approvals take longer`
    : 'Comes into force after the approvals and the delay of the document in force'
}

/** A proposed policy document: what it changes, and the decision of the person. */
export function Change({ id, person }: { id: string; person: string }) {
  const [view, setView] = useState<ChangeView | null>(null)
  const [result, setResult] = useState<DecisionView | null>(null)
  const work = useWork()
  const signing = useSigning()
  const load = async () => setView(await call<ChangeView>('change', { id }))
  useEffect(() => work.start(load), [])
  const decide = (key: string, choice: Choice) =>
    work.start(async () => {
      try {
        const challenge = await call<ChallengeView>('change-challenge', {
          id,
          key,
          choice,
          review: view?.review,
        })
        const assertion = await signing.sign(challenge)
        setResult(await call('change-decide', { attempt: challenge.attempt, ...assertion }))
      } finally {
        await load().catch(() => undefined)
      }
    })
  return (
    <>
      <p>
        <a href="#approvals">All approvals</a>
      </p>
      <h1>Policy change</h1>
      <p class="muted">
        <span class="code">{id}</span>
      </p>
      <Failure problem={work.problem} />
      <SigningNote sentences={signing.sentences} />
      {result === null ? null : <Note tone="ok">{outcomeText(result.state)}</Note>}
      {view === null ? null : (
        <Detail view={view} person={person} work={{ isBusy: work.isBusy, decide }} />
      )}
    </>
  )
}

function Differences({ view }: { view: ChangeView }) {
  return (
    <section class="card" aria-label="What changes">
      <h2>What changes</h2>
      <ul>
        {view.differences.map(({ sentence, tendency }) => (
          <li key={sentence}>
            {sentence} <span class="muted">({tendency})</span>
          </li>
        ))}
      </ul>
      {view.warnings.length === 0 ? null : (
        <Note tone="warn">
          <Sentences lines={view.warnings} />
        </Note>
      )}
      <details>
        <summary>All rules of the proposed document</summary>
        <Sentences lines={view.rules} />
      </details>
    </section>
  )
}

function Detail({ view, person, work }: { view: ChangeView; person: string; work: Decide }) {
  const { refusal, previous, keys, new_keys: newKeys } = view
  const mayReject = ['open', 'approved', 'held'].includes(view.state)
  const isOpen = view.state === 'open'
  return (
    <>
      {refusal === null ? (
        <Differences view={view} />
      ) : (
        <Note tone="bad">
          <p>This change must not be signed here.</p>
          <p>Reason: {refusal}</p>
        </Note>
      )}
      <section class="card" aria-label="Approvals">
        <p>State: {view.state.replace('_', ' ')}</p>
        <Needs needs={view.needs} />
        {view.decisions.map(({ by, decision }) => (
          <p key={`${by} ${decision}`}>
            {by} {decision === 'approve' ? 'approves' : 'vetoes'} it (signature verified).
          </p>
        ))}
        {previous === null ? null : (
          <>
            <p>
              Document {view.number}, hash <Grouped text={view.hash ?? ''} />
            </p>
            <p class="muted">
              It replaces document {previous.number}, hash <Grouped text={previous.hash} />
            </p>
            {mayReject ? <p>{forceText(view)}</p> : null}
          </>
        )}
        {isOpen ? <p class="muted">Expires {timeText(view.expires_at)}</p> : null}
      </section>
      {refusal === null && isOpen && newKeys.length > 0 ? (
        <Prove keys={newKeys} work={work} />
      ) : null}
      {refusal !== null || !mayReject ? null : keys.length === 0 ? (
        <Note tone="warn">
          The policy document in force has no passkey of {person} for this page.
        </Note>
      ) : (
        <DecideChange
          keys={keys}
          isOpen={isOpen}
          hasApproved={view.decisions.some(
            ({ by, decision }) => by === person && decision === 'approve',
          )}
          work={work}
        />
      )}
    </>
  )
}

function Prove({ keys, work }: { keys: readonly KeyView[]; work: Decide }) {
  const [key, setKey] = useState(keys[0]?.id ?? '')
  return (
    <section class="decide" aria-label="Proof of possession">
      <p>The change adds a passkey of yours. Prove that you hold it.</p>
      <KeyChoice keys={keys} value={key} onChange={setKey} />
      <button
        type="button"
        class="button"
        disabled={work.isBusy}
        onClick={() => work.decide(key, 'prove')}
      >
        Prove my new passkey
      </button>
    </section>
  )
}

function DecideChange({
  keys,
  isOpen,
  hasApproved,
  work,
}: {
  keys: readonly KeyView[]
  isOpen: boolean
  hasApproved: boolean
  work: Decide
}) {
  const [key, setKey] = useState(keys[0]?.id ?? '')
  return (
    <section class="decide" aria-label="Decision">
      {isOpen && hasApproved ? (
        <p>You have approved this change. You can still reject it, or renew your approval.</p>
      ) : null}
      <KeyChoice keys={keys} value={key} onChange={setKey} />
      <div class="buttons">
        {isOpen ? (
          <button
            type="button"
            class={hasApproved ? 'button' : 'button primary'}
            disabled={work.isBusy}
            onClick={() => work.decide(key, 'approve')}
          >
            {hasApproved ? 'Approve again' : 'Approve'}
          </button>
        ) : null}
        <button
          type="button"
          class="button danger"
          disabled={work.isBusy}
          onClick={() => work.decide(key, 'reject')}
        >
          {isOpen ? 'Reject' : 'Veto'}
        </button>
      </div>
      <p class="muted">
        Your device asks for your passkey. {isOpen ? 'An approval is valid for one day. ' : ''}One
        veto ends the change.
      </p>
    </section>
  )
}
