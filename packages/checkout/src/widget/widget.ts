import type { CheckoutState } from '../state.ts'
import { wordsOfPage } from './words.ts'

type Status = CheckoutState['inv_status']
interface Options {
  /** Called immediately after the page has loaded, and on every change. */
  onStatus?: (status: Status) => void
}

const STATUSES: readonly string[] = [
  'Pending',
  'Processing',
  'Paid',
  'Expired',
  'Invalid',
] satisfies Status[]
/** Time in milliseconds within which an allowed page sends a message after loading. */
const REFUSED_AFTER_LOAD_MS = 2500
const REFUSED_MS = 15_000

const script = (document.currentScript ??
  document.querySelector('script[src$="/widget.js"]')) as HTMLScriptElement | null
/** Origin of the platform, from which this file was loaded. */
const platform = new URL(script?.src ?? location.href).origin

const sheet = (text: string): CSSStyleSheet => {
  const made = new CSSStyleSheet()
  made.replaceSync(text)
  return made
}

// Style sheets created this way are allowed by a policy that forbids inline styles.
const dialogStyle = sheet(`
dialog{box-sizing:border-box;padding:0;border:0;background:#f6f7f9;color:#16191f;color-scheme:light dark;overflow:hidden;
inline-size:min(1040px,calc(100vw - 32px));block-size:min(820px,calc(100dvh - 32px));max-inline-size:none;max-block-size:none;
border-radius:18px;box-shadow:0 24px 80px rgb(0 0 0/35%)}
dialog::backdrop{background:rgb(16 20 24/60%)}
iframe{display:block;inline-size:100%;block-size:100%;border:0}
button{position:absolute;inset-block-start:10px;inset-inline-end:10px;display:grid;place-items:center;inline-size:44px;block-size:44px;
border:0;border-radius:10px;background:transparent;color:inherit;cursor:pointer}
button:hover{background:rgb(127 127 127/20%)}
button:focus-visible,a:focus-visible{outline:2px solid #1565d8;outline-offset:2px}
svg{inline-size:20px;block-size:20px;fill:none;stroke:currentColor;stroke-width:2;stroke-linecap:round}
.refused{position:absolute;inset:0;display:grid;place-content:center;gap:16px;padding:24px;background:inherit;text-align:center;
font:16px/24px system-ui,sans-serif}
.refused a{display:grid;place-items:center;min-block-size:48px;padding-inline:24px;border-radius:10px;background:#16191f;color:#fff;
font-weight:600;text-decoration:none}
[hidden]{display:none}
@media(width<640px){dialog{inline-size:100vw;block-size:100dvh;margin:0;border-radius:0}}
@media(prefers-color-scheme:dark){dialog{background:#101418;color:#e8ebef}.refused a{background:#e8ebef;color:#101418}
button:focus-visible,a:focus-visible{outline-color:#5b9dff}}`)

const buttonStyle = sheet(`
:host{display:inline-block}
[hidden]{display:none}
button:not([hidden]){min-block-size:48px;padding-inline:24px;border:0;border-radius:10px;background:#16191f;color:#fff;
font:600 16px/24px system-ui,sans-serif;cursor:pointer}
button:hover{background:#2b303a}
button:focus-visible{outline:2px solid #1565d8;outline-offset:2px}`)

function make<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Record<string, string>,
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  return made
}

function cross(): SVGElement {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg')
  svg.setAttribute('viewBox', '0 0 20 20')
  svg.setAttribute('aria-hidden', 'true')
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path')
  path.setAttribute('d', 'M4.5 4.5l11 11M15.5 4.5l-11 11')
  svg.append(path)
  return svg
}

/**
 * Prevents scrolling of the page below the dialog.
 * @returns a function that allows it again
 */
function holdScroll(): () => void {
  const { style, clientWidth } = document.documentElement
  const before = [style.overflow, style.paddingInlineEnd] as const
  style.paddingInlineEnd = `${innerWidth - clientWidth}px`
  style.overflow = 'hidden'
  return () => {
    ;[style.overflow, style.paddingInlineEnd] = before
  }
}

/** Returns the URL of an invoice's page. */
const pageOf = (invoiceId: string): string =>
  `${platform}/checkout/${encodeURIComponent(invoiceId)}`

/** The dialog and its elements. `host` contains all of them; `refused` is hidden at first. */
interface Dialog {
  host: HTMLElement
  dialog: HTMLDialogElement
  frame: HTMLIFrameElement
  /** Shown instead of the frame if this page may not embed the checkout. */
  refused: HTMLElement
  close: HTMLButtonElement
}

