import { useState } from 'preact/hooks'
import type { ChallengeView, DocumentView } from '../views.ts'
import { call } from './api.ts'
import { Failure, Grouped, KeyChoice, Note, useWork } from './parts.tsx'
import { SigningNote, useSigning } from './signing.tsx'

interface Opened {
  name: string
  text: string
  view: DocumentView
  isSigned: boolean
}

/** Lets the browser save a text as a file. */
function save(name: string, text: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text], { type: 'application/json' }))
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}

export function PolicyDocument({ person }: { person: string }) {
  const [opened, setOpened] = useState<Opened | null>(null)
  const [isKept, setKept] = useState(false)
  const work = useWork()
  const signing = useSigning()
  const open = (file: File | undefined) =>
    work.start(async () => {
      if (file === undefined) return
      setOpened(null)
      setKept(false)
      const text = await file.text()
      const view = await call<DocumentView>('document', { text })
      setOpened({ name: file.name, text, view, isSigned: false })
    })
  const sign = (key: string) =>
    work.start(async () => {
      if (opened === null) return
      const challenge = await call<ChallengeView>('possession', { text: opened.text, key })
      const assertion = await signing.sign(challenge)
      const { text, document: view } = await call<{ text: string; document: DocumentView }>(
        'signed',
        { attempt: challenge.attempt, ...assertion },
      )
      setOpened({ ...opened, text, view, isSigned: true })
    })
  const keep = () =>
    work.start(async () => {
      await call('keep', { text: opened?.text })
      setKept(true)
    })
  return (
    <>
      <h1>Sign a document</h1>
      <p>
        Choose a policy file. Compare its hash and the fingerprints with the other people before you
        sign.
      </p>
      <label
        class="drop field"
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          event.preventDefault()
          open(event.dataTransfer?.files[0])
        }}
      >
        <span>Policy file</span>
        <input
          type="file"
          accept=".json,.policy,application/json"
          onChange={(event) => open(event.currentTarget.files?.[0])}
        />
      </label>
      <Failure problem={work.problem} />
      <SigningNote sentences={signing.sentences} />
      {opened === null ? null : (
        <>
          <Document view={opened.view} />
          {opened.view.refusal === null ? (
            <Actions
              person={person}
              opened={opened}
              isKept={isKept}
              isBusy={work.isBusy}
              on={{ sign, keep }}
            />
          ) : null}
        </>
      )}
    </>
  )
}

function Actions({
  person,
  opened,
  isKept,
  isBusy,
  on,
}: {
  person: string
  opened: Opened
  isKept: boolean
  isBusy: boolean
  on: { sign: (key: string) => void; keep: () => void }
}) {
  const { keys } = opened.view
  const [key, setKey] = useState(keys[0]?.id ?? '')
  return (
    <section class="decide" aria-label="Signature">
      {keys.length === 0 ? (
        <Note tone="warn">The document has no passkey of {person} for this page.</Note>
      ) : (
        <KeyChoice keys={keys} value={key} onChange={setKey} />
      )}
      {opened.isSigned ? (
        <Note tone="ok">
          The proof that you hold your key was added. Save the file, and pass it on.
        </Note>
      ) : null}
      <div class="buttons">
        {keys.length === 0 ? null : (
          <button
            type="button"
            class={opened.isSigned ? 'button' : 'button primary'}
            disabled={isBusy}
            onClick={() => on.sign(key)}
          >
            Sign with my passkey
          </button>
        )}
        {opened.isSigned ? (
          <button
            type="button"
            class="button primary"
            onClick={() => save(opened.name, opened.text)}
          >
            Save the file
          </button>
        ) : null}
        <button type="button" class="button" disabled={isBusy} onClick={on.keep}>
          Keep it for approvals
        </button>
        <span role="status">{isKept ? 'Approvals under this document can be verified.' : ''}</span>
      </div>
    </section>
  )
}

function Document({ view }: { view: DocumentView }) {
  return (
    <>
      {view.refusal === null ? null : (
        <Note tone="bad">
          <p>This document must not be signed.</p>
          <p>Reason: {view.refusal}</p>
        </Note>
      )}
      <section class="card" aria-label="Document">
        <h2>
          Policy document {view.number} of {view.workspace}, {view.mode}
        </h2>
        <p>
          Hash: <Grouped text={view.hash} />
        </p>
        {view.findings.map(({ severity, path, message }) => (
          <Note key={path + message} tone={severity === 'error' ? 'bad' : 'warn'}>
            {severity}: {path === '' ? '' : `${path}: `}
            {message}
          </Note>
        ))}
      </section>
      <section class="card" aria-label="Rules">
        <h2>Rules</h2>
        {view.rules.length === 0 ? <p>The document has no rules: every act is denied.</p> : null}
        <ol class="rules">
          {view.rules.map((rule) => (
            <li key={rule}>{rule}</li>
          ))}
        </ol>
        {view.governance.map((line) => (
          <p key={line}>{line}</p>
        ))}
      </section>
      <People view={view} />
    </>
  )
}

const People = ({ view }: { view: DocumentView }) => (
  <section class="card" aria-label="People">
    <h2>People and keys</h2>
    {view.groups.map(({ name, members }) => (
      <p key={name}>
        Group {name}: {members.join(', ')}
      </p>
    ))}
    {view.people.map(({ id, name, keys }) => (
      <div key={id} class="person">
        <h3>
          {id} ({name})
        </h3>
        {keys.length === 0 ? <p class="muted">No key</p> : null}
        {keys.map((key) => (
          <div key={key.id}>
            <p>
              {key.kind === 'passkey' ? 'Passkey' : 'Key'} {key.id}, {key.alg}.{' '}
              {key.proof === null ? 'The proof is valid.' : `Proof: ${key.proof}.`}
            </p>
            <p>
              SHA-256 <Grouped text={key.fingerprint} />
            </p>
          </div>
        ))}
      </div>
    ))}
  </section>
)
