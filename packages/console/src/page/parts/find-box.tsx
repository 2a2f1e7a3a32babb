import { useEffect, useRef } from 'preact/hooks'
import { findTransactions } from '../api/find-transactions.ts'
import { FOUND_BY } from '../api/search-text.ts'
import { useAction } from '../api/use.ts'
import { go, place, withQuery } from '../router.ts'
import { ProblemNote } from './page.tsx'

const LABEL = 'Id, hash, address, sequence id or start of a memo'
/** Pause in typing after which the text is searched, in milliseconds. */
const PAUSE_MS = 400

/** Search box of transactions. The page's URL stores the filter that found something. */
export function FindBox() {
  const { problem, run, isBusy } = useAction()
  const latest = useRef('')
  const box = useRef<HTMLInputElement>(null)
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  const { query } = place.value
  const now = FOUND_BY.map((name) => query.get(name)).find((value) => value !== null) ?? ''
  // The box keeps what a person is typing; another filter or page replaces it.
  useEffect(() => {
    if (box.current !== null && document.activeElement !== box.current) box.current.value = now
  }, [now])
  useEffect(() => () => clearTimeout(timer.current), [])
  const find = (text: string) => {
    clearTimeout(timer.current)
    if (text === latest.current && text === now) return Promise.resolve()
    latest.current = text
    return run(async () => {
      // A text that was typed during the search replaces it.
      for (let searched: string | null = null; searched !== latest.current;) {
        searched = latest.current
        const by = await findTransactions(searched, place.value.query.get('type'))
        if (searched !== latest.current) continue
        const none = Object.fromEntries([...FOUND_BY, 'page'].map((name) => [name, null]))
        go(withQuery({ ...none, ...(by === null ? {} : { [by]: searched }) }), 'replace')
      }
    })
  }
  return (
    <>
      <input
        ref={box}
        class="input filters-find"
        data-search
        type="search"
        aria-label={LABEL}
        placeholder={LABEL}
        aria-busy={isBusy}
        defaultValue={now}
        onInput={(event) => {
          const text = event.currentTarget.value.trim()
          clearTimeout(timer.current)
          timer.current = setTimeout(() => void find(text), PAUSE_MS)
        }}
        onChange={(event) => void find(event.currentTarget.value.trim())}
      />
      <ProblemNote problem={problem} retry={() => void find(latest.current)} />
    </>
  )
}
