import { useRef, useState } from 'preact/hooks'
import { assetNames } from '../api/assets.ts'
import { bodyOf, BYTES_MAX, COLUMNS, LINES_MAX, readBatch, totals, type Line } from '../api/batch-file.ts'
import { checkAddresses, findSent } from '../api/batch.ts'
import { Problem, SignedElsewhere } from '../api/http.ts'
import { ofSub, pageAt } from '../api/scope.ts'
import { commandOf, sign } from '../api/sign.ts'
import type { Overview, Transaction } from '../api/types.ts'
import { useRead } from '../api/use.ts'
import { encode } from '../api/wire.ts'
import { announce } from '../parts/announce.tsx'
import { download } from '../parts/download.ts'
import { Button, Check } from '../parts/form.tsx'
import { KeyNotice, useKeyState } from '../parts/key-notice.tsx'
import { Card, Note, Page, ProblemNote } from '../parts/page.tsx'
import { Amount, AssetName, Id } from '../parts/show.tsx'
import { Status } from '../parts/status.tsx'
import { Table } from '../parts/table.tsx'

const READ = { problem: null, reload: () => undefined }
const TEMPLATE = [
  COLUMNS.join(','),
  'ETH,0.25,0x52908400098527886E0F7030069857D2E4169EE7,,"invoice 17, March",medium',
  'XRP,120,rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh,3042817,,',
  '',
].join('\n')

type Sent = { is: 'sent'; id: string } | { is: 'refused'; problem: Problem } | { is: 'sending' }
interface File {
  name: string
  lines: Line[]
  checked: number
  isChecked: boolean
}

const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
/** A window of the API's lasts a minute. */
const RATE_WAIT_MS = 15_000

