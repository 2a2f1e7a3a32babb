import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Problem } from '../api/http.ts'
import { Icon, Shape, type IconName } from './icons.tsx'

/**
 * A page's heading and content. It also sets the browser's title and announces the page to screen
 * readers.
 */
export function Page({
  title,
  lead,
  actions,
  back,
  children,
}: {
  title: string
  lead?: ComponentChildren
  actions?: ComponentChildren
  back?: { href: string; word: string }
  children?: ComponentChildren
}) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${title} · Control panel`
  }, [title])
  useEffect(() => heading.current?.focus({ preventScroll: true }), [])
  return (
    <div class="page">
      {back === undefined ? null : (
        <a class="back" href={back.href}>
          <Icon name="left" />
          {back.word}
        </a>
      )}
      <header class="page-head">
        <div class="page-words">
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {lead === undefined ? null : <p class="lead">{lead}</p>}
        </div>
        {actions === undefined ? null : <div class="page-actions">{actions}</div>}
      </header>
      {children}
    </div>
  )
}

/** Section of a page with its own heading. */
export function Card({
  title,
  lead,
  actions,
  children,
  isBare = false,
  id,
}: {
  title?: ComponentChildren
  lead?: ComponentChildren
  actions?: ComponentChildren
  children?: ComponentChildren
  isBare?: boolean
  id?: string
}) {
  return (
    <section class={`card${isBare ? ' is-bare' : ''}`} id={id}>
      {title === undefined ? null : (
        <header class="card-head">
          <div>
            <h2>{title}</h2>
            {lead === undefined ? null : <p class="muted card-lead">{lead}</p>}
          </div>
          {actions === undefined ? null : <div class="card-actions">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  )
}

/** An error with its code, and a link to its documentation if there is one. */
export function ProblemNote({ problem, retry }: { problem: Problem | null; retry?: () => void }) {
  if (problem === null) return null
  return (
    <div class="note tone-bad" role="alert">
      <Shape tone="bad" />
      <div>
        <p>{problem.message}</p>
        <p class="note-fine">
          {problem.link === null ? (
            <code>{problem.code}</code>
          ) : (
            <a href={problem.link} target="_blank" rel="noreferrer">
              {problem.code}
            </a>
          )}
          {problem.field === null ? null : (
            <>
              {' '}
              · field <code>{problem.field}</code>
            </>
          )}
          {problem.requestId === null ? null : (
            <>
              {' '}
              · request <code>{problem.requestId}</code>
            </>
          )}
        </p>
        {retry === undefined ? null : (
          <button type="button" class="button small" onClick={retry}>
            Try again
          </button>
        )}
      </div>
    </div>
  )
}

/** A note. */
export function Note({
  tone = 'info',
  children,
}: {
  tone?: 'info' | 'warn' | 'bad' | 'ok' | 'frozen' | 'neutral'
  children: ComponentChildren
}) {
  return (
    <div class={`note tone-${tone}`}>
      <Shape tone={tone} />
      <div>{children}</div>
    </div>
  )
}

/** Shown for an empty list, with what to do next. */
export function Empty({
  icon,
  title,
  children,
  action,
}: {
  icon: IconName
  title: string
  children?: ComponentChildren
  action?: ComponentChildren
}) {
  return (
    <div class="empty">
      <span class="empty-icon">
        <Icon name={icon} />
      </span>
      <p class="empty-title">{title}</p>
      {children === undefined ? null : <p class="muted">{children}</p>}
      {action === undefined ? null : <div class="empty-action">{action}</div>}
    </div>
  )
}

/**
 * Placeholder lines for text that is loading.
 * @param lines number of lines
 */
export function Skeleton({ lines = 3 }: { lines?: number }) {
  return (
    <div class="skeletons" aria-busy="true">
      <span class="sr-only">Loading</span>
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} class="skeleton" data-line={index % 4} />
      ))}
    </div>
  )
}

/** List of names and values. */
export function Facts({ of }: { of: readonly (readonly [string, ComponentChildren] | null)[] }) {
  return (
    <dl class="facts">
      {of.map((fact) =>
        fact === null ? null : (
          <div key={fact[0]}>
            <dt>{fact[0]}</dt>
            <dd>{fact[1]}</dd>
          </div>
        ),
      )}
    </dl>
  )
}

/** Main values of a page. */
export function Figures({
  of,
}: {
  of: readonly { name: string; value: ComponentChildren; note?: ComponentChildren; href?: string }[]
}) {
  return (
    <dl class="figures">
      {of.map(({ name, value, note, href }) => (
        <div key={name}>
          <dt>{href === undefined ? name : <a href={href}>{name}</a>}</dt>
          <dd class="figure">{value}</dd>
          {note === undefined ? null : <dd class="muted figure-note">{note}</dd>}
        </div>
      ))}
    </dl>
  )
}
