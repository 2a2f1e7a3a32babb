import { useEffect, useId, useState } from 'preact/hooks'
import { useSpeech } from '../language.ts'
import { announce } from './announcer.tsx'

const CONFIRMED_MS = 2500

/**
 * Copies a text. The clipboard API requires a secure origin; without one, the older method is used.
 */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const area = document.createElement('textarea')
    area.value = text
    area.className = 'sr-only'
    area.readOnly = true
    const focused = document.activeElement as HTMLElement | null
    document.body.append(area)
    area.select()
    const copied = document.execCommand('copy')
    area.remove()
    focused?.focus({ preventScroll: true })
    return copied
  }
}

/**
 * Button that copies `text`, and confirms it on the button and to screen readers.
 * @param done confirmation for screen readers
 * @param labelledBy id of the name of the copied text
 */
export function CopyButton({
  text,
  done,
  labelledBy,
}: {
  text: string
  done: string
  labelledBy: string
}) {
  const { words } = useSpeech()
  const id = useId()
  const [copied, setCopied] = useState(false)
  useEffect(() => {
    if (!copied) return
    const timer = setTimeout(() => setCopied(false), CONFIRMED_MS)
    return () => clearTimeout(timer)
  }, [copied])
  useEffect(() => setCopied(false), [text])
  const copy = async () => {
    const isCopied = await copyText(text)
    setCopied(isCopied)
    announce(isCopied ? done : words.copyFailed)
  }
  return (
    <button
      type="button"
      class={copied ? 'copy is-done' : 'copy'}
      aria-labelledby={`${id} ${labelledBy}`}
      onClick={() => void copy()}
    >
      {/* Both words overlap, so that the button keeps its width. */}
      <span class="copy-words">
        <span class={copied ? 'is-hidden' : ''} id={copied ? undefined : id}>
          {words.copy}
        </span>
        <span class={copied ? '' : 'is-hidden'} id={copied ? id : undefined}>
          {words.copied}
        </span>
      </span>
    </button>
  )
}
