import { signal } from '@preact/signals'
import { go, place } from '../router.ts'
import { onSignedOut, panel, Problem, read } from './http.ts'
import { scope, session } from './scope.ts'
import type { Session } from './types.ts'
import { forgetReadings } from './use.ts'

/** Why it is not known who is signed in. */
export const sessionProblem = signal<Problem | null>(null)

/** Asks who is signed in. */
export async function openSession(): Promise<void> {
  try {
    session.value = await read<Session>('/console/api/session')
    sessionProblem.value = null
  } catch (error) {
    sessionProblem.value =
      error instanceof Problem ? error : new Problem(0, 'UNEXPECTED', String(error))
  }
}

/** Takes over who has signed in, and goes where he wanted to. */
export function enter(entered: Session): void {
  forgetReadings()
  session.value = entered
  const next = place.value.query.get('next')
  // Only addresses of the panel: what a link names is not to be believed.
  go(
    next !== null && /^\/console\/(?!\/)[\w/.~%:@!$&'()*+,;=?-]*$/.test(next)
      ? next
      : scope.value.home,
    'replace',
  )
}

/** @throws Problem where the session goes on: nobody must believe that it has ended */
export async function signOut(): Promise<void> {
  await panel('POST', '/sign-out').catch((error: unknown) => {
    if (!(error instanceof Problem && error.status === 401)) throw error
  })
  forgetReadings()
  if (session.value !== undefined)
    session.value = { ...session.value, person: null, workspaces: [] }
  go('/console/sign-in')
}

/** A session that has ended brings back to the sign-in, and afterwards to where one was. */
export function startSession(): void {
  addEventListener('online', () => {
    if (sessionProblem.peek() !== null) void openSession()
  })
  onSignedOut(() => {
    const was = session.value
    if (was === undefined || was.person === null) return
    session.value = { ...was, person: null, workspaces: [] }
    forgetReadings()
  })
}