export function Batch() {
  const overview = useRead<Overview>(ofSub('/overview'))
  const [file, setFile] = useState<File | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  const [sent, setSent] = useState<ReadonlyMap<string, Sent>>(new Map())
  const [isRunning, setRunning] = useState(false)
  const [isRight, setRight] = useState(false)
  const [isTagless, setTagless] = useState(false)
  const [isLooking, setLooking] = useState(false)
  const stop = useRef(false)
  const key = useKeyState()
  const note = (id: string, state: Sent) => setSent((before) => new Map(before).set(id, state))

  const open = async (name: string, text: string) => {
    setProblem(null)
    setFile(null)
    setSent(new Map())
    setRight(false)
    setTagless(false)
    try {
      if (text.length > BYTES_MAX) throw new TypeError('The file is larger than a megabyte.')
      const lines = await readBatch(text, assetNames.value)
      setFile({ name, lines, checked: 0, isChecked: false })
      await checkAddresses(lines, (checked) => setFile({ name, lines, checked, isChecked: false }))
      setLooking(true)
      const before = await findSent(lines)
      setSent(new Map([...before].map(([sequence, id]) => [sequence, { is: 'sent', id }])))
      setFile({ name, lines: [...lines], checked: lines.length, isChecked: true })
      announce(`${lines.length} lines read`)
    } catch (error) {
      setProblem(error instanceof Problem ? error : new Problem(0, 'FILE', error instanceof Error ? error.message : String(error)))
    } finally {
      setLooking(false)
    }
  }

  const send = async () => {
    if (file === null || isRunning) return
    stop.current = false
    setRunning(true)
    setProblem(null)
    try {
      for (const line of file.lines) {
        if (stop.current) break
        if (sent.get(line.sequence_id)?.is === 'sent') continue
        note(line.sequence_id, { is: 'sending' })
        for (;;) {
          try {
            const { id } = await sign<Transaction>('POST', '/dac/v1/transaction', bodyOf(line))
            note(line.sequence_id, { is: 'sent', id })
            break
          } catch (error) {
            if (error instanceof Problem && error.status === 429 && !stop.current) {
              await later(RATE_WAIT_MS)
              continue
            }
            if (!(error instanceof Problem)) throw error
            note(line.sequence_id, { is: 'refused', problem: error })
            // Whether a line was taken is not known: what comes after it waits until somebody has looked.
            if (error.status === 0 || error.status >= 500) throw error
            break
          }
        }
      }
      announce('The batch is through')
    } catch (error) {
      if (!(error instanceof SignedElsewhere)) setProblem(error instanceof Problem ? error : new Problem(0, 'UNEXPECTED', String(error)))
      setSent((before) => new Map([...before].filter(([, state]) => state.is !== 'sending')))
    } finally {
      setRunning(false)
    }
  }

  const lines = file?.lines ?? []
  const wrong = lines.filter(({ problems }) => problems.length > 0).length
  const done = lines.filter(({ sequence_id: id }) => sent.get(id)?.is === 'sent').length
  const refused = lines.filter(({ sequence_id: id }) => sent.get(id)?.is === 'refused').length
  const left = lines.filter(({ sequence_id: id }) => sent.get(id)?.is !== 'sent')
  const sums = totals(
    left,
    assetNames.value,
    overview.data?.balances.map(({ asset, available }) => ({ asset, balance: available })) ?? [],
  )
  const isShort = sums.some(({ isEnough }) => !isEnough)
  const untagged = left.filter(({ hasNoTag }) => hasNoTag).length
  const isReady = file?.isChecked === true && wrong === 0 && !isShort && left.length > 0
  const script = () =>
    [
      '#!/bin/sh',
      `# ${left.length} transfers. Sent twice, each is carried out once.`,
      'set -e',
      ...left.map((line) => commandOf({ method: 'POST', path: '/dac/v1/transaction', body: encode(bodyOf(line)) })),
      '',
    ].join('\n')
  return (
    <Page
      title="Batch send"
      lead="One signed request for each line of a file. A line is carried out at most once, however often the file is sent."
      back={{ href: pageAt('/transactions'), word: 'Transactions' }}
      actions={
        <Button icon="download" onClick={() => download('custody-batch.csv', TEMPLATE, 'text/csv')}>
          Template
        </Button>
      }
    >
      <KeyNotice />
      <Card
        title="File"
        lead={
          <>
            CSV with the columns {COLUMNS.join(', ')}; the first three are needed. At most {LINES_MAX.toLocaleString('en')} lines.
          </>
        }
      >
        <input
          class="input"
          type="file"
          accept=".csv,text/csv,text/plain"
          aria-label="CSV file"
          disabled={isRunning}
          onChange={(event) => {
            const chosen = event.currentTarget.files?.[0]
            if (chosen !== undefined) void chosen.text().then((text) => open(chosen.name, text))
          }}
        />
        <ProblemNote problem={problem} />
        {file !== null && !file.isChecked && problem === null ? (
          <p class="muted" role="status">
            {isLooking ? 'Looking whether it was sent before…' : `Checking addresses: ${file.checked} of ${lines.length}`}
          </p>
        ) : null}
      </Card>
      {file === null ? null : (
        <>
          <Card title="Totals" isBare>
            <Table
              label="Totals"
              reading={READ}
              rows={sums}
              keyOf={({ asset }) => asset}
              columns={[
                { head: 'Asset', cell: ({ asset }) => <AssetName of={asset} /> },
                { head: 'Lines', isNumber: true, cell: ({ count }) => count },
                { head: 'To send', isNumber: true, cell: ({ asset, total }) => <Amount value={total} of={asset} /> },
                {
                  head: 'Can be sent',
                  isNumber: true,
                  isMinor: true,
                  cell: ({ asset, balance }) => <Amount value={balance} of={asset} />,
                },
                {
                  head: 'Covered',
                  cell: ({ isEnough, balance }) =>
                    balance === null ? (
                      <Status of="failed" word="No wallet" />
                    ) : isEnough ? (
                      <Status of="ok" word="Enough" />
                    ) : (
                      <Status of="failed" word="Too little" />
                    ),
                },
              ]}
              empty={<p class="pad muted">Nothing is left to send.</p>}
            />
          </Card>
          <Card
            title={file.name}
            lead={[
              `${lines.length} lines`,
              ...[
                [wrong, 'with problems'],
                [done, 'sent'],
                [refused, 'refused'],
              ].flatMap(([count, word]) => (count === 0 ? [] : [`${count} ${word}`])),
            ].join(', ')}
            isBare
          >
            <Table
              label="Lines"
              reading={READ}
              rows={lines}
              keyOf={({ sequence_id: id }) => id}
              columns={[
                { head: 'Line', cell: ({ number }) => number },
                { head: 'Amount', isNumber: true, cell: ({ asset, amount }) => <Amount value={amount} of={asset} /> },
                {
                  head: 'Destination',
                  cell: ({ destination_address: to, address_tag: tag }) => (
                    <>
                      <Id value={to} label="destination" />
                      {tag === '' ? null : <span class="muted"> tag {tag}</span>}
                    </>
                  ),
                },
                { head: 'Memo', isMinor: true, cell: ({ memo }) => <span class="cut">{memo}</span> },
                { head: 'State', cell: (line) => <LineState line={line} sent={sent.get(line.sequence_id)} /> },
              ]}
              empty={null}
            />
          </Card>
          <Card title="Send">
            {wrong > 0 ? (
              <Note tone="bad">
                <p>Correct the lines with problems and choose the file again. Nothing is sent of a file with a wrong line.</p>
              </Note>
            ) : null}
            {wrong === 0 && isShort && left.length > 0 ? (
              <Note tone="bad">
                <p>There is too little of an asset for all of its lines.</p>
              </Note>
            ) : null}
            {left.length === 0 && lines.length > 0 ? (
              <Note tone="ok">
                <p>
                  All {lines.length} lines are sent. <a href={pageAt('/transactions')}>See them on their way</a>
                </p>
              </Note>
            ) : null}
            {isRunning || done > 0 ? <progress max={lines.length} value={done} aria-label="Lines sent" /> : null}
            {isReady && untagged > 0 ? (
              <Check
                label={
                  untagged === 1
                    ? 'One line has no destination tag or memo: its payee has none'
                    : `${untagged} lines have no destination tag or memo: their payees have none`
                }
                value={isTagless}
                onValue={setTagless}
              />
            ) : null}
            {isReady ? (
              <Check
                label={`I have looked at the lines, and send ${done === 0 ? 'all' : 'what is left:'} ${left.length}`}
                value={isRight}
                onValue={setRight}
              />
            ) : null}
            <div class="row">
              <Button
                kind="primary"
                icon="key"
                isBusy={isRunning}
                disabled={!isReady || !isRight || (untagged > 0 && !isTagless)}
                onClick={() => void send()}
              >
                {done > 0 || refused > 0 ? 'Go on' : 'Sign and send'}
              </Button>
              {isRunning ? <Button onClick={() => (stop.current = true)}>Stop after this line</Button> : null}
              {isReady && key !== null && key.state !== 'ready' ? (
                <Button icon="download" onClick={() => download('custody-batch.sh', script(), 'text/x-shellscript')}>
                  Commands to sign elsewhere
                </Button>
              ) : null}
            </div>
          </Card>
        </>
      )}
    </Page>
  )
}

function LineState({ line, sent }: { line: Line; sent: Sent | undefined }) {
  if (sent?.is === 'sent')
    return (
      <a href={pageAt(`/transactions/${sent.id}`)}>
        <Status of="done" word="Sent" />
      </a>
    )
  if (sent?.is === 'refused')
    return (
      <span class="stack-small">
        <Status of="refused" />
        <span class="field-error">
          {sent.problem.message} <code>{sent.problem.code}</code>
        </span>
      </span>
    )
  if (sent?.is === 'sending') return <Status of="pending" word="Sending" />
  if (line.problems.length > 0)
    return (
      <span class="stack-small">
        <Status of="failed" word="Wrong" />
        <span class="field-error">{line.problems.join('; ')}</span>
      </span>
    )
  if (line.notes.length > 0)
    return (
      <span class="stack-small">
        <Status of="warn" word="Look" />
        <span class="muted">{line.notes.join('; ')}</span>
      </span>
    )
  return <Status of="unknown" tone="neutral" word="Ready" />
}
