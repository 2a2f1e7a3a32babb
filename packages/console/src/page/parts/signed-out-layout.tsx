import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

/** Layout of the pages for people who are not signed in. */
export function SignedOutLayout({
  title,
  lead,
  children,
}: {
  title: string
  lead?: ComponentChildren
  children: ComponentChildren
}) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${title} · Control panel`
    heading.current?.focus()
  }, [title])
  return (
    <main class="door">
      <div class="door-card">
        <svg class="door-mark" viewBox="0 0 32 32" aria-hidden="true">
          <path d="M16 4 26 8.500v7.700c0 5.800-4 9.900-10 11.600-6-1.700-10-5.800-10-11.600V8.500z" />
          <path d="m11.500 15.800 3.200 3.300 6-6.500" />
        </svg>
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {lead === undefined ? null : <p class="muted door-lead">{lead}</p>}
        {children}
      </div>
      <p class="door-foot muted">
        The panel reads and prepares. What moves coins is signed by a key of your own, and verified
        by three signer nodes.
      </p>
    </main>
  )
}
