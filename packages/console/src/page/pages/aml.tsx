import { useEffect, useState } from 'preact/hooks'
import { mirror, pageAt } from '../api/scope.ts'
import { sign } from '../api/sign.ts'
import type { AmlSettings, FrozenAddress } from '../api/types.ts'
import { useAction, useRead } from '../api/use.ts'
import { toast } from '../parts/announce.tsx'
import { Button, Check, Choice, Dialog, onSubmit, Text } from '../parts/form.tsx'
import { KeyNotice } from '../parts/key-notice.tsx'
import { Card, Empty, Note, Page, ProblemNote, Skeleton } from '../parts/page.tsx'
import { AssetName, Id, Time } from '../parts/values.tsx'
import { Status } from '../parts/status.tsx'
import { Table } from '../parts/table.tsx'

const PROVIDERS = [
  ['CHAINALYSIS', 'Chainalysis'],
  ['ELLIPTIC', 'Elliptic'],
  ['TRM', 'TRM Labs'],
] as const
const LEVELS = [
  ['SEVERE', 'Severe'],
  ['HIGH', 'High'],
  ['MEDIUM', 'Medium'],
  ['LOW', 'Low'],
] as const
/** Fields whose problems stand beside their inputs. */
const OWN_FIELDS = new Set(['aml_token', 'aml_unknown_sender_usd'])
const sourceWord = (source: string) => PROVIDERS.find(([name]) => name === source)?.[1] ?? source
const tones = { SEVERE: 'bad', HIGH: 'bad', MEDIUM: 'warn', LOW: 'info' } as const
const toneOfLevel = (level: string) => tones[level as keyof typeof tones] ?? 'frozen'

function Settings({ saved, onSaved }: { saved: AmlSettings | null; onSaved(): void }) {
  const [provider, setProvider] = useState(saved?.provider ?? 'CHAINALYSIS')
  const [token, setToken] = useState('')
  const [levels, setLevels] = useState<ReadonlySet<string>>(
    new Set((saved?.aml_risk_levels ?? 'SEVERE, HIGH').split(/,\s*/)),
  )
  const [isDeposit, setDeposit] = useState(saved?.aml_deposit ?? true)
  const [isWithdrawal, setWithdrawal] = useState(saved?.aml_withdrawal ?? true)
  const [unknownUsd, setUnknownUsd] = useState(String(saved?.aml_unknown_sender_usd ?? 0))
  const { isBusy, problem, run } = useAction()
  const toggle = (level: string, isOn: boolean) =>
    setLevels(
      (before) => new Set(isOn ? [...before, level] : [...before].filter((each) => each !== level)),
    )
  const submit = () =>
    run(async () => {
      const chosen = LEVELS.map(([level]) => level)
        .filter((level) => levels.has(level))
        .join(', ')
      await sign('POST', '/dac/v1/aml', {
        provider,
        aml_token: token.trim(),
        aml_risk_levels: chosen,
        aml_deposit: isDeposit,
        aml_withdrawal: isWithdrawal,
        aml_unknown_sender_usd: unknownUsd.trim() === '' ? '0' : unknownUsd.trim(),
      })
      setToken('')
      toast('Screening is saved')
      onSaved()
    })
  return (
    <form class="stack narrow" onSubmit={onSubmit(submit)}>
      <Choice label="Provider" value={provider} onValue={setProvider} options={PROVIDERS} />
      <Text
        label="Token"
        type="password"
        value={token}
        onValue={setToken}
        required
        autoComplete="off"
        error={problem?.field === 'aml_token' ? problem.message : null}
        hint={
          saved === null ? (
            'From the provider; Elliptic: key:secret. The provider is asked whether it accepts it before anything is saved.'
          ) : (
            <>
              Saved: <code>{saved.aml_token}</code>. It is never shown: type it again to change
              anything.
            </>
          )
        }
      />
      <fieldset class="field">
        <legend class="label">Hold at these risk levels</legend>
        <div class="row">
          {LEVELS.map(([level, word]) => (
            <Check
              key={level}
              label={word}
              value={levels.has(level)}
              onValue={(isOn) => toggle(level, isOn)}
            />
          ))}
        </div>
      </fieldset>
      <Check
        label="Screen deposits"
        hint="Everyone whose coins a deposit took"
        value={isDeposit}
        onValue={setDeposit}
      />
      <Check
        label="Screen withdrawals"
        hint="The destination, before anything is signed"
        value={isWithdrawal}
        onValue={setWithdrawal}
      />
      <Text
        label="Credit a deposit with an unknown sender below (USD)"
        inputMode="decimal"
        value={unknownUsd}
        onValue={setUnknownUsd}
        error={problem?.field === 'aml_unknown_sender_usd' ? problem.message : null}
        hint="Contracts and some exchanges pay without a sender that can be screened. With 0, the operator decides on each such deposit."
      />
      <KeyNotice />
      {OWN_FIELDS.has(problem?.field ?? '') ? null : <ProblemNote problem={problem} />}
      <div class="row">
        <Button
          kind="primary"
          type="submit"
          icon="key"
          isBusy={isBusy}
          disabled={token.trim() === '' || levels.size === 0}
        >
          Save
        </Button>
      </div>
    </form>
  )
}

