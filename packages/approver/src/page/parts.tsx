import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { KeyView, NeedView } from '../views.ts'
import { problemOf, type Problem } from './api.ts'

/** Splits a text into groups of four characters. */
const groupsOf = (text: string): string[] => text.match(/.{1,4}/gsu) ?? []

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

/** Returns a time in UTC, with the hours that are left. */
export function timeText(iso: string): string {
  const time = new Date(iso)
  if (Number.isNaN(time.getTime())) return 'unknown'
  const utc = `${time.getUTCFullYear()}-${pad(time.getUTCMonth() + 1)}-${pad(time.getUTCDate())} ${pad(time.getUTCHours())}:${pad(time.getUTCMinutes())} UTC`
  const hours = Math.floor((time.getTime() - Date.now()) / 3_600_000)
  return hours < 0 ? `${utc} (over)` : `${utc} (${hours} hours left)`
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
