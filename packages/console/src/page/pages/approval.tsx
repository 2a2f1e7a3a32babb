import { custody } from '../api/command.ts'
import { mirror, pageAt } from '../api/scope.ts'
import type { ApprovalDetail } from '../api/types.ts'
import { useRead } from '../api/use.ts'
import { unitsText } from '../amounts.ts'
import { Card, Empty, Facts, Note, Page, ProblemNote, Skeleton } from '../parts/page.tsx'
import { Amount, Code, Id, tickerOf, Time } from '../parts/values.tsx'
import { Status } from '../parts/status.tsx'
import { Table } from '../parts/table.tsx'
import { ApprovalAmount, APPROVALS_LIVE, Needs } from './approvals.tsx'

const timeOf = (seconds: number): string => new Date(seconds * 1000).toISOString()

/** How a person approves. This page cannot, because it has no key of theirs. */
function HowTo({ id }: { id: string }) {
  return (
    <Card
      title="Approve or reject"
      lead="People sign with their own keys, on their own machines, because this page could show one transfer and have another one approved."
    >
      <div class="stack-small">
        <p class="label">With a passkey: a page on your own machine</p>
        <Code text={custody('approver run --dir DIR')} label="Command for a passkey" />
      </div>
      <div class="stack-small">
        <p class="label">With a key file</p>
        <Code
          text={custody(`approve ${id} --as PERSON --key FILE`)}
          label="Command for a key file"
        />
        <p class="muted">
          Add <code>--reject</code> to reject it. A rejection is final.
        </p>
      </div>
    </Card>
  )
}

/** Page of one transfer that requires approvals. */
export function ApprovalPage({ id }: { id: string }) {
  const reading = useRead<ApprovalDetail>(
    mirror(`/dac/v1/approvals/${encodeURIComponent(id)}`),
    APPROVALS_LIVE,
  )
  const approval = reading.data
  const back = { href: pageAt('/approvals'), word: 'Approvals' }
  if (approval === undefined)
    return (
      <Page title="Approval" back={back}>
        {reading.problem === null ? (
          <Skeleton lines={6} />
        ) : (
          <ProblemNote problem={reading.problem} retry={reading.reload} />
        )}
      </Page>
    )
  const { facts, statement } = approval
  return (
    <Page
      title={`Approve ${tickerOf(facts.asset)}`}
      back={back}
      lead={<Status of={approval.state} />}
    >
      {approval.state === 'open' ? (
        <Note tone="warn">
          <p>
            Approvals so far: <Needs of={approval.needs} />. If the others are missing, it fails{' '}
            <Time at={approval.expires_at} />. It delays no other transfer.
          </p>
        </Note>
      ) : null}
      <Card title="What an approval signs">
        <Facts
          of={[
            ['Action', approval.action],
            ['Amount', <ApprovalAmount key="amount" of={facts} />],
            ['From sub-account', facts.sub_account],
            ['To', <Id key="to" value={facts.to} label="destination" isWhole />],
            facts.tag === null
              ? null
              : ['Tag', <Id key="tag" value={facts.tag} label="tag" isWhole />],
            ['Network', facts.network],
            facts.contract === null
              ? null
              : ['Contract', <Id key="contract" value={facts.contract} label="contract" isWhole />],
            facts.fee_max === null
              ? null
              : [
                  'Fee at most',
                  <Amount
                    key="fee"
                    value={unitsText(facts.fee_max, facts.fee_decimals)}
                    of={facts.fee_asset}
                  />,
                ],
            ['Policy', `number ${statement.policy.number}`],
            [
              'Hash of the policy',
              <Id key="hash" value={statement.policy.hash} label="hash" isWhole />,
            ],
            [
              'Transfer',
              <a key="transfer" href={pageAt(`/transactions/${id}`)}>
                Open the transfer
              </a>,
            ],
          ]}
        />
      </Card>
      <Card title="Decisions" isBare>
        <Table
          label="Decisions"
          reading={reading}
          rows={approval.have}
          keyOf={({ by }) => by}
          columns={[
            { head: 'Person', cell: ({ by }) => by },
            {
              head: 'Decision',
              cell: ({ decision }) => (
                <Status of={decision === 'approve' ? 'approved' : 'rejected'} />
              ),
            },
            {
              head: 'Key',
              isMinor: true,
              cell: ({ key, passkey }) => (passkey === undefined ? key : `${key} (passkey)`),
            },
            { head: 'Signed', cell: ({ at }) => <Time at={timeOf(at)} /> },
            {
              head: 'Counts until',
              isMinor: true,
              cell: ({ expires }) => <Time at={timeOf(expires)} />,
            },
          ]}
          empty={<Empty icon="people" title="No decisions yet" />}
        />
      </Card>
      {approval.state === 'open' ? <HowTo id={id} /> : null}
    </Page>
  )
}
