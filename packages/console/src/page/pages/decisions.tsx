import { custody } from '../api/command.ts'
import type { Approval } from '../api/types.ts'
import type { Reading } from '../api/use.ts'
import { Card, Empty } from '../parts/page.tsx'
import { Code, Time } from '../parts/values.tsx'
import { Status } from '../parts/status.tsx'
import { Table } from '../parts/table.tsx'

const timeOf = (seconds: number): string => new Date(seconds * 1000).toISOString()

/** How a person approves. This page cannot, because it has no key of theirs. */
export function HowTo({ id, of }: { id: string; of: 'transfer' | 'change' | 'rule' }) {
  return (
    <Card
      title="Approve or reject"
      lead={`People sign with their own keys, on their own machines, because this page could show one ${of} and have another one approved.`}
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

/** Decisions of people, with the key of each. */
export function Decisions({
  of,
  reading,
}: {
  of: Approval['have']
  reading: Pick<Reading<unknown>, 'problem' | 'reload'>
}) {
  return (
    <Card title="Decisions" isBare>
      <Table
        label="Decisions"
        reading={reading}
        rows={of}
        keyOf={({ by, key, decision }) => `${by} ${key} ${decision}`}
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
  )
}
