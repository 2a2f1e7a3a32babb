import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

/** Button that opens a list of links and actions; arrow keys move through it, Escape closes it. */
export function Menu({
  label,
  button,
  children,
  isEnd = false,
}: {
  label: string
  button: ComponentChildren
  children: ComponentChildren
  isEnd?: boolean
}) {
  const [isOpen, setOpen] = useState(false)
  const root = useRef<HTMLDivElement>(null)
  const items = () =>
    Array.from(root.current?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? [])
  useEffect(() => {
    if (!isOpen) return
    items()[0]?.focus()
    const outside = (event: Event) => {
      if (event.target instanceof Node && root.current?.contains(event.target) !== true)
        setOpen(false)
    }
    document.addEventListener('pointerdown', outside)
    return () => document.removeEventListener('pointerdown', outside)
  }, [isOpen])
  const close = () => {
    setOpen(false)
    root.current?.querySelector<HTMLElement>('.menu-face')?.focus()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (!isOpen) return
    const all = items()
    const at = all.indexOf(document.activeElement as HTMLElement)
    if (event.key === 'Escape') close()
    else if (event.key === 'ArrowDown') all[(at + 1) % all.length]?.focus()
    else if (event.key === 'ArrowUp') all[(at - 1 + all.length) % all.length]?.focus()
    else if (event.key === 'Home') all[0]?.focus()
    else if (event.key === 'End') all.at(-1)?.focus()
    else if (event.key === 'Tab') return setOpen(false)
    else return
    event.preventDefault()
  }
  const choose = (event: Event) => {
    const item =
      event.target instanceof Element ? event.target.closest<HTMLElement>('[role=menuitem]') : null
    if (item !== null && item.dataset['stays'] === undefined) setOpen(false)
  }
  return (
    <div class={`menu${isEnd ? ' is-end' : ''}`} ref={root} onKeyDown={onKeyDown}>
      <button
        type="button"
        class="menu-face"
        aria-haspopup="menu"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        {button}
        <span class="sr-only"> {label}</span>
      </button>
      {isOpen ? (
        <div class="menu-list" role="menu" aria-label={label} onClick={choose}>
          {children}
        </div>
      ) : null}
    </div>
  )
}
