import { commandOf, elsewhere } from '../api/sign.ts'
import { pageAt } from '../api/scope.ts'
import { Dialog } from './form.tsx'
import { Note } from './page.tsx'
import { Code } from './values.tsx'

/** Dialog with the request that this browser cannot sign. */
export function SignElsewhere() {
  const draft = elsewhere.value
  if (draft === null) return null
  return (
    <Dialog title="Sign on another machine" onClose={() => (elsewhere.value = null)} isWide>
      <Note tone="info">
        <p>
          {draft.reason} Nothing was sent: what moves coins is signed by an API key, and the panel
          has none of its own.
        </p>
      </Note>
      <p>
        Send this request with a key of this sub-account, or{' '}
        <a href={pageAt('/browser-key')} onClick={() => (elsewhere.value = null)}>
          make a key in this browser
        </a>
        .
      </p>
      <h3 class="small-title">On a machine that has the key</h3>
      <Code text={commandOf(draft)} label="Command" />
      <h3 class="small-title">The request itself</h3>
      <Code
        text={`${draft.method} ${draft.path}${draft.pretty === '' ? '' : `\n\n${draft.pretty}`}`}
        label="Request"
      />
      <p class="muted">
        Keep its <code>sequence_id</code>, where it has one: however often it is sent, it is carried
        out once.
      </p>
    </Dialog>
  )
}
