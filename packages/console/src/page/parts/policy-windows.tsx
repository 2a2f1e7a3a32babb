import { mirror } from '../api/scope.ts'
import type { PolicyWindows } from '../api/types.ts'
import { useRead } from '../api/use.ts'
import { Card, Empty } from './page.tsx'
import { Table } from './table.tsx'
import { Amount } from './values.tsx'

/** Windows that the page shows; the API returns more. */
const SHOWN_MAX = 20

type Use = PolicyWindows['data'][number]
type Limit = Use['limits'][number]
/** One limit of a sum, as a row. */
interface Row {
  use: Use
  limit: Limit
}

const SCOPES: Record<Use['per'], string> = {
  workspace: 'the workspace',
  sub_account: 'sub-account',
  api_key: 'API key',
  destination: 'destination',
}

/** States what a sum counts. */
const scopeText = ({ per, share, of }: Use): string =>
  share ? `part of sub-account ${of}` : of === null ? SCOPES[per] : `${SCOPES[per]} ${of}`

/** Part of a limit that is used, from 0 to 1; only for the bar. */
const partOf = ({ used, max }: Limit): number =>
  Number(max) === 0 ? 1 : Math.min(1, Number(used) / Number(max))

function UsedCell({ of }: { of: Limit }) {
  const unit = of.asset === null ? {} : { of: of.asset }
  return (
    <>
      <Amount value={of.used} {...unit} /> <span class="muted">of</span>{' '}
      <Amount value={of.max} {...unit} />
      {of.asset === null ? <span class="muted"> payments</span> : null}
      <progress max={1} value={partOf(of)} aria-label="Used" />
    </>
  )
}

/** The time windows of the policy in force, and what counts in them now. */
export function PolicyWindowsCard() {
  const reading = useRead<PolicyWindows>(
    mirror('/dac/v1/policy/windows'),
    /^(?:policy|transaction)/,
  )
  const rows = reading.data?.data
    .flatMap((use): Row[] =>
      use.limits.filter(({ used }) => Number(used) > 0).map((limit) => ({ use, limit })),
    )
    .slice(0, SHOWN_MAX)
  return (
    <Card
      title="Windows in use"
      lead="What counts now, the most used first. Windows that are not listed are empty."
      isBare
    >
      <Table
        label="Windows in use"
        reading={reading}
        rows={rows}
        keyOf={({ use, limit }) =>
          JSON.stringify([use.rule, use.window, use.share, use.of, limit.asset])
        }
        columns={[
          {
            head: 'Window',
            cell: ({ use }) => (
              <>
                {use.rule}, {use.window} <span class="muted">{use.hours} h</span>
              </>
            ),
          },
          { head: 'Counts', cell: ({ use }) => <span class="code">{scopeText(use)}</span> },
          { head: 'Used', cell: ({ limit }) => <UsedCell of={limit} /> },
        ]}
        empty={<Empty icon="aml" title="Nothing counts in a window now" />}
      />
    </Card>
  )
}
