import { render } from 'preact'
import { App } from './app.tsx'
import { isFramed, tellParent } from './frame.ts'
import { preferredLanguage, speak } from './language.ts'

const invoiceId = /^\/checkout\/([^/]+)$/.exec(location.pathname)?.[1] ?? null
const isKnown = invoiceId !== null && document.body.dataset['missing'] === undefined
if (isKnown) {
  tellParent(invoiceId, { event: 'ready' })
  // The dialog around the frame does not receive key events of the frame.
  addEventListener('keydown', (event) => {
    if (event.key === 'Escape') tellParent(invoiceId, { event: 'close' })
  })
}

if (isFramed) document.documentElement.classList.add('is-framed')
const first = await speak(preferredLanguage())
render(
  <App path={isKnown ? `/checkout/${invoiceId}` : null} first={first} />,
  document.getElementById('page') as HTMLElement,
)