/** Creates the dialog of an invoice, and adds it to the page without opening it. */
function addDialog(invoiceId: string): Dialog {
  const { language, words } = wordsOfPage()
  const address = pageOf(invoiceId)
  const host = make('div', {})
  const root = host.attachShadow({ mode: 'open' })
  root.adoptedStyleSheets = [dialogStyle]
  const dialog = make('dialog', {
    'aria-label': words.title,
    dir: language === 'ar' ? 'rtl' : 'ltr',
  })
  const frame = make('iframe', {
    title: words.title,
    allow: 'clipboard-write',
    referrerpolicy: 'no-referrer',
    src: `${address}${language === null ? '' : `?lang=${language}`}#origin=${encodeURIComponent(location.origin)}`,
  })
  const refused = make('div', { class: 'refused', hidden: '' })
  const link = make('a', { href: address, target: '_blank', rel: 'noopener' })
  link.textContent = words.open
  refused.append(words.refused, link)
  const close = make('button', { type: 'button', 'aria-label': words.close })
  close.append(cross())
  dialog.append(frame, refused, close)
  root.append(dialog)
  document.body.append(host)
  return { host, dialog, frame, refused, close }
}

let open: { dialog: HTMLDialogElement; ended: Promise<Status | null>; end: () => void } | null =
  null

/**
 * Opens the checkout of an invoice in a dialog over the page. The browser keeps the focus in it,
 * and Esc closes it. Only one dialog can be open.
 * @returns the last received status, when the dialog is closed; null if there was none
 */
function pay(invoiceId: string, options: Options = {}): Promise<Status | null> {
  if (open?.dialog.open) return open.ended
  // The dialog may already be closed while its event is still pending.
  open?.end()
  const { host, dialog, frame, refused, close } = addDialog(invoiceId)
  const release = holdScroll()

  let last: Status | null = null
  const refuse = (): void => {
    refused.hidden = false
    frame.hidden = true
  }
  const timers = [setTimeout(refuse, REFUSED_MS)]
  frame.addEventListener('load', () => timers.push(setTimeout(refuse, REFUSED_AFTER_LOAD_MS)), {
    once: true,
  })
  const receive = (
    event: MessageEvent<{ invoiceId?: unknown; event?: unknown; status?: unknown } | null>,
  ): void => {
    // Any page can send messages: only those from the platform's origin and from this frame are
    // accepted.
    if (
      event.origin !== platform ||
      event.source !== frame.contentWindow ||
      event.data?.invoiceId !== invoiceId
    )
      return
    timers.forEach(clearTimeout)
    refused.hidden = true
    frame.hidden = false
    const { status } = event.data
    if (event.data.event === 'close') dialog.close()
    if (typeof status !== 'string' || !STATUSES.includes(status) || status === last) return
    last = status as Status
    options.onStatus?.(last)
  }
  addEventListener('message', receive)
  close.addEventListener('click', () => dialog.close())

  let resolve: (last: Status | null) => void
  const ended = new Promise<Status | null>((resolveEnded) => {
    resolve = resolveEnded
  })
  const end = (): void => {
    dialog.removeEventListener('close', end)
    removeEventListener('message', receive)
    timers.forEach(clearTimeout)
    release()
    host.remove()
    open = null
    resolve(last)
  }
  dialog.addEventListener('close', end)
  open = { dialog, ended, end }
  dialog.showModal()
  return ended
}

/**
 * `<custody-pay invoice="…">`: a button that opens the checkout. A link inside of it is used as the
 * button instead, and also works without this script. It dispatches the event `custody:status` with
 * the detail `{invoiceId, status}`.
 */
class CustodyPay extends HTMLElement {
  connectedCallback(): void {
    if (this.shadowRoot) return
    const root = this.attachShadow({ mode: 'open' })
    root.adoptedStyleSheets = [buttonStyle]
    const slot = make('slot', {})
    const button = make('button', { type: 'button', part: 'button' })
    // The parser may add the link later; plain text is the button's label.
    const arrange = (): void => {
      const isPlain = this.childElementCount === 0
      button.textContent = this.textContent?.trim() || wordsOfPage().words.pay
      button.hidden = !isPlain
      slot.hidden = isPlain
    }
    slot.addEventListener('slotchange', arrange)
    root.append(slot, button)
    arrange()
    this.addEventListener('click', (event) => {
      const invoiceId = this.getAttribute('invoice')
      // A click that opens another tab is left to the browser.
      if (
        invoiceId === null ||
        event.defaultPrevented ||
        event.ctrlKey ||
        event.metaKey ||
        event.shiftKey
      )
        return
      event.preventDefault()
      const dispatch = (name: string, status: Status | null) =>
        this.dispatchEvent(
          new CustomEvent(name, { bubbles: true, composed: true, detail: { invoiceId, status } }),
        )
      void pay(invoiceId, { onStatus: (status) => dispatch('custody:status', status) }).then(
        (status) => dispatch('custody:close', status),
      )
    })
  }
}

if (!customElements.get('custody-pay')) customElements.define('custody-pay', CustodyPay)
Object.assign(window, { Custody: { pay } })
