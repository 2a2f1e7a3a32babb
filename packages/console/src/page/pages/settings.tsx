import { ofWorkspace } from '../api/scope.ts'
import type { Settings } from '../api/types.ts'
import { useRead } from '../api/use.ts'
import { Card, Page } from '../parts/page.tsx'
import { Amount } from '../parts/values.tsx'
import { Table } from '../parts/table.tsx'

export function SettingsPage() {
  const settings = useRead<Settings>(ofWorkspace('/settings'))
  return (
    <Page
      title="Settings"
      lead="As the operator set them on the platform’s host. Changed there, and nowhere else; secrets are not shown."
    >
      <Card title="Platform" isBare>
        <Table
          label="Settings"
          reading={settings}
          rows={settings.data?.settings}
          keyOf={({ name }) => name}
          columns={[
            { head: 'Name', cell: ({ name }) => <code>{name}</code> },
            { head: 'Value', cell: ({ value }) => <span class="whole">{value}</span> },
            {
              head: 'What it is',
              isMinor: true,
              cell: ({ says }) => <span class="muted">{says}</span>,
            },
          ]}
          empty={null}
        />
      </Card>
      <Card title="Networks" isBare>
        <Table
          label="Networks"
          reading={settings}
          rows={settings.data?.networks}
          keyOf={({ network }) => network}
          columns={[
            {
              head: 'Network',
              cell: ({ network, name }) => (
                <>
                  <strong>{network}</strong> <span class="muted">{name}</span>
                </>
              ),
            },
            {
              head: 'Final after',
              isNumber: true,
              cell: ({ confirmations }) =>
                confirmations === null ? 'the chain’s finality' : `${confirmations} confirmations`,
            },
            {
              head: 'Most for a fee',
              isNumber: true,
              cell: ({ fee_cap: cap, native_asset: asset }) => <Amount value={cap} of={asset} />,
            },
          ]}
          empty={null}
        />
      </Card>
    </Page>
  )
}
