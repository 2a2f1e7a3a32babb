import { signal } from '@preact/signals'
import { go, place } from '../router.ts'
import { onSignedOut, panel, Problem, read } from './http.ts'
import { scope, session } from './scope.ts'
import type { Session } from './types.ts'
import { forgetReadings } from './use.ts'

/** Error of reading the session. */
export const sessionProblem = signal<Problem | null>(null)

/** Reads the session. */
export async function openSession(): Promise<void> {
  try {
    session.value = await read<Session>('/console/api/session')
    sessionProblem.value = null
  } catch (error) {
    sessionProblem.value =
      error instanceof Problem ? error : new Problem(0, 'UNEXPECTED', String(error))
  }
}

/** Stores a new session, and opens the page that the person wanted. */
export function enter(entered: Session): void {
  forgetReadings()
  session.value = entered
  const next = place.value.query.get('next')
  // Only URLs of the panel are opened, because the link is untrusted.
  go(
    next !== null && /^\/console\/(?!\/)[\w/.~%:@!$&'()*+,;=?-]*$/.test(next)
      ? next
      : scope.value.home,
    'replace',
  )
}

/**
 * Signs out.
 * @throws Problem if the session continues, so that the person does not believe that it has ended
 */
export async function signOut(): Promise<void> {
  await panel('POST', '/sign-out').catch((error: unknown) => {
    if (!(error instanceof Problem && error.status === 401)) throw error
  })
  forgetReadings()
  if (session.value !== undefined)
    session.value = { ...session.value, person: null, workspaces: [] }
  go('/console/sign-in')
}

/** Shows the sign-in when a session ends, and afterwards returns to the page that was open. */
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
