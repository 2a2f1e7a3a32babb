import { failedReads, isLocal, isOnline, repeatFailed, slowReads } from '../api/network.ts'
import { Button } from './form.tsx'
import { Note } from './page.tsx'

/**
 * Notice that the displayed data may be out of date, or that responses are slow, with a button that
 * reads again. A platform on this device needs no network, so there only failed reads are reported.
 */
export function NetworkNotice() {
  const stale = [...failedReads.value.values()].filter(({ readAt }) => readAt !== null)
  const oldest = new Date(Math.min(...stale.map(({ readAt }) => readAt ?? Infinity)))
  // A live region is announced only if it existed before its text.
  return (
    <div class="network-notice" role="status">
      {stale.length > 0 || (!isOnline.value && !isLocal) ? (
        <Note tone="warn">
          <p>
            {isOnline.value
              ? stale[0]?.problem.message
              : 'This device is offline. The page reloads its data when the device is online.'}
            {stale.length > 0 ? (
              <>
                {' '}
                What you see was read at {oldest.toLocaleTimeString('en-GB')} and may have changed.
              </>
            ) : null}
          </p>
          {stale.length > 0 ? (
            <Button class="small" onClick={() => repeatFailed()}>
              Try again
            </Button>
          ) : null}
        </Note>
      ) : slowReads.value.size > 0 ? (
        <Note tone="info">
          <p>The platform responds slowly. The page is still loading.</p>
        </Note>
      ) : null}
    </div>
  )
}
