import { useEffect, useState } from 'preact/hooks'

let say: (text: string) => void = () => undefined

/** Announces a text to screen readers after the current announcement. */
export const announce = (text: string): void => say(text)

/** Live region that exists once and stays when screens change. */
export function Announcer() {
  const [text, setText] = useState('')
  useEffect(() => {
    // The same sentence twice would not be announced, so a space at its end makes it differ.
    say = (next) => setText((last) => (last === next ? `${next}\u00a0` : next))
  }, [])
  return (
    <div class="sr-only" role="status" aria-live="polite">
      {text}
    </div>
  )
}