function Unfreeze({ of, onClose, onDone }: { of: FrozenAddress; onClose(): void; onDone(): void }) {
  const [isSure, setSure] = useState(false)
  const { isBusy, problem, run } = useAction()
  const submit = () =>
    run(async () => {
      await sign('POST', '/dac/v1/unfreeze-address', {
        asset: of.asset,
        address: of.address,
        ...(of.address_tag === null ? {} : { address_tag: of.address_tag }),
      })
      toast('The address is unfrozen; what waited for it goes on')
      onDone()
    })
  const waiting = `${of.held} ${of.held === 1 ? 'transaction that waits goes' : 'transactions that wait go'} on`
  return (
    <Dialog title="Unfreeze an address" onClose={onClose}>
      <form class="stack" onSubmit={onSubmit(submit)}>
        <p>
          <Id value={of.address} label="address" isWhole />
        </p>
        <p>
          {sourceWord(of.source)} calls it{' '}
          <Status
            of={of.risk_level}
            word={of.risk_level.toLowerCase()}
            tone={toneOfLevel(of.risk_level)}
          />
          . Once it is unfrozen {of.held === 0 ? 'nothing that waits changes' : waiting}, and it is
          screened again at its next transaction.
        </p>
        {of.source === 'OFAC' ? (
          <Note tone="bad">
            <p>
              A sanctioned address stays frozen as long as it is listed: the platform will refuse
              this.
            </p>
          </Note>
        ) : null}
        <Check label="I have looked into it and may decide this" value={isSure} onValue={setSure} />
        <KeyNotice />
        <ProblemNote problem={problem} />
        <div class="row">
          <Button kind="danger" type="submit" icon="key" isBusy={isBusy} disabled={!isSure}>
            Unfreeze
          </Button>
          <Button onClick={onClose}>Keep it frozen</Button>
        </div>
      </form>
    </Dialog>
  )
}

export function Aml() {
  const settings = useRead<AmlSettings>(mirror('/dac/v1/aml'))
  const frozen = useRead<FrozenAddress[]>(
    mirror('/dac/v1/frozen-addresses'),
    /^(?:address|transaction|deposit)\./,
  )
  const [chosen, setChosen] = useState<FrozenAddress | null>(null)
  const isNone = settings.problem?.code === 'NOT_FOUND'
  const { data } = settings
  useEffect(() => setChosen(null), [frozen.data?.length])
  return (
    <Page
      title="Screening"
      lead="Addresses are screened before coins move. Without a clear result the transfer or deposit is held. The sanctions list is checked first."
    >
      <Card
        title="Frozen addresses"
        lead={
          frozen.data === undefined
            ? undefined
            : frozen.data.length === 0
              ? 'None'
              : `${frozen.data.length} in all`
        }
        isBare
      >
        <Table
          label="Frozen addresses"
          reading={frozen}
          rows={frozen.data}
          keyOf={({ network, address, address_tag: tag }) => `${network} ${address} ${tag ?? ''}`}
          columns={[
            {
              head: 'Address',
              cell: ({ address, address_tag: tag }) => (
                <>
                  <Id value={address} label="address" keep={8} />
                  {tag === null ? null : <span class="muted"> tag {tag}</span>}
                </>
              ),
            },
            { head: 'Asset', cell: ({ asset }) => <AssetName of={asset} /> },
            {
              head: 'Why',
              cell: ({ source, risk_level: level }) => (
                <Status
                  of={level}
                  word={`${level.charAt(0)}${level.slice(1).toLowerCase()}, by ${sourceWord(source)}`}
                  tone={toneOfLevel(level)}
                />
              ),
            },
            {
              head: 'Waiting',
              isNumber: true,
              cell: ({ held, transaction_id: id }) =>
                held === 0 ? (
                  <span class="muted">–</span>
                ) : (
                  <a href={pageAt(`/transactions/${id}`)}>{held}</a>
                ),
            },
            { head: 'Since', isMinor: true, cell: ({ frozen_at: at }) => <Time at={at} /> },
            {
              head: 'Action',
              cell: (row) => (
                <Button class="small" onClick={() => setChosen(row)}>
                  Unfreeze
                </Button>
              ),
            },
          ]}
          empty={
            <Empty icon="aml" title="No address is frozen">
              An address that the provider or the sanctions list flags is held here, with what waits
              for it.
            </Empty>
          }
        />
      </Card>
      <Card
        title="Settings of this sub-account"
        lead={
          data === undefined ? undefined : (
            <>
              Saved <Time at={data.updated_at} />
            </>
          )
        }
      >
        {isNone ? (
          <Note tone="warn">
            <p>This sub-account has no screening provider: only the sanctions list is checked.</p>
          </Note>
        ) : (
          <ProblemNote problem={settings.problem} retry={settings.reload} />
        )}
        {data === undefined || data.warning === null ? null : (
          <Note tone="warn">
            <p>{data.warning}</p>
          </Note>
        )}
        {data === undefined && !isNone ? (
          settings.problem === null ? (
            <Skeleton lines={5} />
          ) : null
        ) : (
          <Settings key={data?.updated_at} saved={data ?? null} onSaved={settings.reload} />
        )}
      </Card>
      {chosen === null ? null : (
        <Unfreeze
          of={chosen}
          onClose={() => setChosen(null)}
          onDone={() => {
            setChosen(null)
            frozen.reload()
          }}
        />
      )}
    </Page>
  )
}
