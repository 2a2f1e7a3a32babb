import { mirror } from '../api/scope.ts'
import type { PolicyInForce, PolicyVersionPage } from '../api/types.ts'
import { useRead } from '../api/use.ts'
import { Card, Empty, Facts, Note, Page, ProblemNote, Skeleton } from '../parts/page.tsx'
import { PolicyWindowsCard } from '../parts/policy-windows.tsx'
import { Id, Time } from '../parts/values.tsx'
import { Table } from '../parts/table.tsx'
import { OpenChanges } from './policy-change.tsx'

const NODES = 3
const VERSIONS = 10

/** The parts of a policy document that this page shows (docs/policies.md). */
interface Document {
  people: { id: string; name: string; api_keys: string[]; keys: { id: string; kind: string }[] }[]
  groups: Record<string, string[]>
}
type Proposal = PolicyInForce['pending'][number]
type Rules = PolicyInForce['rules']

const nodesText = (nodes: readonly number[]): string =>
  nodes.length === NODES
    ? 'all three signer nodes'
    : `signer ${nodes.length === 1 ? 'node' : 'nodes'} ${nodes.join(' and ')} only`

function RuleList({ of }: { of: Rules }) {
  return of.length === 0 ? (
    <p class="muted">There is no rule, so everything is denied.</p>
  ) : (
    <ul class="plain-list">
      {of.map(({ id, sentence }) => (
        <li key={id}>{sentence}</li>
      ))}
    </ul>
  )
}

function Pending({ of }: { of: Proposal }) {
  return (
    <Note tone="warn">
      <p>
        Document {of.number} comes into force <Time at={of.acts_at} />
        {of.vetoed_by === null
          ? ', unless a person vetoes it.'
          : `, if the operators of two nodes confirm it: ${of.vetoed_by}, whom it removes, has vetoed it.`}
      </p>
      <ul class="plain-list">
        {of.changes.map((change) => (
          <li key={change}>{change}</li>
        ))}
      </ul>
    </Note>
  )
}

function ResetNote({ of }: { of: PolicyInForce['resets'][number] }) {
  return (
    <Note tone="warn">
      <p>
        The operators of signer {of.given_by.length === 1 ? 'node' : 'nodes'}{' '}
        {of.given_by.join(' and ')} want to replace this policy by a reset (
        <Id value={of.hash} label="hash" />
        ).{' '}
        {of.acts_at === null ? (
          'It comes into force seven days after the operators of all three nodes have entered it.'
        ) : (
          <>
            It comes into force <Time at={of.acts_at} />.
          </>
        )}{' '}
        Any change of the policy that its people approve before ends the reset.
      </p>
    </Note>
  )
}

const keysText = (keys: Document['people'][number]['keys']): string =>
  keys.length === 0
    ? 'none'
    : keys.map(({ id, kind }) => (kind === 'passkey' ? `${id} (passkey)` : id)).join(', ')

function People({
  of: { people, groups },
  reading,
}: {
  of: Document
  reading: { problem: null; reload(): void }
}) {
  const groupsOf = (person: string) =>
    Object.entries(groups)
      .filter(([, members]) => members.includes(person))
      .map(([name]) => name)
  return (
    <Card title="People" isBare>
      <Table
        label="People"
        reading={reading}
        rows={people}
        keyOf={({ id }) => id}
        columns={[
          {
            head: 'Person',
            cell: ({ id, name }) => (
              <>
                {name} <span class="muted">{id}</span>
              </>
            ),
          },
          { head: 'Groups', cell: ({ id }) => groupsOf(id).join(', ') || 'none' },
          { head: 'Keys', isMinor: true, cell: ({ keys }) => keysText(keys) },
          {
            head: 'API keys',
            isMinor: true,
            isNumber: true,
            cell: ({ api_keys: keys }) => keys.length,
          },
        ]}
        empty={<Empty icon="people" title="The document names no people" />}
      />
    </Card>
  )
}

const KIND_TEXT: Record<PolicyVersionPage['data'][number]['kind'], string> = {
  first: 'installation',
  change: 'approved change',
  reset: 'reset by the operators',
}

function History() {
  const versions = useRead<PolicyVersionPage>(mirror(`/dac/v1/policy/versions?limit=${VERSIONS}`))
  return (
    <Card
      title="History"
      lead="The documents that were in force, as at least two signer nodes have them on record."
      isBare
    >
      <Table
        label="History"
        reading={versions}
        rows={versions.data?.data}
        keyOf={({ hash }) => hash}
        columns={[
          { head: 'Document', cell: ({ number }) => number },
          { head: 'Came into force by', cell: ({ kind }) => KIND_TEXT[kind] },
          { head: 'In force since', cell: ({ since }) => <Time at={since} /> },
          {
            head: 'Signed by',
            cell: ({ signed_by: signers }) =>
              [...new Set(signers.map(({ person }) => person))].join(', '),
          },
          { head: 'Hash', isMinor: true, cell: ({ hash }) => <Id value={hash} label="hash" /> },
        ]}
        empty={<Empty icon="audit" title="No document was in force yet" />}
      />
      {versions.data?.has_more ? (
        <p class="muted">Earlier documents: GET /dac/v1/policy/versions</p>
      ) : null}
    </Card>
  )
}

/** Page of the policy that the signer nodes apply to the workspace. */
export function PolicyPage() {
  const reading = useRead<PolicyInForce>(
    mirror('/dac/v1/policy'),
    /^(?:approval|policy|transaction)/,
  )
  const policy = reading.data
  const lead = 'Rules that the signer nodes apply to each payment. The platform cannot change them.'
  if (policy === undefined)
    return (
      <Page title="Policy" lead={lead}>
        {reading.problem === null ? (
          <Skeleton lines={6} />
        ) : (
          <ProblemNote problem={reading.problem} retry={reading.reload} />
        )}
      </Page>
    )
  if (policy.number === null || policy.document === null)
    return (
      <Page title="Policy" lead={lead}>
        <Card>
          <Empty icon="aml" title="This workspace has no policy">
            The signer nodes sign each request of an enrolled caller, within the daily budgets of
            fees. The operators install a policy at the nodes: see docs/policies.md.
          </Empty>
        </Card>
      </Page>
    )
  return (
    <Page title="Policy" lead={lead}>
      {policy.stops.map((stop) => (
        <Note key={stop.hash} tone="frozen">
          <p>
            {stop.by} stopped{' '}
            {stop.sub_account === null ? 'the workspace' : `the sub-account ${stop.sub_account}`}{' '}
            <Time at={stop.at} />: nothing is signed until the approvals of “resume” end the stop.
          </p>
        </Note>
      ))}
      {policy.resets.map((reset) => (
        <ResetNote key={reset.hash} of={reset} />
      ))}
      {policy.pending.map((proposal) => (
        <Pending key={proposal.hash} of={proposal} />
      ))}
      <OpenChanges />
      <Card>
        <Facts
          of={[
            ['Document', `number ${policy.number}`],
            ['In force at', nodesText(policy.held)],
            ['Hash', <Id key="hash" value={policy.hash} label="hash" isWhole />],
          ]}
        />
      </Card>
      <Card title="Rules" lead="What no rule allows is denied.">
        <RuleList of={policy.rules} />
      </Card>
      <PolicyWindowsCard />
      <People
        of={policy.document as unknown as Document}
        reading={{ problem: null, reload: reading.reload }}
      />
      <History />
    </Page>
  )
}
