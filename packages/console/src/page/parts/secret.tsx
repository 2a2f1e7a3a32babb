import { Button, Dialog } from './form.tsx'
import { Note } from './page.tsx'
import { Code } from './values.tsx'

/** A webhook's secret, which is never displayed again. */
export function Secret({ of, onClose }: { of: string; onClose(): void }) {
  return (
    <Dialog title="The secret of this webhook" onClose={onClose}>
      <Note tone="warn">
        <p>The secret is shown once. Store it only where your server reads it.</p>
      </Note>
      <Code text={of} label="Secret" />
      <p class="muted">
        Whoever has it can forge events to your server; <code>verifyWebhook</code> of the client
        checks each delivery with it.
      </p>
      <Button kind="primary" onClick={onClose}>
        I have kept it
      </Button>
    </Dialog>
  )
}
