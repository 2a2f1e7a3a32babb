import type { ComponentChildren } from 'preact'
import { useErrorBoundary } from 'preact/hooks'
import { Button } from './form.tsx'
import { Note, Page } from './page.tsx'

/** Shows an error if a page cannot be rendered, and keeps the navigation. */
export function ErrorBoundary({ children }: { children: ComponentChildren }) {
  const [error, again] = useErrorBoundary()
  if (error === undefined) return <>{children}</>
  return (
    <Page title="This page could not be shown">
      <Note tone="bad">
        <p>
          Something in it was not as expected. Nothing was changed by that; what was sent before has
          been sent.
        </p>
        <p class="note-fine">{error instanceof Error ? error.message : String(error)}</p>
        <Button class="small" onClick={again}>
          Try again
        </Button>
      </Note>
    </Page>
  )
}
