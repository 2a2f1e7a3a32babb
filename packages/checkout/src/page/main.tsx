import { render } from 'preact'
import { App } from './app.tsx'
import { isFramed, tellParent } from './frame.ts'
import { preferredLanguage, speak } from './language.ts'

const invoiceId = /^\/checkout\/([^/]+)$/.exec(location.pathname)?.[1] ?? null
const isKnown = invoiceId !== null && document.body.dataset['missing'] === undefined
if (isKnown) {
  tellParent(invoiceId, { event: 'ready' })
  // In a frame the dialog around never sees the key.
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
