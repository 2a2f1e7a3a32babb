import type { CheckoutState } from '../state.ts'

/** Told to the page that shows the checkout in a frame. */
type Message = { event: 'ready' | 'close' } | { status: CheckoutState['inv_status'] }

export const isFramed = window.parent !== window

/**
 * The origin to which the widget belongs, as it says in the address's fragment. It is no proof of
 * anything: the browser shows the page in no frame that `frame-ancestors` does not name, and hands
 * a message to no other origin than this.
 */
const parentOrigin = ((): string | null => {
  const told = new URLSearchParams(location.hash.slice(1)).get('origin')
  try {
    return told !== null &&
      /^https?:$/.test(new URL(told).protocol) &&
      new URL(told).origin === told
      ? told
      : null
  } catch {
    return null
  }
})()

/** Tells the page around, where there is one and it has said who it is. */
export function tellParent(invoiceId: string, message: Message): void {
  if (isFramed && parentOrigin !== null)
    window.parent.postMessage({ invoiceId, ...message }, parentOrigin)
}
