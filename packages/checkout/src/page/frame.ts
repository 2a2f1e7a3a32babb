import type { CheckoutState } from '../state.ts'

/** Message to the page that embeds the checkout in a frame. */
type Message = { event: 'ready' | 'close' } | { status: CheckoutState['inv_status'] }

export const isFramed = window.parent !== window

/**
 * Origin of the widget, according to the URL's fragment. It need not be authenticated: the browser
 * displays the page only in frames that `frame-ancestors` allows, and delivers messages only to
 * this origin.
 */
const parentOrigin = ((): string | null => {
  const reported = new URLSearchParams(location.hash.slice(1)).get('origin')
  try {
    return reported !== null &&
      /^https?:$/.test(new URL(reported).protocol) &&
      new URL(reported).origin === reported
      ? reported
      : null
  } catch {
    return null
  }
})()

/** Sends a message to the embedding page, if there is one and its origin is known. */
export function tellParent(invoiceId: string, message: Message): void {
  if (isFramed && parentOrigin !== null)
    window.parent.postMessage({ invoiceId, ...message }, parentOrigin)
}
