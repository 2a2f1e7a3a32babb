import { useEffect, useRef, useState } from 'preact/hooks'
import { assetNames } from '../api/assets.ts'
import {
  bodyOf,
  BYTES_MAX,
  LINES_MAX,
  readBatch,
  totals,
  type BatchFile,
} from '../api/batch-file.ts'
import { COLUMNS } from '../api/batch-columns.ts'
import type { Earlier, Line } from '../api/batch-line.ts'
import { checkAddresses, readHistory } from '../api/batch.ts'
import { planBatch, RECENT_DAYS } from '../api/batch-plan.ts'
import { decodeFile, type DecimalMark, type Separator } from '../api/csv.ts'
import { Problem, serverNow, SignedElsewhere } from '../api/http.ts'
import { ofSub, pageAt, scope } from '../api/scope.ts'
import { commandOf, sign } from '../api/sign.ts'
import type { Overview, Transaction } from '../api/types.ts'
import { useRead } from '../api/use.ts'
import { encode } from '../api/wire.ts'
import { announce } from '../parts/announce.tsx'
import { download } from '../parts/download.ts'
import { Button, Check, Choice } from '../parts/form.tsx'
import { KeyNotice, useKeyState } from '../parts/key-notice.tsx'
import { Card, Note, Page, ProblemNote } from '../parts/page.tsx'
import { Amount, AssetName, Id, Time } from '../parts/values.tsx'
import { Status } from '../parts/status.tsx'
import { Table } from '../parts/table.tsx'

const READ = { problem: null, reload: () => undefined }
/** Begins with a byte order mark, without which Excel reads UTF-8 as Windows-1252. */
const TEMPLATE = [
  `\uFEFF${COLUMNS.join(',')}`,
  'ETH,0.25,0x52908400098527886E0F7030069857D2E4169EE7,,"invoice 17, March",medium,2026-03-017',
  'XRP,120,rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh,3042817,,,2026-03-018',
  '',
].join('\n')

const SEPARATOR_WORDS: Record<Separator, string> = { ',': 'comma', ';': 'semicolon', '\t': 'tab' }

type Sent = { is: 'sent'; id: string } | { is: 'refused'; problem: Problem } | { is: 'sending' }
interface File extends BatchFile {
  name: string
  /** The original bytes, which are read again with another decimal mark. */
  bytes: Uint8Array
  encoding: string
  checked: number
  isChecked: boolean
}

const countOf = ({ length }: readonly Line[]) => (length === 1 ? '1 line' : `${length} lines`)

const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
/** Wait in milliseconds after a rate limit, whose window lasts a minute. */
const RATE_WAIT_MS = 15_000

