import { useEffect, useState } from 'preact/hooks'
import type { StateView } from '../views.ts'
import { call } from './api.ts'
import { Approvals } from './approvals.tsx'
import { Change } from './change.tsx'
import { Emergency } from './emergency.tsx'
import { Passkey } from './passkey.tsx'
import { Failure, useWork } from './parts.tsx'
import { PolicyDocument } from './policy-document.tsx'
import { useWaiting, type Waiting } from './waiting.ts'

const VIEWS = [
  ['approvals', 'Approvals'],
  ['passkey', 'My passkey'],
  ['document', 'Sign a document'],
  ['emergency', 'Emergency'],
] as const
type View = (typeof VIEWS)[number][0]

interface Place {
  view: View
  /** ID of a transfer or a policy change. */
  id: string | null
  isChange: boolean
}

/** Returns the view and the ID in the fragment of the URL. */
function placeOf(hash: string): Place {
  const [name, id] = hash.replace(/^#/, '').split('/')
  if (name === 'changes' && id) return { view: 'approvals', id, isChange: true }
  const view = VIEWS.find(([each]) => each === name)?.[0] ?? 'approvals'
  return { view, id: view === 'approvals' && id ? id : null, isChange: false }
}

/** Returns how many approvals wait, for the title of the tab. */
function countText({ list }: Waiting): string {
  const count = list?.data.length ?? 0
  return count === 0 ? '' : `(${count}${list?.next ? '+' : ''}) `
}

export function App() {
  const [place, setPlace] = useState(placeOf(location.hash))
  const [state, setState] = useState<StateView | null>(null)
  const { problem, start } = useWork()
  const waiting = useWaiting()
  useEffect(() => {
    const follow = () => setPlace(placeOf(location.hash))
    addEventListener('hashchange', follow)
    start(async () => setState(await call<StateView>('state')))
    return () => removeEventListener('hashchange', follow)
  }, [])
  const title = VIEWS.find(([view]) => view === place.view)?.[1]
  const count = countText(waiting)
  useEffect(() => {
    document.title = `${count}${title} – Approver`
  }, [title, count])
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault()
          document.getElementById('main')?.focus()
        }}
      >
        Skip to the content
      </a>
      <header class="top">
        <div class="top-line">
          <strong>Approver</strong>
          {state === null ? null : (
            <span class="muted">
              {state.person}, workspace {state.workspace} / {state.sub_account}, {state.mode}
            </span>
          )}
        </div>
        <nav aria-label="Views">
          {VIEWS.map(([view, text]) => (
            <a key={view} href={`#${view}`} aria-current={view === place.view ? 'page' : undefined}>
              {text}
            </a>
          ))}
        </nav>
      </header>
      <main id="main" tabIndex={-1}>
        <Failure problem={problem} />
        {state === null ? null : place.isChange ? (
          <Change key={place.id} id={place.id as string} person={state.person} />
        ) : place.view === 'approvals' ? (
          <Approvals id={place.id} person={state.person} waiting={waiting} />
        ) : place.view === 'passkey' ? (
          <Passkey state={state} />
        ) : place.view === 'emergency' ? (
          <Emergency person={state.person} />
        ) : (
          <PolicyDocument person={state.person} />
        )}
      </main>
      <footer class="muted">
        {state === null ? null : (
          <p>
            This page runs on your computer at {state.origin}. It reads transfers and policy changes
            from {state.platform} and verifies them itself.
          </p>
        )}
      </footer>
    </>
  )
}
