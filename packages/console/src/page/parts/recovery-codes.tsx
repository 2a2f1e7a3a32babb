import { useState } from 'preact/hooks'
import { Button, Check } from './form.tsx'
import { download } from './download.ts'
import { Copy } from './values.tsx'

/**
 * Ten recovery codes, displayed once; the person continues after confirming that they are stored.
 */
export function RecoveryCodes({ codes, onKept }: { codes: readonly string[]; onKept(): void }) {
  const [isKept, setKept] = useState(false)
  const text = `${codes.join('\n')}\n`
  return (
    <div class="stack">
      <ol class="recovery">
        {codes.map((code) => (
          <li key={code}>
            <code>{code}</code>
          </li>
        ))}
      </ol>
      <div class="row">
        <Copy text={text} label="recovery codes" word="Copy" />
        <Button
          class="small"
          icon="download"
          onClick={() => download('custody-recovery-codes.txt', text, 'text/plain')}
        >
          Save as a file
        </Button>
      </div>
      <Check
        label="I have kept them where I find them without this machine"
        value={isKept}
        onValue={setKept}
      />
      <Button kind="primary" disabled={!isKept} onClick={onKept}>
        Go on
      </Button>
    </div>
  )
}
