import type { ComponentChildren } from 'preact'
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { CheckoutState } from '../state.ts'
import { follow, type FollowedInvoice } from './follow.ts'
import { tellParent } from './frame.ts'
import {
  LANGUAGES,
  rememberLanguage,
  speak,
  SpeechContext,
  useSpeech,
  type Language,
  type Speech,
} from './language.ts'
import { Announcer, announce } from './parts/announcer.tsx'
import { GlobeIcon } from './parts/icons.tsx'
import { Status } from './parts/status.tsx'
import { Choose } from './screens/choose.tsx'
import { Pay } from './screens/pay.tsx'
import { Progress } from './screens/progress.tsx'
import { Result } from './screens/result.tsx'
import { Skeleton, SummarySkeleton } from './screens/skeleton.tsx'
import { Facts, Summary } from './screens/summary.tsx'
import { viewNameOf, viewOf, type Screen } from './view.ts'

function LanguageMenu({ onLanguage }: { onLanguage: (language: Language) => void }) {
  const { language, words } = useSpeech()
  return (
    <label class="language">
      <span class="sr-only">{words.language}</span>
      <GlobeIcon />
      <select
        value={language}
        onChange={(event) => onLanguage(event.currentTarget.value as Language)}
      >
        {Object.entries(LANGUAGES).map(([code, name]) => (
          <option key={code} value={code} lang={code}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}

function Frame({
  merchant,
  onLanguage,
  children,
}: {
  merchant: string | null
  onLanguage: (language: Language) => void
  children: ComponentChildren
}) {
  return (
    <div class="shell">
      <header class="top">
        <p class="merchant">
          {merchant === null ? (
            <span class="skeleton skeleton-merchant" />
          ) : (
            <>
              <span class="monogram" aria-hidden="true">
                {[...merchant][0]?.toUpperCase()}
              </span>
              <bdi>{merchant}</bdi>
            </>
          )}
        </p>
        <LanguageMenu onLanguage={onLanguage} />
      </header>
      {children}
    </div>
  )
}

/** One short message instead of an invoice. */
function Problem({
  title,
  detail,
  action,
}: {
  title: string
  detail: string
  action?: ComponentChildren
}) {
  return (
    <main class="card is-single">
      <div class="panel">
        <div class="screen is-centred">
          <Status shape="octagon" tone="neutral" title={title} detail={detail} heading="h1" large />
          {action}
        </div>
      </div>
    </main>
  )
}

interface ReceivedState {
  state: CheckoutState
  atMs: number
}

/** Updates title, announcement and focus when the status changes. */
function useStatus(received: ReceivedState | null, changing: boolean, speech: Speech): void {
  const state = received?.state ?? null
  const name = state ? viewNameOf(state, changing) : null
  const screen = name ? viewOf(name).screen : null
  const before = useRef<{ name: string | null; screen: Screen | null }>({
    name: null,
    screen: null,
  })
  useLayoutEffect(() => {
    if (!state || !name || !screen) return
    const { words, translate } = speech
    const { merchant } = state
    document.title =
      state.inv_status === 'Paid'
        ? `${words.paidTitle} · ${merchant}`
        : translate(words.payTo, { merchant })
    const last = before.current
    before.current = { name, screen }
    if (last.name === null || last.name === name) return
    announce(words[viewOf(name).title])
    if (last.screen === screen) return
    scrollTo({ top: 0 })
    // The element that had the focus was removed with its screen.
    if (document.activeElement === document.body)
      document.querySelector<HTMLElement>('.status-title')?.focus({ preventScroll: true })
  }, [state, name, screen, speech])
  useEffect(() => {
    if (state) tellParent(state.inv_id, { status: state.inv_status })
  }, [state?.inv_id, state?.inv_status])
}

/**
 * The page of one invoice.
 * @param path of the invoice, `/checkout/{inv_id}`; null if the server does not know it
 */
export function App({ path, first }: { path: string | null; first: Speech }) {
  const [speech, setSpeech] = useState(first)
  const [received, setHeard] = useState<ReceivedState | null>(null)
  const [isMissing, setMissing] = useState(path === null)
  const [isThere, setThere] = useState(true)
  const [changing, setChanging] = useState(false)
  const followed = useRef<FollowedInvoice | null>(null)
  /** The invoice was displayed as unpaid. */
  const wasOpen = useRef(false)
  useEffect(() => {
    if (path === null) return
    followed.current = follow(path, {
      state(state) {
        if (state.inv_status !== 'Paid') wasOpen.current = true
        setHeard({ state, atMs: performance.now() })
      },
      missing: () => setMissing(true),
      connection: setThere,
    })
  }, [path])
  useStatus(received, changing, speech)
  const onLanguage = (language: Language) => {
    rememberLanguage(language)
    void speak(language).then(setSpeech)
  }
  const choose = async (asset: string): Promise<boolean> => {
    const isTaken = await (followed.current as FollowedInvoice).choose(asset)
    if (isTaken) setChanging(false)
    return isTaken
  }
  const refresh = useCallback(() => followed.current?.refresh(), [])
  const { words } = speech
  const content = (() => {
    if (isMissing) return <Problem title={words.missing} detail={words.missingDetail} />
    if (!received) {
      if (!isThere) {
        const again = (
          <button type="button" class="button primary" onClick={refresh}>
            {words.tryAgain}
          </button>
        )
        return <Problem title={words.loadFailed} detail={words.loadFailedDetail} action={again} />
      }
      return (
        <main class="card" aria-busy="true">
          <div class="summary">
            <SummarySkeleton />
          </div>
          <div class="panel">
            <Skeleton />
          </div>
        </main>
      )
    }
    const { state, atMs } = received
    const canChange = state.payments.length === 0 && state.assets.length > 1
    const { screen } = viewOf(viewNameOf(state, changing && canChange))
    return (
      <main class="card" data-screen={screen}>
        <Summary state={state} heardMs={atMs} onEnd={refresh} />
        <div class="panel" key={screen}>
          {screen === 'choose' ? <Choose state={state} onChoose={choose} /> : null}
          {screen === 'pay' && state.selected ? (
            <Pay
              state={state}
              selected={state.selected}
              onChange={canChange ? () => setChanging(true) : null}
              key={state.selected.asset}
            />
          ) : null}
          {screen === 'progress' ? <Progress state={state} /> : null}
          {screen === 'result' ? <Result state={state} isFresh={wasOpen.current} /> : null}
        </div>
        {/* The key creates a new element after each payment. The result screen has its own list. */}
        {screen === 'result' ? null : (
          <Facts state={state} heardMs={atMs} key={`${screen} ${state.payments.length}`} />
        )}
      </main>
    )
  })()
  return (
    <SpeechContext.Provider value={speech}>
      <Frame merchant={isMissing ? '' : (received?.state.merchant ?? null)} onLanguage={onLanguage}>
        {content}
      </Frame>
      <p class={isThere || !received ? 'connection' : 'connection is-shown'} role="status">
        {isThere || !received ? null : words.reconnecting}
      </p>
      <Announcer />
    </SpeechContext.Provider>
  )
}
