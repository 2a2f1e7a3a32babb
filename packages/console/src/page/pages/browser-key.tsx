import { useEffect, useState } from 'preact/hooks'
import { panel } from '../api/http.ts'
import type { KeyState } from '../api/key-state.ts'
import { forgetKey, makeKey } from '../api/keys.ts'
import { pageAt, scope } from '../api/scope.ts'
import { forgetKeyState, keyState } from '../api/sign.ts'
import { openSession } from '../api/session.ts'
import { useAction } from '../api/use.ts'
import { toast } from '../parts/announce.tsx'
import { Commands } from '../parts/commands.tsx'
import { Button, Dialog, onSubmit, Text } from '../parts/form.tsx'
import { Card, Facts, Note, Page, ProblemNote, Skeleton } from '../parts/page.tsx'
import { Id, Time } from '../parts/values.tsx'
import { Status } from '../parts/status.tsx'

const LOOK_MS = 4000
const WORDS: Record<KeyState['state'], readonly [string, string]> = {
  none: ['neutral', 'No key here'],
  unknown: ['warn', 'Not requested'],
  pending: ['info', 'Waits for enrolment'],
  'read-only': ['warn', 'Enrolled, read-only'],
  revoked: ['neutral', 'Revoked'],
  ready: ['ok', 'Enrolled: this browser signs'],
}

/**
 * The key of this browser for the open sub-account: generated here, enrolled by the operator, and
 * used for every write.
 */
export function BrowserKeyPage() {
  const { workspace, subAccount, panelPath } = scope.value
  const [current, setCurrent] = useState<KeyState | null>(null)
  const [label, setLabel] = useState('')
  const [isForgetting, setForgetting] = useState(false)
  const { isBusy, problem, run } = useAction()
  const look = async () => {
    forgetKeyState()
    const state = await keyState()
    // The sub-account is created with its first API user.
    if (state.state === 'ready' && !scope.value.hasSubAccount) await openSession()
    setCurrent(state)
  }
  useEffect(() => void run(look), [])
  const isWaiting = current?.state === 'pending'
  useEffect(() => {
    if (!isWaiting) return
    const timer = setInterval(() => void look().catch(() => undefined), LOOK_MS)
    return () => clearInterval(timer)
  }, [isWaiting])
  const request = async (publicKey: string) => {
    await panel('POST', `${panelPath}/api-users`, {
      sub_account: subAccount,
      role: 'full',
      public_key_pem: publicKey,
      own: true,
      ...(label.trim() === '' ? {} : { label: label.trim() }),
    })
    await look()
  }
  const make = () =>
    run(async () => {
      const key = await makeKey(workspace, subAccount)
      forgetKeyState()
      try {
        await request(key.public_key_pem)
        toast('The key is made, and its enrolment is requested')
      } finally {
        await look()
      }
    })
  const key = current?.key ?? null
  return (
    <Page
      title="Browser key"
      lead={
        <>
          What this browser signs with for {workspace} / {subAccount}
        </>
      }
    >
      <Card
        title="This browser"
        actions={
          current === null ? undefined : (
            <Status
              of={current.state}
              tone={WORDS[current.state][0] as 'ok'}
              word={WORDS[current.state][1]}
            />
          )
        }
      >
        {current === null ? (
          problem === null ? (
            <Skeleton lines={3} />
          ) : null
        ) : key === null ? (
          <form class="stack narrow" onSubmit={onSubmit(make)}>
            <p>
              Make an RSA-4096 pair in this browser. Its private half cannot be taken out of it, not
              even by this page; the signer nodes’ operators enrol its public half, as they do for
              every API user.
            </p>
            <Text
              label="Name"
              value={label}
              onValue={setLabel}
              hint="Tells the operators whose key it is, for example: Mara’s laptop"
              maxLength={60}
            />
            <div>
              <Button kind="primary" type="submit" icon="key" isBusy={isBusy}>
                {isBusy ? 'Making the pair…' : 'Create a key in this browser'}
              </Button>
            </div>
          </form>
        ) : (
          <>
            <Facts
              of={[
                [
                  'Fingerprint of the public key (SHA-256)',
                  <Id key="fingerprint" value={key.fingerprint} isWhole label="fingerprint" />,
                ],
                current.user === null
                  ? null
                  : [
                      'API key',
                      <Id key="api" value={current.user.api_key} isWhole label="API key" />,
                    ],
                ['Made', <Time key="made" at={key.created_at} isLong />],
                current.user === null
                  ? null
                  : ['Last used', <Time key="used" at={current.user.last_used_at} isLong />],
              ]}
            />
            {current.state === 'unknown' ? (
              <div class="row">
                <Button
                  kind="primary"
                  isBusy={isBusy}
                  onClick={() => run(() => request(key.public_key_pem))}
                >
                  Request the enrolment
                </Button>
              </div>
            ) : null}
            {current.state === 'pending' ? (
              <Note tone="info">
                <p>
                  Waiting for the operators. This page sees it by itself once the key is enrolled.
                </p>
              </Note>
            ) : null}
            {current.state === 'ready' ? (
              <Note tone="ok">
                <p>
                  Everything that you send, cancel or change in {subAccount} is signed here, and
                  verified by the three signer nodes.
                </p>
              </Note>
            ) : null}
            {current.state === 'revoked' || current.state === 'read-only' ? (
              <Note tone="warn">
                <p>
                  It signs nothing that moves coins. Remove it from this browser to make another.
                </p>
              </Note>
            ) : null}
            <div class="row">
              <Button class="small" kind="danger" onClick={() => setForgetting(true)}>
                Remove it from this browser
              </Button>
            </div>
          </>
        )}
        <ProblemNote
          problem={problem}
          retry={current === null ? () => void run(look) : undefined}
        />
      </Card>
      {current?.state === 'pending' && current.user !== null ? (
        <Commands of={current.user} />
      ) : null}
      <Card title="About this key">
        <ul class="dots">
          <li>
            The key belongs to this browser and this address ({location.origin}). There is no copy:
            make a second one in another browser, or keep an API user elsewhere.
          </li>
          <li>
            Clearing the site’s data removes it. Safari does that by itself after seven days without
            a visit.
          </li>
          <li>
            A page that is tampered with cannot read it, and could use it while it is open. What is
            signed is bounded by what the nodes allow this API user.
          </li>
          <li>
            If you lose the machine, have the API user revoked at the platform and at every signer
            node.
          </li>
        </ul>
      </Card>
      {isForgetting && key !== null ? (
        <Dialog title="Remove the key from this browser" onClose={() => setForgetting(false)}>
          <p>
            It cannot be brought back. The API user stays until it is revoked
            {current?.user === null ? (
              ''
            ) : (
              <>
                {' '}
                under <a href={pageAt('/api-users')}>API users</a>
              </>
            )}
            .
          </p>
          <div class="row">
            <Button
              kind="danger"
              isBusy={isBusy}
              onClick={() =>
                run(async () => {
                  await forgetKey(key.fingerprint)
                  setForgetting(false)
                  await look()
                })
              }
            >
              Remove it
            </Button>
            <Button onClick={() => setForgetting(false)}>Keep it</Button>
          </div>
        </Dialog>
      ) : null}
    </Page>
  )
}
