import { useEffect, useState } from 'preact/hooks'

let say: (text: string) => void = () => undefined

/** Has screen readers say something when they are done with what they say now. */
export const announce = (text: string): void => say(text)

/** Stands once on the page, and outlives every screen. */
export function Announcer() {
  const [text, setText] = useState('')
  useEffect(() => {
    // The same sentence twice is no change, and would not be said: a space at the end makes it one.
    say = (next) => setText((last) => (last === next ? `${next}\u00a0` : next))
  }, [])
  return (
    <div class="sr-only" role="status" aria-live="polite">
      {text}
    </div>
  )
}
