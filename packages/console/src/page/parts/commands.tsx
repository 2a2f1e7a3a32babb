import type { Requested } from '../api/types.ts'
import { Button } from './form.tsx'
import { download } from './download.ts'
import { Card, Note } from './page.tsx'
import { Code, Id } from './show.tsx'

/** What the operators type, where: the platform enrols nobody. */
export function Commands({ requested, publicKeyPem }: { requested: Requested; publicKeyPem: string }) {
  return (
    <Card title="Enrolment" lead="By the hands of the nodes’ operators: the platform cannot enrol anybody.">
      <Note tone="warn">
        <p>
          Compare the fingerprint with the operator by voice, or side by side, before he presses Enter:{' '}
          <Id value={requested.key_fingerprint} isWhole label="fingerprint" />
        </p>
      </Note>
      {publicKeyPem === '' ? null : (
        <div>
          <Button class="small" icon="download" onClick={() => download('public-key.pem', publicKeyPem, 'application/x-pem-file')}>
            Public key as a file
          </Button>
        </div>
      )}
      {requested.commands.map(({ where, command }) => (
        <div key={where + command} class="stack-small">
          <p class="label">{where}</p>
          <Code text={command} label={`Command: ${where}`} />
        </div>
      ))}
    </Card>
  )
}
