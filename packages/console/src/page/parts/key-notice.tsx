import { useEffect, useState } from 'preact/hooks'
import { pageAt, scope } from '../api/scope.ts'
import type { KeyState } from '../api/key-state.ts'
import { keyState } from '../api/sign.ts'
import { Note } from './page.tsx'

/** Returns the state of this browser's key; null until it is known. */
export function useKeyState(): KeyState | null {
  const [state, setState] = useState<KeyState | null>(null)
  const { subPath } = scope.value
  useEffect(() => {
    let isGone = false
    setState(null)
    keyState()
      .catch((): KeyState => ({ state: 'none', key: null, user: null }))
      .then((state) => !isGone && setState(state))
    return () => void (isGone = true)
  }, [subPath])
  return state
}

const WORDS: Partial<Record<KeyState['state'], string>> = {
  none: 'This browser has no key for this sub-account. Requests that you prepare here must be signed elsewhere.',
  unknown:
    'This browser’s key is not an API user yet: what you prepare here is shown to be signed elsewhere.',
  pending:
    'This browser’s key waits to be enrolled: until then, what you prepare here is shown to be signed elsewhere.',
  'read-only':
    'This browser’s key may only read: what you prepare here is shown to be signed elsewhere.',
  revoked: 'This browser’s key was revoked: what you prepare here is shown to be signed elsewhere.',
}

/** Notice that a request cannot be signed here, with a remedy. */
export function KeyNotice() {
  const state = useKeyState()
  const word = state === null ? undefined : WORDS[state.state]
  return word === undefined ? null : (
    <Note tone="info">
      <p>
        {word} <a href={pageAt('/browser-key')}>Browser key</a>
      </p>
    </Note>
  )
}
