import type { ComponentChildren } from 'preact'
import type { Shape, Tone } from '../view.ts'
import { StatusIcon } from './icons.tsx'

/** Shape, word and colour of a status. The heading gets the focus when the screen changes. */
export function Status({
  shape,
  tone,
  title,
  detail,
  large = false,
  heading: Heading = 'h2',
  children,
}: {
  shape: Shape
  tone: Tone
  title: ComponentChildren
  detail: ComponentChildren
  large?: boolean
  heading?: 'h1' | 'h2'
  children?: ComponentChildren
}) {
  return (
    <div class={`status tone-${tone}${large ? ' is-large' : ''}`}>
      <span class="status-shape">{children ?? <StatusIcon shape={shape} />}</span>
      <div class="status-words">
        <Heading class="status-title" tabIndex={-1}>
          {title}
        </Heading>
        <p class="status-detail">{detail}</p>
      </div>
    </div>
  )
}
