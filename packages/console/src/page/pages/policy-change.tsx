import { mirror, pageAt } from '../api/scope.ts'
import type { PolicyChange, PolicyChangeDetail, PolicyChangePage } from '../api/types.ts'
import { useRead } from '../api/use.ts'
import { Card, Facts, Note, Page, ProblemNote, Skeleton } from '../parts/page.tsx'
import { Id, Time } from '../parts/values.tsx'
import { Status } from '../parts/status.tsx'
import { APPROVALS_LIVE, Needs } from './approvals.tsx'
import { Decisions, HowTo } from './decisions.tsx'

/** Who has approved a change, and whose proofs are missing. */
function Missing({ of }: { of: PolicyChange }) {
  const { needs, missing } = of
  return (
    <>
      Approvals so far: <Needs of={needs} />.
      {missing.length === 0
        ? null
        : ` Proofs of possession are missing: ${missing.map(({ person, key }) => `${key} of ${person}`).join(', ')}.`}
    </>
  )
}

function Differences({ of }: { of: PolicyChange }) {
  return (
    <ul class="plain-list">
      {of.changes.map(({ path, tendency, sentence }) => (
        <li key={path}>
          {sentence} <span class="muted">{tendency}</span>
        </li>
      ))}
    </ul>
  )
}

/** Proposed changes that wait for approvals. Nothing is displayed if there are none. */
export function OpenChanges() {
  const open = useRead<PolicyChangePage>(
    mirror('/dac/v1/policy/changes?state=open'),
    APPROVALS_LIVE,
  )
  return (
    <>
      {(open.data?.data ?? []).map((change) => (
        <Note key={change.id} tone="warn">
          <p>
            <a href={pageAt(`/approvals/${change.id}`)}>Document {change.number} is proposed</a>:{' '}
            {change.comment}
          </p>
          <Differences of={change} />
          <p>
            <Missing of={change} /> The proposal expires <Time at={change.expires_at} />.
          </p>
        </Note>
      ))}
    </>
  )
}

/** When a change is in force. The delay of the nodes begins later if the approvals come late. */
function InForce({ of: { state, acts_at: actsAt } }: { of: PolicyChange }) {
  return state === 'open' && Date.parse(actsAt) <= Date.now() ? (
    <>after the approvals and the delay of the document in force</>
  ) : (
    <Time at={actsAt} />
  )
}

/** Page of one proposed change. */
export function ChangePage({ id }: { id: string }) {
  const reading = useRead<PolicyChangeDetail>(
    mirror(`/dac/v1/policy/changes/${encodeURIComponent(id)}`),
    APPROVALS_LIVE,
  )
  const change = reading.data
  const back = { href: pageAt('/approvals'), word: 'Approvals' }
  if (change === undefined)
    return (
      <Page title="Policy change" back={back}>
        {reading.problem === null ? (
          <Skeleton lines={6} />
        ) : (
          <ProblemNote problem={reading.problem} retry={reading.reload} />
        )}
      </Page>
    )
  return (
    <Page title="Policy change" back={back} lead={<Status of={change.state} />}>
      {change.state === 'open' ? (
        <Note tone="warn">
          <p>
            <Missing of={change} />
          </p>
        </Note>
      ) : null}
      <Card title="What an approval signs">
        <Facts
          of={[
            ['Document', `number ${change.number}`],
            ['Hash', <Id key="hash" value={change.hash} label="hash" isWhole />],
            [
              'Changes document',
              <Id key="previous" value={change.previous} label="hash" isWhole />,
            ],
            ['Comes into force', <InForce key="acts" of={change} />],
            ['Comment', change.comment],
            change.reason === null ? null : ['Reason', change.reason],
            ['Expires', <Time key="expires" at={change.expires_at} />],
          ]}
        />
      </Card>
      <Card title="What it changes">
        <Differences of={change} />
      </Card>
      <Decisions of={change.have} reading={{ problem: null, reload: reading.reload }} />
      {['open', 'approved', 'held'].includes(change.state) ? <HowTo id={id} of="change" /> : null}
    </Page>
  )
}
