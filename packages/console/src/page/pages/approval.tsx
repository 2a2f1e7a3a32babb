import { mirror, pageAt } from '../api/scope.ts'
import type { ApprovalDetail } from '../api/types.ts'
import { useRead } from '../api/use.ts'
import { unitsText } from '../amounts.ts'
import { Card, Facts, Note, Page, ProblemNote, Skeleton } from '../parts/page.tsx'
import { Amount, Id, tickerOf, Time } from '../parts/values.tsx'
import { Status } from '../parts/status.tsx'
import { ApprovalAmount, APPROVALS_LIVE, Needs, Requester } from './approvals.tsx'
import { Decisions, HowTo } from './decisions.tsx'
import { ChangePage } from './policy-change.tsx'

/** Page of one transfer, forwarding rule or policy change that requires approvals. */
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
  if (facts === null) return <ChangePage id={id} />
  const isRule = approval.action === 'forward'
  const { standing } = facts
  return (
    <Page
      title={`Approve ${tickerOf(facts.asset)}`}
      back={back}
      lead={<Status of={approval.state} />}
    >
      {approval.state === 'open' ? (
        <Note tone="warn">
          <p>
            Approvals so far: <Needs of={approval.needs} />. If the others are missing, it{' '}
            {isRule ? 'ends' : 'fails'} <Time at={approval.expires_at} />.{' '}
            {isRule ? 'Nothing is forwarded until then.' : 'It delays no other transfer.'}
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
                    isExact
                    key="fee"
                    value={unitsText(facts.fee_max, facts.fee_decimals)}
                    of={facts.fee_asset}
                  />,
                ],
            approval.planned_fee === undefined
              ? null
              : [
                  'Planned fee, not signed',
                  <Amount
                    isExact
                    key="planned"
                    value={unitsText(approval.planned_fee, facts.fee_decimals)}
                    of={facts.fee_asset}
                  />,
                ],
            standing === null
              ? null
              : [
                  'Smallest forward',
                  <Amount
                    isExact
                    key="min"
                    value={unitsText(standing.min_amount, facts.decimals)}
                    of={facts.asset}
                  />,
                ],
            standing === null
              ? null
              : [
                  'Maximum in 24 hours',
                  <Amount
                    isExact
                    key="cap"
                    value={unitsText(standing.daily_cap, facts.decimals)}
                    of={facts.asset}
                  />,
                ],
            approval.memo === undefined ? null : ['Memo, not signed', approval.memo],
            ['Requested by, not signed', <Requester key="requester" of={approval.requested_by} />],
            ['Policy', `number ${statement.policy.number}`],
            [
              'Hash of the policy',
              <Id key="hash" value={statement.policy.hash} label="hash" isWhole />,
            ],
            isRule
              ? [
                  'Rule',
                  <a key="rule" href={pageAt(`/forwarding/${id}`)}>
                    Open the forwarding rule
                  </a>,
                ]
              : [
                  'Transfer',
                  <a key="transfer" href={pageAt(`/transactions/${id}`)}>
                    Open the transfer
                  </a>,
                ],
          ]}
        />
      </Card>
      <Decisions of={approval.have} reading={reading} />
      {approval.state === 'open' ? <HowTo id={id} of={isRule ? 'rule' : 'transfer'} /> : null}
    </Page>
  )
}
