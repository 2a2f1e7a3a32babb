import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { liveState } from './api/live.ts'
import { may, ofSub, pageAt, scope, session } from './api/scope.ts'
import { signOut } from './api/session.ts'
import type { Waiting } from './api/types.ts'
import { useRead } from './api/use.ts'
import { toast } from './parts/announce.tsx'
import { Dialog } from './parts/form.tsx'
import { Icon, type IconName } from './parts/icons.tsx'
import { isTyping } from './parts/table.tsx'
import { Menu } from './parts/menu.tsx'
import { NetworkNotice } from './parts/network-notice.tsx'
import { go, place } from './router.ts'
import { nextTheme, theme } from './theme.ts'

interface Item {
  to: string
  word: string
  icon: IconName
  key?: string
  needs?: 'admin'
}
const GROUPS: readonly { name: string; items: readonly Item[] }[] = [
  {
    name: 'Funds',
    items: [
      { to: '', word: 'Overview', icon: 'overview', key: 'o' },
      { to: '/wallets', word: 'Wallets', icon: 'wallets', key: 'w' },
      { to: '/transactions', word: 'Transactions', icon: 'transactions', key: 't' },
      { to: '/approvals', word: 'Approvals', icon: 'check' },
      { to: '/receive', word: 'Receive', icon: 'receive', key: 'r' },
      { to: '/send', word: 'Send', icon: 'send', key: 's' },
      { to: '/batch', word: 'Batch send', icon: 'batch' },
    ],
  },
  {
    name: 'Products',
    items: [
      { to: '/invoices', word: 'Invoices', icon: 'invoices', key: 'i' },
      { to: '/forwarding', word: 'Auto-forwarding', icon: 'forward' },
      { to: '/staking', word: 'Staking', icon: 'staking' },
      { to: '/exchanges', word: 'Exchanges', icon: 'exchange', key: 'e' },
      { to: '/orders', word: 'Orders', icon: 'transactions' },
    ],
  },
  {
    name: 'Fees and safety',
    items: [
      { to: '/tanks', word: 'Gas tanks', icon: 'tanks' },
      { to: '/prepaid', word: 'Prepaid account', icon: 'prepaid' },
      { to: '/aml', word: 'Screening', icon: 'aml' },
      { to: '/policy', word: 'Policy', icon: 'key' },
      { to: '/prices', word: 'Prices', icon: 'prices' },
    ],
  },
  {
    name: 'Access',
    items: [
      { to: '/browser-key', word: 'Browser key', icon: 'key', key: 'k' },
      { to: '/api-users', word: 'API users', icon: 'api', key: 'u' },
      { to: '/webhooks', word: 'Webhooks', icon: 'webhooks' },
      { to: '/people', word: 'People', icon: 'people', key: 'p' },
      { to: '/audit-log', word: 'Audit log', icon: 'audit', needs: 'admin' },
    ],
  },
  {
    name: 'System',
    items: [
      { to: '/health', word: 'Health', icon: 'health', key: 'h' },
      { to: '/settings', word: 'Settings', icon: 'settings' },
      { to: '/check', word: 'Check a request', icon: 'check' },
    ],
  },
]

const isAt = (to: string): boolean => {
  const { path } = place.value
  const full = pageAt(to)
  return path === full || (to !== '' && path.startsWith(`${full}/`))
}

/**
 * Number of open approvals of the sub-account, which events update. It is also read when another page
 * is opened, because the approvals of a policy change have no event.
 */
function WaitingCount() {
  const { hasSubAccount } = scope.value
  const { path } = place.value
  const { data, reload } = useRead<Waiting>(
    hasSubAccount ? ofSub('/waiting') : null,
    /^(?:approval|policy)\./,
  )
  const isFirst = useRef(true)
  useEffect(() => {
    if (!isFirst.current) reload()
    isFirst.current = false
  }, [path])
  const count = data === undefined ? 0 : data.transfers + data.rules + data.changes
  return count === 0 ? null : (
    <span class="nav-count">
      {count > COUNT_MAX ? `${COUNT_MAX}+` : count}
      <span class="sr-only"> open</span>
    </span>
  )
}
/** Largest number that the navigation shows. */
const COUNT_MAX = 99

