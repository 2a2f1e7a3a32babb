import { useEffect, useState } from 'preact/hooks'
import type { ApprovalDetailView, ChallengeView, DecisionView, FactView } from '../views.ts'
import { call } from './api.ts'
import { Failure, Grouped, KeyChoice, Needs, Note, Sentences, timeText, useWork } from './parts.tsx'
import { SigningNote, useSigning } from './signing.tsx'
import type { Waiting } from './waiting.ts'

export const Approvals = ({
  id,
  person,
  waiting,
}: {
  id: string | null
  person: string
  waiting: Waiting
}) =>
  id === null ? <ApprovalList waiting={waiting} /> : <Approval key={id} id={id} person={person} />

function ApprovalList({ waiting: { list, problem, isBusy, refresh, more } }: { waiting: Waiting }) {
  useEffect(refresh, [])
  return (
    <>
      <div class="title">
        <h1>Approvals</h1>
        <button type="button" class="button" disabled={isBusy} onClick={refresh}>
          Refresh
        </button>
      </div>
      <Failure problem={problem} />
      {list === null && isBusy ? <p class="muted">Reading what waits…</p> : null}
      {list?.data.length === 0 ? <p class="muted">Nothing waits for approvals.</p> : null}
      <ul class="cards">
        {list?.data.map((each) => (
          <li key={each.id} class="card">
            {each.refusal === null ? (
              <Sentences lines={each.sentences} />
            ) : (
              <Note tone="bad">{each.refusal}</Note>
            )}
            <Needs needs={each.needs} />
            <p class="muted">Expires {timeText(each.expires_at)}</p>
            <a
              class="button"
              href={`#${each.is_change ? 'changes' : 'approvals'}/${each.id}`}
              aria-label={`Review ${each.id}`}
            >
              Review
            </a>
          </li>
        ))}
      </ul>
      {list?.next ? (
        <button type="button" class="button" disabled={isBusy} onClick={more}>
          More
        </button>
      ) : null}
    </>
  )
}

const Facts = ({ facts }: { facts: readonly FactView[] }) => (
  <dl class="facts">
    {facts.map(({ name, value, kind }) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{kind === 'address' ? <Grouped text={value} /> : value}</dd>
      </div>
    ))}
  </dl>
)

/** Returns what happened, for the person. */
const outcomeText = (state: string): string =>
  ({
    approved: 'The transfer has all approvals and continues.',
    rejected: 'The transfer is rejected and will fail.',
    open: 'Your decision is stored. The transfer waits for further approvals.',
  })[state] ?? `The transfer is ${state}.`

/**
 * Whether a decision closed the approval. The list of the platform follows some seconds later, and
 * until then the transfer would look as if it still waited for decisions.
 */
const isClosedBy = (result: DecisionView | null): result is DecisionView =>
  result !== null && result.state !== 'open'

function Approval({ id, person }: { id: string; person: string }) {
  const [detail, setDetail] = useState<ApprovalDetailView | null>(null)
  const [result, setResult] = useState<DecisionView | null>(null)
  const work = useWork()
  const signing = useSigning()
  const load = async () => setDetail(await call<ApprovalDetailView>('approval', { id }))
  useEffect(() => work.start(load), [])
  const decide = (key: string, decision: 'approve' | 'reject') =>
    work.start(async () => {
      try {
        const challenge = await call<ChallengeView>('challenge', {
          id,
          key,
          decision,
          review: detail?.review,
        })
        const assertion = await signing.sign(challenge)
        setResult(await call('decide', { attempt: challenge.attempt, ...assertion }))
      } finally {
        await load().catch(() => undefined)
      }
    })
  return (
    <>
      <p>
        <a href="#approvals">All approvals</a>
      </p>
      <h1>Transfer</h1>
      <p class="muted">
        <span class="code">{id}</span>
      </p>
      <Failure problem={work.problem} />
      <SigningNote sentences={signing.sentences} />
      {result === null ? null : <Note tone="ok">{outcomeText(result.state)}</Note>}
      {detail === null ? null : (
        <Detail
          detail={isClosedBy(result) ? { ...detail, state: result.state } : detail}
          person={person}
          work={{ ...work, decide }}
        />
      )}
    </>
  )
}

function Detail({
  detail,
  person,
  work,
}: {
  detail: ApprovalDetailView
  person: string
  work: { isBusy: boolean; decide: (key: string, decision: 'approve' | 'reject') => void }
}) {
  const { refusal, facts, keys, policy, decisions } = detail
  return (
    <>
      {refusal === null ? null : (
        <Note tone="bad">
          <p>This transfer must not be signed here.</p>
          <p>Reason: {refusal}</p>
        </Note>
      )}
      {facts.length === 0 ? null : (
        <section class="card" aria-label="Facts">
          <Sentences lines={detail.sentences} />
          <Facts facts={facts} />
          <p class="muted">The facts match the signed request of the caller.</p>
        </section>
      )}
      <section class="card" aria-label="Approvals">
        <p>State: {detail.state}</p>
        <Needs needs={detail.needs} />
        {decisions.map(({ by, decision }) => (
          <p key={by}>
            {by} {decision === 'approve' ? 'approves' : 'rejects'} it (signature verified).
          </p>
        ))}
        <p class="muted">Expires {timeText(detail.expires_at)}</p>
        {policy === null ? null : (
          <p class="muted">
            Policy document {policy.number}, hash <Grouped text={policy.hash} />
          </p>
        )}
      </section>
      {refusal !== null || detail.state !== 'open' ? null : keys.length === 0 ? (
        <Note tone="warn">
          The policy document has no passkey of {person} for this page. Create one in "My passkey",
          and have it added to the document.
        </Note>
      ) : (
        <Decide
          keys={keys}
          hasApproved={decisions.some(
            ({ by, decision }) => by === person && decision === 'approve',
          )}
          work={work}
        />
      )}
    </>
  )
}

function Decide({
  keys,
  hasApproved,
  work,
}: {
  keys: ApprovalDetailView['keys']
  hasApproved: boolean
  work: { isBusy: boolean; decide: (key: string, decision: 'approve' | 'reject') => void }
}) {
  const [key, setKey] = useState(keys[0]?.id ?? '')
  return (
    <section class="decide" aria-label="Decision">
      {hasApproved ? (
        <p>You have approved this transfer. You can still reject it, or renew your approval.</p>
      ) : null}
      <KeyChoice keys={keys} value={key} onChange={setKey} />
      <div class="buttons">
        <button
          type="button"
          class={hasApproved ? 'button' : 'button primary'}
          disabled={work.isBusy}
          onClick={() => work.decide(key, 'approve')}
        >
          {hasApproved ? 'Approve again' : 'Approve'}
        </button>
        <button
          type="button"
          class="button danger"
          disabled={work.isBusy}
          onClick={() => work.decide(key, 'reject')}
        >
          Reject
        </button>
      </div>
      <p class="muted">
        Your device asks for your passkey. An approval is valid for one day. One rejection ends the
        transfer.
      </p>
    </section>
  )
}