export function Batch() {
  const overview = useRead<Overview>(ofSub('/overview'))
  const [file, setFile] = useState<File | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  const [sent, setSent] = useState<ReadonlyMap<number, Sent>>(new Map())
  /** Numbers of lines that are left out by default and that the person includes. */
  const [chosen, setChosen] = useState<ReadonlySet<number>>(new Set())
  const [isRunning, setRunning] = useState(false)
  const [isRight, setRight] = useState(false)
  const [isTagless, setTagless] = useState(false)
  const [isLooking, setLooking] = useState(false)
  const stop = useRef(false)
  /** Counts opened files, so that only the last one is displayed. */
  const opened = useRef(0)
  const key = useKeyState()
  // Another page may be of another sub-account, whose key must not sign the following lines.
  useEffect(() => () => void (stop.current = true), [])
  useEffect(() => {
    if (!isRunning) return
    const warn = (event: BeforeUnloadEvent) => event.preventDefault()
    addEventListener('beforeunload', warn)
    return () => removeEventListener('beforeunload', warn)
  }, [isRunning])
  const note = (number: number, state: Sent) =>
    setSent((before) => new Map(before).set(number, state))
  const isToSend = ({ number, plan }: Line) =>
    (plan?.standing === 'new' || chosen.has(number)) && sent.get(number)?.is !== 'sent'

  const open = async (name: string, bytes: Uint8Array, mark?: DecimalMark) => {
    const turn = ++opened.current
    const show = (read: File) => {
      if (turn === opened.current) setFile(read)
    }
    setProblem(null)
    setFile(null)
    setSent(new Map())
    setChosen(new Set())
    setRight(false)
    setTagless(false)
    try {
      const { text, encoding } = decodeFile(bytes)
      if (bytes.length > BYTES_MAX) throw new TypeError('The file is larger than a megabyte.')
      const read = { name, bytes, encoding, ...readBatch(text, assetNames.value, mark) }
      const { lines } = read
      show({ ...read, checked: 0, isChecked: false })
      await checkAddresses(lines, (checked) => show({ ...read, checked, isChecked: false }))
      setLooking(true)
      await planBatch(lines, assetNames.value, await readHistory(lines, serverNow()), serverNow())
      show({ ...read, lines: [...lines], checked: lines.length, isChecked: true })
      announce(`${countOf(lines)} read`)
    } catch (error) {
      const shown =
        error instanceof Problem
          ? error
          : new Problem(0, 'FILE', error instanceof Error ? error.message : String(error))
      if (turn === opened.current) setProblem(shown)
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
        if (!isToSend(line)) continue
        note(line.number, { is: 'sending' })
        for (;;) {
          try {
            const { id } = await sign<Transaction>('POST', '/dac/v1/transaction', bodyOf(line))
            note(line.number, { is: 'sent', id })
            break
          } catch (error) {
            if (error instanceof Problem && error.status === 429 && !stop.current) {
              await later(RATE_WAIT_MS)
              if (!stop.current) continue
            }
            if (!(error instanceof Problem)) throw error
            note(line.number, { is: 'refused', problem: error })
            // Whether the line was accepted is unknown, so the following lines wait until the
            // person has checked.
            if (error.status === 0 || error.status >= 500) throw error
            break
          }
        }
      }
      announce('The batch is complete')
    } catch (error) {
      if (!(error instanceof SignedElsewhere))
        setProblem(error instanceof Problem ? error : new Problem(0, 'UNEXPECTED', String(error)))
      setSent((before) => new Map([...before].filter(([, state]) => state.is !== 'sending')))
    } finally {
      setRunning(false)
    }
  }

  const lines = file?.lines ?? []
  const wrong = lines.filter(({ problems }) => problems.length > 0).length
  const isSent = ({ number, plan }: Line) =>
    sent.get(number)?.is === 'sent' || (plan?.standing === 'sent' && !chosen.has(number))
  const done = lines.filter(isSent).length
  const refused = lines.filter(({ number }) => sent.get(number)?.is === 'refused').length
  const left = file?.isChecked === true ? lines.filter(isToSend) : lines
  const isOmitted = (line: Line) => line.problems.length === 0 && !isSent(line) && !isToSend(line)
  const omitted = file?.isChecked === true ? lines.filter(isOmitted).length : 0
  const again = left.filter(({ plan }) => plan !== null && plan.standing !== 'new').length
  const sums = totals(
    left,
    assetNames.value,
    overview.data?.balances.map(({ asset, available }) => ({ asset, balance: available })) ?? [],
  )
  const isShort = sums.some(({ isEnough }) => !isEnough)
  const untagged = left.filter(({ hasNoTag }) => hasNoTag).length
  const isReady = file?.isChecked === true && wrong === 0 && !isShort && left.length > 0
  const choose = (number: number, isIncluded: boolean) => {
    const next = new Set(chosen)
    if (isIncluded) next.add(number)
    else next.delete(number)
    setChosen(next)
    // The confirmation was for another number of lines.
    setRight(false)
  }
  const script = () =>
    [
      '#!/bin/sh',
      `# ${left.length} transfers. Sent twice, each is carried out once.`,
      'set -e',
      ...left.map((line) =>
        commandOf({ method: 'POST', path: '/dac/v1/transaction', body: encode(bodyOf(line)) }),
      ),
      '',
    ].join('\n')
  return (
    <Page
      title="Batch send"
      lead="One signed request for each line of a file. What was ordered before is left out, however the file was changed since."
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
            CSV with the columns {COLUMNS.join(', ')}; the first three are needed. At most{' '}
            {LINES_MAX.toLocaleString('en')} lines. Files that Excel saves in other countries are
            read too.
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
            if (chosen !== undefined)
              void chosen.arrayBuffer().then((buffer) => open(chosen.name, new Uint8Array(buffer)))
          }}
        />
        <ProblemNote problem={problem} />
        {file === null ? null : (
          <Choice
            label="Decimal mark"
            hint={`Separator: ${SEPARATOR_WORDS[file.separator]}. Text: ${file.encoding}.`}
            error={
              file.mark === null
                ? 'Amounts of this file can be read in two ways: choose what stands before their decimals.'
                : null
            }
            value={file.mark ?? ''}
            onValue={(mark) =>
              mark === '' || isRunning
                ? undefined
                : void open(file.name, file.bytes, mark as DecimalMark)
            }
            options={[
              ...(file.mark === null ? [['', 'Choose'] as const] : []),
              ['.', 'Point: 1234.5'],
              [',', 'Comma: 1234,5'],
            ]}
          />
        )}
        {file !== null && !file.isChecked && problem === null ? (
          <p class="muted" role="status">
            {isLooking
              ? 'Looking whether it was sent before…'
              : `Checking addresses: ${file.checked} of ${lines.length}`}
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
                {
                  head: 'To send',
                  isNumber: true,
                  cell: ({ asset, total }) => <Amount value={total} of={asset} />,
                },
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
              countOf(lines),
              ...[
                [wrong, 'with problems'],
                [done, 'sent'],
                [refused, 'refused'],
                [omitted, 'left out'],
              ].flatMap(([count, word]) => (count === 0 ? [] : [`${count} ${word}`])),
            ].join(', ')}
            isBare
          >
            <Table
              label="Lines"
              reading={READ}
              rows={lines}
              keyOf={({ number }) => String(number)}
              columns={[
                { head: 'Line', cell: ({ number }) => number },
                {
                  head: 'Amount',
                  isNumber: true,
                  cell: ({ asset, amount }) => <Amount value={amount} of={asset} />,
                },
                {
                  head: 'Destination',
                  cell: ({ destination_address: to, address_tag: tag }) => (
                    <>
                      <Id value={to} label="destination" />
                      {tag === '' ? null : <span class="muted"> tag {tag}</span>}
                    </>
                  ),
                },
                {
                  head: 'Memo',
                  isMinor: true,
                  cell: ({ memo }) => <span class="cut">{memo}</span>,
                },
                {
                  head: 'State',
                  cell: (line) => (
                    <LineState
                      line={line}
                      sent={sent.get(line.number)}
                      isChosen={chosen.has(line.number)}
                      isFixed={isRunning}
                      onChosen={(isIncluded) => choose(line.number, isIncluded)}
                    />
                  ),
                },
              ]}
              empty={null}
            />
          </Card>
          <Card title="Send">
            {wrong > 0 ? (
              <Note tone="bad">
                <p>
                  Correct the lines with problems and choose the file again. Nothing is sent of a
                  file with a wrong line.
                </p>
              </Note>
            ) : null}
            {wrong === 0 && isShort && left.length > 0 ? (
              <Note tone="bad">
                <p>The balance of an asset is too low for all of its lines.</p>
              </Note>
            ) : null}
            {done === lines.length && lines.length > 0 ? (
              <Note tone="ok">
                <p>
                  {lines.length === 1 ? 'The line is sent.' : `All ${lines.length} lines are sent.`}{' '}
                  <a href={pageAt('/transactions')}>Show these transfers</a>
                </p>
              </Note>
            ) : null}
            {wrong === 0 && omitted > 0 ? (
              <Note tone="warn">
                <p>
                  {omitted === 1 ? 'One line is' : `${omitted} lines are`} left out, because an
                  equal payment was ordered in the last {RECENT_DAYS} days or an earlier attempt
                  failed. Compare the earlier transfer, and include a line where it is another
                  payment.
                </p>
              </Note>
            ) : null}
            {isRunning || done > 0 ? (
              <progress max={lines.length} value={done} aria-label="Lines sent" />
            ) : null}
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
                label={
                  `I have looked at the lines, and send ${left.length === lines.length ? 'all' : 'what is left:'} ${left.length}` +
                  (again === 0 ? '' : `, of which ${again} look like earlier payments`)
                }
                value={isRight}
                onValue={setRight}
              />
            ) : null}
            {isRunning || (isReady && left.length > 1) ? (
              <p class="muted">
                Keep this page open until all lines are sent. If you leave it, sending stops after
                the current line; choose the same file again to send the rest.
              </p>
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
              {isRunning ? (
                <Button onClick={() => (stop.current = true)}>Stop after this line</Button>
              ) : null}
              {isReady && key !== null && key.state !== 'ready' ? (
                <Button
                  icon="download"
                  onClick={() => download('custody-batch.sh', script(), 'text/x-shellscript')}
                >
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

/** Earlier transfers, newest first. */
function EarlierTransfers({ of }: { of: readonly Earlier[] }) {
  return (
    <>
      {of.map(
        ({
          id,
          sub_account: sub,
          created_at: at,
          status,
          sequence_id: sequence,
          address_tag: tag,
        }) => (
          <span key={id} class="muted">
            {sub === scope.value.subAccount ? (
              <a href={pageAt(`/transactions/${id}`)}>Transfer</a>
            ) : (
              <>Transfer of {sub}</>
            )}{' '}
            <Time at={at} />, {status}
            {tag === null ? null : <>, tag {tag}</>}
            {sequence === null || sequence.startsWith('batch-') ? null : <>, {sequence}</>}
          </span>
        ),
      )}
    </>
  )
}

const STANDINGS = {
  sent: { word: 'Sent', tone: 'ok', include: 'Pay it once more' },
  failed: { word: 'Failed', tone: 'bad', include: 'Pay it again' },
  paid: { word: 'Paid already?', tone: 'warn', include: 'Another payment: include it' },
} as const

function LineState({
  line,
  sent,
  isChosen,
  isFixed,
  onChosen,
}: {
  line: Line
  sent: Sent | undefined
  isChosen: boolean
  isFixed: boolean
  onChosen(isChosen: boolean): void
}) {
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
  const { plan, problems, notes } = line
  if (problems.length > 0)
    return (
      <span class="stack-small">
        <Status of="failed" word="Wrong" />
        <span class="field-error">{problems.join('; ')}</span>
        <EarlierTransfers of={plan?.earlier ?? []} />
      </span>
    )
  if (plan !== null && plan.standing !== 'new') {
    const { word, tone, include } = STANDINGS[plan.standing]
    return (
      <div class="stack-small">
        <Status of={plan.standing} word={word} tone={tone} />
        <EarlierTransfers of={plan.earlier} />
        {isFixed ? null : <Check label={include} value={isChosen} onValue={onChosen} />}
      </div>
    )
  }
  if (notes.length > 0)
    return (
      <span class="stack-small">
        <Status of="warn" word="Look" />
        <span class="muted">{notes.join('; ')}</span>
      </span>
    )
  return <Status of="unknown" tone="neutral" word="Ready" />
}
