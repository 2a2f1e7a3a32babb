import type { ComponentChildren } from 'preact'
import type { Shape } from '../view.ts'

const Icon = ({ children, name }: { children: ComponentChildren; name: string }) => (
  <svg class={`icon icon-${name}`} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    {children}
  </svg>
)

/** Each status has its own outline, so that it is recognizable without colour. */
const SHAPES: Record<Shape, ComponentChildren> = {
  waiting: (
    <>
      <circle class="line dashed" cx="12" cy="12" r="9" />
      <circle class="fill" cx="12" cy="12" r="3" />
    </>
  ),
  half: (
    <>
      <circle class="line" cx="12" cy="12" r="9" />
      <path class="fill" d="M12 3a9 9 0 0 1 0 18z" />
    </>
  ),
  progress: (
    <>
      <circle class="line faint" cx="12" cy="12" r="9" />
      <path class="line" d="M12 3a9 9 0 1 1-7.8 4.5" />
    </>
  ),
  check: (
    <>
      <circle class="fill" cx="12" cy="12" r="10" />
      <path class="cut" d="M7.5 12.4l3 3 6-6.4" />
    </>
  ),
  plus: (
    <>
      <circle class="fill" cx="12" cy="12" r="10" />
      <path class="cut" d="M12 7.5v9M7.5 12h9" />
    </>
  ),
  clock: (
    <>
      <circle class="line" cx="12" cy="12" r="9" />
      <path class="line" d="M12 7v5.4l3.4 2" />
    </>
  ),
  hourglass: (
    <path
      class="line"
      d="M6.5 3.5h11M6.5 20.5h11M8 3.5c0 4.5 4 6 4 8.5s-4 4-4 8.5M16 3.5c0 4.5-4 6-4 8.5s4 4 4 8.5"
    />
  ),
  octagon: (
    <>
      <path class="fill" d="M8 2h8l6 6v8l-6 6H8l-6-6V8z" />
      <path class="cut" d="M8.8 8.8l6.4 6.4M15.2 8.8l-6.4 6.4" />
    </>
  ),
  slash: (
    <>
      <circle class="line" cx="12" cy="12" r="9" />
      <path class="line" d="M5.8 18.2L18.2 5.8" />
    </>
  ),
  shield: (
    <>
      <path class="line" d="M12 2.8l7.5 2.7v6c0 4.6-3 8-7.5 9.7-4.5-1.7-7.5-5.1-7.5-9.7v-6z" />
      <path class="line" d="M9 12l2.2 2.2 4-4.3" />
    </>
  ),
}

export const StatusIcon = ({ shape }: { shape: Shape }) => <Icon name={shape}>{SHAPES[shape]}</Icon>

export const ClockIcon = () => <Icon name="small">{SHAPES.clock}</Icon>
export const WalletIcon = () => (
  <Icon name="small">
    <path
      class="line"
      d="M18 7.5V5a1.5 1.5 0 0 0-1.5-1.5h-11a2 2 0 0 0 0 4H19A1.5 1.5 0 0 1 20.5 9v10a1.5 1.5 0 0 1-1.5 1.5H6"
    />
    <path class="line" d="M6 20.5A2.5 2.5 0 0 1 3.5 18V5.5" />
    <circle class="fill" cx="16.5" cy="14" r="1.3" />
  </Icon>
)
export const ChevronIcon = () => (
  <Icon name="turn">
    <path class="line" d="M9.5 5.5l6.5 6.5-6.5 6.5" />
  </Icon>
)
export const WarningIcon = () => (
  <Icon name="small">
    <path class="line" d="M12 3.5l9 16H3z" />
    <path class="line" d="M12 10v4.5" />
    <circle class="fill" cx="12" cy="17" r="1" />
  </Icon>
)
export const OutIcon = () => (
  <Icon name="turn">
    <path class="line" d="M9 6H6v12h12v-3M13 5h6v6M19 5l-8 8" />
  </Icon>
)
export const PrintIcon = () => (
  <Icon name="small">
    <path class="line" d="M7 8V3.5h10V8M7 14h10v6.5H7z" />
    <path
      class="line"
      d="M7 17H4.5a1 1 0 0 1-1-1v-6A1.5 1.5 0 0 1 5 8.5h14a1.5 1.5 0 0 1 1.5 1.5v6a1 1 0 0 1-1 1H17"
    />
  </Icon>
)
export const GlobeIcon = () => (
  <Icon name="small">
    <circle class="line" cx="12" cy="12" r="9" />
    <path class="line" d="M3 12h18M12 3c3 2.7 4 5.7 4 9s-1 6.3-4 9c-3-2.7-4-5.7-4-9s1-6.3 4-9z" />
  </Icon>
)
