import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { remember, scope, session } from './api/scope.ts'
import { openSession, sessionProblem } from './api/session.ts'
import { Announcer } from './parts/announce.tsx'
import { ConfirmPerson } from './parts/confirm-person.tsx'
import { SignElsewhere } from './parts/sign-elsewhere.tsx'
import { Button, LinkButton } from './parts/form.tsx'
import { ErrorBoundary } from './parts/error-boundary.tsx'
import { Card, Empty, Page, ProblemNote, Skeleton } from './parts/page.tsx'
import { go, match, place } from './router.ts'
import { OF_WORKSPACE, open, routes } from './routes.ts'
import { Shell } from './shell.tsx'

type View = ComponentType<Record<string, string>>
interface Shown {
  View: View
  params: Record<string, string>
  isOpen: boolean
}

/** Returns the page of the current URL. The previous one stays until it is loaded. */
function useShown(): Shown | 'missing' | 'loading' | Error {
  const [shown, setShown] = useState<Shown | 'missing' | 'loading' | Error>('loading')
  const { path } = place.value
  useEffect(() => {
    let isGone = false
    for (const [list, isOpen] of [
      [open, true],
      [routes, false],
    ] as const) {
      for (const [pattern, load] of Object.entries(list)) {
        const params = match(
          isOpen
            ? `/console${pattern}`
            : pattern.startsWith('/account')
              ? `/console${pattern}`
              : `/console/w/:workspace/:sub_account${pattern}`,
          path,
        )
        if (params === null) continue
        load().then(
          (View) => !isGone && setShown({ View: View as View, params, isOpen }),
          () =>
            !isGone &&
            setShown(
              new Error(
                'A part of the panel could not be loaded. Check the connection; a new version may have been installed.',
              ),
            ),
        )
        return () => void (isGone = true)
      }
    }
    setShown('missing')
    return undefined
  }, [path])
  return shown
}

export function App() {
  const shown = useShown()
  const who = session.value
  const { path } = place.value
  useEffect(() => {
    if (who === undefined) return
    const isOpen = /^\/console\/(?:sign-in|join|check)/.test(path)
    if (who.person === null && !isOpen)
      go(`/console/sign-in?next=${encodeURIComponent(path + location.search)}`, 'replace')
    else if (who.person !== null && (path === '/console' || path === '/console/sign-in'))
      go(scope.value.workspace === '' ? '/console/account' : scope.value.home, 'replace')
    else remember()
  }, [who, path])
  return (
    <>
      {content(shown)}
      <SignElsewhere />
      <ConfirmPerson />
      <Announcer />
    </>
  )
}

/** Shown for a new workspace without sub-accounts, or if the one in the URL does not exist. */
function NoSubAccount() {
  const { workspace, subAccount, home } = scope.value
  const others =
    session.value?.workspaces.find(({ name }) => name === workspace)?.sub_accounts ?? []
  const isNew = others.length === 0
  return (
    <Page title={isNew ? `Welcome to ${workspace}` : 'No such sub-account'}>
      <Card>
        <Empty
          icon="key"
          title={isNew ? 'It has no sub-account yet' : `There is no sub-account “${subAccount}”`}
          action={
            isNew ? (
              <LinkButton href={`${home}/browser-key`} kind="primary" icon="key">
                Create a key in this browser
              </LinkButton>
            ) : (
              <LinkButton href="/console">Go to the overview</LinkButton>
            )
          }
        >
          {isNew
            ? 'A sub-account holds wallets, and is made with the first API user of it: begin with a key in this browser.'
            : 'Check the address, or choose another above.'}
        </Empty>
      </Card>
    </Page>
  )
}

function content(shown: ReturnType<typeof useShown>) {
  const who = session.value
  if (who === undefined) {
    return (
      <main class="alone">
        {sessionProblem.value === null ? (
          <Skeleton lines={4} />
        ) : (
          <ProblemNote problem={sessionProblem.value} retry={() => void openSession()} />
        )}
      </main>
    )
  }
  if (typeof shown === 'object' && !(shown instanceof Error) && shown.isOpen)
    return <shown.View {...shown.params} />
  if (who.person === null)
    return (
      <main class="alone">
        <Skeleton lines={4} />
      </main>
    )
  if (shown instanceof Error)
    return (
      <Shell>
        <Page title="Not loaded">
          <p>{shown.message}</p>
          <Button onClick={() => location.reload()}>Reload the page</Button>
        </Page>
      </Shell>
    )
  if (shown === 'loading')
    return (
      <Shell>
        <div class="page">
          <Skeleton lines={6} />
        </div>
      </Shell>
    )
  const { isMember, hasSubAccount, workspace, home } = scope.value
  if (shown === 'missing' || (!isMember && place.value.path.startsWith('/console/w/'))) {
    return (
      <Shell>
        <Page title={shown === 'missing' ? 'No such page' : 'No such workspace'}>
          <Empty
            icon="search"
            title={
              shown === 'missing'
                ? 'There is nothing at this address'
                : `You are no member of “${workspace}”`
            }
            action={<LinkButton href="/console">Go to the overview</LinkButton>}
          >
            Check the address, or ask the person who sent it to you.
          </Empty>
        </Page>
      </Shell>
    )
  }
  const { path } = place.value
  if (!hasSubAccount && path.startsWith(home) && !OF_WORKSPACE.has(path.slice(home.length)))
    return (
      <Shell>
        <NoSubAccount />
      </Shell>
    )
  // The key separates pages of different sub-accounts, so that no state is carried over.
  return (
    <Shell>
      <ErrorBoundary key={home + path}>
        <shown.View key={home + JSON.stringify(shown.params)} {...shown.params} />
      </ErrorBoundary>
    </Shell>
  )
}