function Navigation() {
  return (
    <nav class="nav" aria-label="Main">
      {GROUPS.map(({ name, items }) => (
        <div key={name} class="nav-group">
          <h2 class="nav-name">{name}</h2>
          <ul>
            {items
              .filter(({ needs }) => needs === undefined || may(needs))
              .map(({ to, word, icon }) => (
                <li key={to}>
                  <a href={pageAt(to)} aria-current={isAt(to) ? 'page' : undefined}>
                    <Icon name={icon} />
                    <span>{word}</span>
                    {to === '/approvals' ? <WaitingCount /> : null}
                  </a>
                </li>
              ))}
          </ul>
        </div>
      ))}
    </nav>
  )
}

const initials = (name: string) =>
  name
    .split(/\s+/)
    .filter((word) => word !== '')
    .slice(0, 2)
    .map((word) => word.slice(0, 1).toUpperCase())
    .join('') || '?'

function Switcher() {
  const { workspace, subAccount } = scope.value
  const workspaces = session.value?.workspaces ?? []
  // Opens the same kind of page in the other sub-account, without the id of a single object.
  const [, section = ''] = /^\/console\/w\/[^/]+\/[^/]+(\/[^/]+)?/.exec(place.value.path) ?? []
  return (
    <Menu
      label="Switch workspace and sub-account"
      button={
        <span class="switcher">
          <span class="switcher-mark" aria-hidden="true">
            {initials(workspace)}
          </span>
          <span class="switcher-words">
            <span class="switcher-name">{workspace === '' ? 'No workspace' : workspace}</span>
            <span class="muted">{subAccount}</span>
          </span>
          <Icon name="down" />
        </span>
      }
    >
      {workspaces.flatMap(({ name, role, sub_accounts }) => [
        <p key={name} class="menu-title">
          {name} <span class="muted">{role}</span>
        </p>,
        ...sub_accounts.map((sub) => (
          <a
            key={`${name}/${sub}`}
            role="menuitem"
            href={`/console/w/${encodeURIComponent(name)}/${encodeURIComponent(sub)}${section}`}
            aria-current={name === workspace && sub === subAccount ? 'true' : undefined}
          >
            <span>{sub}</span>
            {name === workspace && sub === subAccount ? <Icon name="check" /> : null}
          </a>
        )),
      ])}
      {workspaces.length === 0 ? (
        <p class="menu-title">You are a member of no workspace yet</p>
      ) : null}
    </Menu>
  )
}

const THEME_WORDS = { system: 'Theme: as the system', light: 'Theme: light', dark: 'Theme: dark' }
const THEME_ICONS = { system: 'system', light: 'sun', dark: 'moon' } as const

const leave = () =>
  void signOut().catch(({ message }: Error) => toast(`Still signed in. ${message}`, 'bad'))

function PersonMenu() {
  const person = session.value?.person
  return (
    <Menu
      label="Your account"
      isEnd
      button={<span class="avatar">{initials(person?.name ?? person?.email ?? '')}</span>}
    >
      <p class="menu-title">
        {person?.name}
        <span class="muted menu-mail">{person?.email}</span>
      </p>
      <a role="menuitem" href="/console/account">
        <Icon name="person" />
        <span>Account and sign-in</span>
      </a>
      <button type="button" role="menuitem" data-stays onClick={() => (theme.value = nextTheme())}>
        <Icon name={THEME_ICONS[theme.value]} />
        <span>{THEME_WORDS[theme.value]}</span>
      </button>
      <button type="button" role="menuitem" onClick={leave}>
        <Icon name="out" />
        <span>Sign out</span>
      </button>
    </Menu>
  )
}

