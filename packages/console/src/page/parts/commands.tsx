import type { ApiUser } from '../api/types.ts'
import { Button } from './form.tsx'
import { download } from './download.ts'
import { Card, Note } from './page.tsx'
import { Code, Id } from './values.tsx'

/**
 * Commands that the operator runs, and on which machine, because the platform cannot enrol keys.
 */
export function Commands({ of }: { of: ApiUser }) {
  return (
    <Card
      title="Enrolment"
      lead="The operators of the signer nodes run these commands, because the platform cannot enrol keys."
    >
      <Note tone="warn">
        <p>
          Compare the fingerprint with the operator by voice, or side by side, before they press
          Enter: <Id value={of.key_fingerprint} isWhole label="fingerprint" />
        </p>
      </Note>
      <div>
        <Button
          class="small"
          icon="download"
          onClick={() => download('public-key.pem', of.public_key_pem, 'application/x-pem-file')}
        >
          Public key as a file
        </Button>
      </div>
      {of.commands.map(({ where, command }) => (
        <div key={where + command} class="stack-small">
          <p class="label">{where}</p>
          <Code text={command} label={`Command: ${where}`} />
        </div>
      ))}
    </Card>
  )
}
