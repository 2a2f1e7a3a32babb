import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { KeyView, NeedView } from '../views.ts'
import { problemOf, type Problem } from './api.ts'

/** Splits a text into groups of four characters; the prefix 0x is a group of its own. */
const groupsOf = (text: string): string[] => text.match(/^0x|.{1,4}/gsu) ?? []

/** An address or hash, whole, in groups of four characters. A copy of it has no spaces. */
export const Grouped = ({ text }: { text: string }) => (
  <bdi dir="ltr" class="grouped">
    {groupsOf(text).map((group, at) => (
      <span key={at}>{group}</span>
    ))}
  </bdi>
)

/** State of an operation that the person has started. */
export interface Work {
  isBusy: boolean
  problem: Problem | null
  start: (work: () => Promise<void>) => void
}

/** Runs one operation at a time and keeps its failure. */
export function useWork(): Work {
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<Problem | null>(null)
  const start = (work: () => Promise<void>) => {
    if (isBusy) return
    setBusy(true)
    setProblem(null)
    work()
      .catch((error: unknown) => setProblem(problemOf(error)))
      .finally(() => setBusy(false))
  }
  return { isBusy, problem, start }
}

export const Note = ({
  tone,
  children,
}: {
  tone: 'ok' | 'bad' | 'warn' | 'info'
  children: ComponentChildren
}) => (
  <div class={`note tone-${tone}`} role={tone === 'bad' ? 'alert' : 'status'}>
    {children}
  </div>
)

export const Failure = ({ problem }: { problem: Problem | null }) =>
  problem === null ? null : (
    <Note tone="bad">
      <p>{problem.message}</p>
      <p class="code">{problem.code}</p>
    </Note>
  )

export const Sentences = ({ lines }: { lines: readonly string[] }) => (
  <div class="sentences">
    {lines.map((line) => (
      <p key={line}>{line}</p>
    ))}
  </div>
)

export const Needs = ({ needs }: { needs: readonly NeedView[] }) => (
  <ul class="needs">
    {needs.map(({ group, k, have }) => (
      <li key={group}>
        {have} of {k} of {group}
      </li>
    ))}
  </ul>
)

const pad = (value: number): string => String(value).padStart(2, '0')

const counted = (count: number, unit: string): string => `${count} ${unit}${count === 1 ? '' : 's'}`

/** Returns how much time is left, in the largest suitable unit. */
function leftText(milliseconds: number): string {
  const minutes = Math.ceil(milliseconds / 60_000)
  if (minutes < 120) return counted(minutes, 'minute')
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? counted(hours, 'hour') : counted(Math.floor(hours / 24), 'day')
}

/** Returns a time in UTC, with the time that is left. */
export function timeText(iso: string): string {
  const time = new Date(iso)
  if (Number.isNaN(time.getTime())) return 'unknown'
  const utc = `${time.getUTCFullYear()}-${pad(time.getUTCMonth() + 1)}-${pad(time.getUTCDate())} ${pad(time.getUTCHours())}:${pad(time.getUTCMinutes())} UTC`
  const left = time.getTime() - Date.now()
  return left <= 0 ? `${utc} (over)` : `${utc} (${leftText(left)} left)`
}

/** Selects the passkey that signs, if there are several. */
export const KeyChoice = ({
  keys,
  value,
  onChange,
}: {
  keys: readonly KeyView[]
  value: string
  onChange: (id: string) => void
}) =>
  keys.length < 2 ? null : (
    <label class="field">
      <span>Passkey</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {keys.map(({ id, alg }) => (
          <option key={id} value={id}>
            {id} ({alg})
          </option>
        ))}
      </select>
    </label>
  )
