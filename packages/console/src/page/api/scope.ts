// Whose pages are open: the workspace and sub-account in the address, and what they are called in
// paths.
import { computed, signal } from '@preact/signals'
import { place } from '../router.ts'
import type { Session } from './types.ts'

/** Who is signed in; undefined until it is known. */
export const session = signal<Session | undefined>(undefined)

/** Where to go where the address names no sub-account. */
const REMEMBERED = 'custody-console-scope'

function remembered(): string[] {
  try {
    return JSON.parse(localStorage.getItem(REMEMBERED) ?? '[]') as string[]
  } catch {
    return []
  }
}

/**
 * The open workspace and sub-account. `panelPath` is below /console/api, `home` the address of its
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

/** Keeps the open sub-account for the next visit. */
export function remember(): void {
  const { workspace, subAccount, isMember } = scope.value
  if (isMember) localStorage.setItem(REMEMBERED, JSON.stringify([workspace, subAccount]))
}

/** Where the mirror has a path of the public API. */
export const mirror = (path: string): string => `/console/api${scope.value.subPath}/api${path}`
/** A path of the open sub-account's own routes. */
export const ofSub = (path: string): string => `/console/api${scope.value.subPath}${path}`
/** A path of the open workspace's own routes. */
export const ofWorkspace = (path: string): string => `/console/api${scope.value.panelPath}${path}`
/** The address of a page of the open sub-account. */
export const pageAt = (path: string): string => scope.value.home + path

const RANKS = ['viewer', 'operator', 'admin', 'owner']
/** Whether whoever is signed in has this role here, or one above it. */
export const may = (role: 'owner' | 'admin' | 'operator' | 'viewer'): boolean =>
  RANKS.indexOf(scope.value.role) >= RANKS.indexOf(role)
