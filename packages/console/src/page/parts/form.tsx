import type { ButtonHTMLAttributes, ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { Icon, type IconName } from './icons.tsx'

/** A control with its name, a hint, and its error. */
export function Field({
  label,
  hint,
  error,
  children,
  isWide = false,
}: {
  label: string
  hint?: ComponentChildren
  error?: string | null | undefined
  isWide?: boolean
  children: (props: {
    id: string
    'aria-describedby'?: string
    'aria-invalid'?: 'true'
  }) => ComponentChildren
}) {
  const id = useId()
  const described = [hint === undefined ? null : `${id}-hint`, error ? `${id}-error` : null]
    .filter((each) => each !== null)
    .join(' ')
  return (
    <div class={`field${isWide ? ' is-wide' : ''}`}>
      <label for={id}>{label}</label>
      {children({
        id,
        ...(described === '' ? {} : { 'aria-describedby': described }),
        ...(error ? { 'aria-invalid': 'true' as const } : {}),
      })}
      {error ? (
        <p class="field-error" id={`${id}-error`}>
          {error}
        </p>
      ) : null}
      {hint === undefined ? null : (
        <p class="field-hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  )
}

/** Further attributes of an input. */
interface InputRest {
  type?: 'text' | 'email' | 'password' | 'url' | 'date' | 'datetime-local' | 'number'
  inputMode?: 'text' | 'numeric' | 'decimal'
  required?: boolean
  autoComplete?: string
  autoFocus?: boolean
  class?: string
  maxLength?: number
  minLength?: number
  readOnly?: boolean
  placeholder?: string
  disabled?: boolean
}

type Value = { value: string; onValue(value: string): void }

/** Input of one line of text. */
export function Text({
  label,
  hint,
  error,
  value,
  onValue,
  isWide,
  suffix,
  ...rest
}: Value & {
  label: string
  hint?: ComponentChildren
  error?: string | null | undefined
  isWide?: boolean
  suffix?: ComponentChildren
} & InputRest) {
  return (
    <Field label={label} hint={hint} error={error} {...(isWide === undefined ? {} : { isWide })}>
      {(props) => (
        <span class="input-wrap">
          <input
            class="input"
            autoComplete="off"
            spellcheck={false}
            {...(rest as { type?: 'text' })}
            {...props}
            value={value}
            onInput={(event) => onValue(event.currentTarget.value)}
          />
          {suffix === undefined ? null : <span class="input-suffix">{suffix}</span>}
        </span>
      )}
    </Field>
  )
}

/** Choice of one option. */
export function Choice({
  label,
  hint,
  error,
  value,
  onValue,
  options,
  isWide,
}: Value & {
  label: string
  hint?: ComponentChildren
  error?: string | null | undefined
  isWide?: boolean
  options: readonly (readonly [string, string])[]
}) {
  return (
    <Field label={label} hint={hint} error={error} {...(isWide === undefined ? {} : { isWide })}>
      {(props) => (
        <select
          class="input"
          {...props}
          value={value}
          onChange={(event) => onValue(event.currentTarget.value)}
        >
          {options.map(([name, word]) => (
            <option key={name} value={name} selected={name === value}>
              {word}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

/** Checkbox. */
export function Check({
  label,
  hint,
  value,
  onValue,
}: {
  label: ComponentChildren
  hint?: ComponentChildren
  value: boolean
  onValue(value: boolean): void
}) {
  const id = useId()
  return (
    <div class="check">
      <input
        type="checkbox"
        id={id}
        checked={value}
        onChange={(event) => onValue(event.currentTarget.checked)}
      />
      <div>
        <label for={id}>{label}</label>
        {hint === undefined ? null : <p class="field-hint">{hint}</p>}
      </div>
    </div>
  )
}

/** Button that runs an action and displays its progress. */
export function Button({
  children,
  icon,
  kind = 'secondary',
  isBusy = false,
  type = 'button',
  ...rest
}: {
  children: ComponentChildren
  icon?: IconName
  kind?: 'primary' | 'secondary' | 'quiet' | 'danger'
  isBusy?: boolean
  type?: 'button' | 'submit'
} & Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'type' | 'icon'>) {
  return (
    <button
      {...rest}
      type={type}
      class={`button ${kind} ${rest.class ?? ''}`}
      aria-busy={isBusy ? 'true' : undefined}
      disabled={rest.disabled === true || isBusy}
    >
      {icon === undefined ? null : <Icon name={icon} />}
      <span>{children}</span>
      {isBusy ? <span class="busy" aria-hidden="true" /> : null}
    </button>
  )
}

/** Link that looks like a button. */
export function LinkButton({
  href,
  children,
  icon,
  kind = 'secondary',
}: {
  href: string
  children: ComponentChildren
  icon?: IconName
  kind?: 'primary' | 'secondary' | 'quiet'
}) {
  return (
    <a class={`button ${kind}`} href={href}>
      {icon === undefined ? null : <Icon name={icon} />}
      <span>{children}</span>
    </a>
  )
}

/** Modal dialog: the focus stays in it, Escape closes it. */
export function Dialog({
  title,
  onClose,
  children,
  isWide = false,
}: {
  title: string
  onClose(): void
  children: ComponentChildren
  isWide?: boolean
}) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const element = dialog.current
    if (element !== null && !element.open) element.showModal()
  }, [])
  return (
    <dialog
      ref={dialog}
      class={`dialog${isWide ? ' is-wide' : ''}`}
      aria-labelledby={id}
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && dialog.current?.close()}
    >
      <div class="dialog-inner">
        <header class="dialog-head">
          <h2 id={id}>{title}</h2>
          <button
            type="button"
            class="icon-button"
            aria-label="Close"
            onClick={() => dialog.current?.close()}
          >
            <Icon name="close" />
          </button>
        </header>
        <div class="dialog-body">{children}</div>
      </div>
    </dialog>
  )
}

/** Returns a submit handler that runs `work` without a page reload. */
export const onSubmit = (work: () => unknown) => (event: Event) => {
  event.preventDefault()
  work()
}

/** Row of links with the current one marked. */
export function Tabs({
  label,
  of,
}: {
  label: string
  of: readonly { href: string; word: string; isOpen: boolean }[]
}) {
  return (
    <nav class="tabs" aria-label={label}>
      {of.map(({ href, word, isOpen }) => (
        <a key={href} href={href} aria-current={isOpen ? 'page' : undefined}>
          {word}
        </a>
      ))}
    </nav>
  )
}