function Live() {
  const word = { live: 'Live', connecting: 'Reconnecting', off: 'Not live' }[liveState.value]
  return (
    <span
      class={`live is-${liveState.value}`}
      title={liveState.value === 'live' ? 'Events come as they happen' : 'Data may be out of date'}
    >
      <span class="live-dot" aria-hidden="true" />
      <span>{word}</span>
    </span>
  )
}

const HELP: readonly (readonly [string, string])[] = [
  ['/', 'Search, or the first filter'],
  ['j k', 'Next and previous row'],
  ['Enter', 'Open the row'],
  ['?', 'This help'],
  ['Esc', 'Close'],
]

/** Keys that work on every page: `/`, `?`, and `g` followed by a letter. */
function useKeys(help: () => void): void {
  useEffect(() => {
    let isGoing = false
    const press = (event: KeyboardEvent) => {
      if (isTyping(event)) return
      const wasGoing = isGoing
      isGoing = false
      const target = wasGoing
        ? GROUPS.flatMap(({ items }) => items).find(({ key }) => key === event.key)
        : undefined
      if (target !== undefined) go(pageAt(target.to))
      else if (event.key === 'g') isGoing = true
      else if (event.key === '?') help()
      else if (event.key === '/') {
        const first =
          document.querySelector<HTMLElement>('[data-search]') ??
          document.querySelector<HTMLElement>('main input, main select')
        if (first === null) return
        event.preventDefault()
        first.focus()
      }
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
}

/** Navigation around a page. */
export function Shell({ children }: { children: ComponentChildren }) {
  const [isOpen, setOpen] = useState(false)
  const [isHelp, setHelp] = useState(false)
  const { path } = place.value
  useEffect(() => setOpen(false), [path])
  useKeys(() => setHelp(true))
  const network = session.value?.network
  return (
    <div class={`shell${isOpen ? ' is-open' : ''}`}>
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <header class="top">
        <button
          type="button"
          class="icon-button top-menu"
          aria-label={isOpen ? 'Close the navigation' : 'Open the navigation'}
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          <Icon name={isOpen ? 'close' : 'menu'} />
        </button>
        <Switcher />
        <span class="top-space" />
        {network === 'mainnet' ? null : (
          <span class="chip" title="Coins here are worth nothing">
            {network === 'local' ? 'Local network' : 'Rehearsal'}
          </span>
        )}
        <Live />
        <button
          type="button"
          class="icon-button top-help"
          aria-label="Keyboard help"
          onClick={() => setHelp(true)}
        >
          <Icon name="help" />
        </button>
        <PersonMenu />
      </header>
      <aside class="side" aria-label="Navigation">
        <Navigation />
        <p class="side-foot muted">custody {session.value?.version}</p>
      </aside>
      <button
        type="button"
        class="scrim"
        aria-label="Close the navigation"
        tabIndex={-1}
        onClick={() => setOpen(false)}
      />
      <main id="main" class="main" tabIndex={-1}>
        <NetworkNotice />
        {children}
      </main>
      {isHelp ? (
        <Dialog title="Keyboard" onClose={() => setHelp(false)}>
          <dl class="keys">
            {HELP.map(([keys, word]) => (
              <div key={keys}>
                <dt>
                  {keys.split(' ').map((each) => (
                    <kbd key={each}>{each}</kbd>
                  ))}
                </dt>
                <dd>{word}</dd>
              </div>
            ))}
            {GROUPS.flatMap(({ items }) => items).flatMap(({ key, word }) =>
              key === undefined
                ? []
                : [
                    <div key={key}>
                      <dt>
                        <kbd>g</kbd> <kbd>{key}</kbd>
                      </dt>
                      <dd>{word}</dd>
                    </div>,
                  ],
            )}
          </dl>
          {may('operator') ? null : (
            <p class="muted">You read here: your role in this workspace is {scope.value.role}.</p>
          )}
        </Dialog>
      ) : null}
    </div>
  )
}
