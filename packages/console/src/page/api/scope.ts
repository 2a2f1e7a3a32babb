// The open workspace and sub-account, according to the page's URL, and their paths.
import { computed, signal } from '@preact/signals'
import { place } from '../router.ts'
import type { Session } from './types.ts'

/** The signed-in session; undefined until it is known. */
export const session = signal<Session | undefined>(undefined)

/** Storage key of the sub-account to open if the URL contains none. */
const REMEMBERED = 'custody-console-scope'

function remembered(): string[] {
  try {
    return JSON.parse(localStorage.getItem(REMEMBERED) ?? '[]') as string[]
  } catch {
    return []
  }
}

/**
 * The open workspace and sub-account. `panelPath` is below /console/api, `home` is the URL of its
 * pages.
 */
export const scope = computed(() => {
  const [, inWorkspace, inSub] = /^\/console\/w\/([^/]+)\/([^/]+)/.exec(place.value.path) ?? []
  const workspaces = session.value?.workspaces ?? []
  const [lastWorkspace, lastSub] = remembered()
  const wanted = inWorkspace === undefined ? lastWorkspace : decodeURIComponent(inWorkspace)
  const member =
    workspaces.find((each) => each.name === wanted) ??
    (inWorkspace === undefined ? workspaces[0] : undefined)
  const workspace = member?.name ?? wanted ?? ''
  const wantedSub = inSub === undefined ? lastSub : decodeURIComponent(inSub)
  const names = member?.sub_accounts ?? []
  const subAccount = names.includes(wantedSub ?? '')
    ? (wantedSub as string)
    : inSub === undefined
      ? (names[0] ?? 'main')
      : (wantedSub ?? '')
  const panelPath = `/workspaces/${encodeURIComponent(workspace)}`
  const home = `/console/w/${encodeURIComponent(workspace)}/${encodeURIComponent(subAccount)}`
  return {
    workspace,
    subAccount,
    panelPath,
    home,
    role: member?.role ?? 'viewer',
    isMember: member !== undefined,
    hasSubAccount: names.includes(subAccount),
    subPath: `${panelPath}/sub-accounts/${encodeURIComponent(subAccount)}`,
  }
})

/** Stores the open sub-account for the next visit. */
export function remember(): void {
  const { workspace, subAccount, isMember } = scope.value
  if (isMember) localStorage.setItem(REMEMBERED, JSON.stringify([workspace, subAccount]))
}

/** Returns the mirror's path of a path of the public API. */
export const mirror = (path: string): string => `/console/api${scope.value.subPath}/api${path}`
/** Returns a path of the open sub-account's own routes. */
export const ofSub = (path: string): string => `/console/api${scope.value.subPath}${path}`
/** Returns a path of the open workspace's own routes. */
export const ofWorkspace = (path: string): string => `/console/api${scope.value.panelPath}${path}`
/** Returns the URL of a page of the open sub-account. */
export const pageAt = (path: string): string => scope.value.home + path

const RANKS = ['viewer', 'operator', 'admin', 'owner']
/** Returns whether the person has this role here, or a higher one. */
export const may = (role: 'owner' | 'admin' | 'operator' | 'viewer'): boolean =>
  RANKS.indexOf(scope.value.role) >= RANKS.indexOf(role)
