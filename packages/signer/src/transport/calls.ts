export const PING = '/peer/ping'
export const RECORD = '/peer/record'
/**
 * Calls that a node answers before it has compared heads, or while it is being restored, because
 * their responses do not bind it.
 */
export const BEFORE_HEADS = new Set([
  PING,
  '/peer/hash',
  RECORD,
  '/peer/generation',
  '/peer/head-of',
  '/peer/people',
])

/**
 * Calls that a node answers after it was opened for a recovery: those that its partner needs to
 * sign, and no ceremonies.
 */
export const WHILE_RECOVERING = new Set([
  ...BEFORE_HEADS,
  '/peer/sign/open',
  '/peer/sign/round',
  '/peer/nonce',
  '/peer/fuelled',
  '/peer/key/get',
])

/** Calls of sessions and runs. None is sent to a banned node or accepted from it, in any round. */
export const SESSIONS = ['/peer/sign/', '/peer/test/', '/peer/ceremony/', '/peer/refresh/'] as const

/**
 * Maximum size of a peer's response: for a page of its record; for the short responses before heads
 * are compared; and for all other calls.
 */
const PAGE_BYTES_MAX = 64 * 1024 * 1024
const SHORT_BYTES_MAX = 256 * 1024
const ANSWER_BYTES_MAX = 24 * 1024 * 1024
export const bytesMaxOf = (call: string): number =>
  call === RECORD ? PAGE_BYTES_MAX : BEFORE_HEADS.has(call) ? SHORT_BYTES_MAX : ANSWER_BYTES_MAX
