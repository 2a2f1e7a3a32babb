// Signs every write of the public API here, with the person's own key, exactly like any other
// caller.
import { requestHeaders, requestSigner } from '@custody/request-auth/web'
import { signal } from '@preact/signals'
import { custody } from './command.ts'
import { bodyOf, Problem, read, send, serverNow, SignedElsewhere } from './http.ts'
import { judgeKeys, type KeyState } from './key-state.ts'
import { listKeys } from './keys.ts'
import { scope, session } from './scope.ts'
import type { ApiUser } from './types.ts'
import { encode, pretty } from './wire.ts'

/** A request as it will be sent: both the displayed and the signed content. */
export interface Draft {
  method: string
  path: string
  body: string
}

/**
 * A request that this browser cannot sign, which is displayed for signing elsewhere; null if there
 * is none.
 */
export const elsewhere = signal<(Draft & { pretty: string; reason: string }) | null>(null)

/** Quotes a text as one word of a shell. */
export const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
/** Returns the command that signs and sends a request on a machine with a key. */
export const commandOf = ({ method, path, body }: Draft): string =>
  custody(`request ${method} ${quoted(path)}${body === '' ? '' : ` ${quoted(body)}`}`)

/**
 * Time in milliseconds for which the key state is cached, because a batch signs many requests in
 * succession.
 */
const KEPT_MS = 10_000
let cached: { subPath: string; at: number; state: Promise<KeyState> } | null = null

/** Clears the cached key state after a change of the browser's keys. */
export const forgetKeyState = (): void => void (cached = null)

/**
 * Returns the state of this browser's key for the open sub-account.
 * @throws Problem
 */
export function keyState(): Promise<KeyState> {
  const { subPath } = scope.value
  if (cached === null || cached.subPath !== subPath || Date.now() - cached.at > KEPT_MS) {
    cached = { subPath, at: Date.now(), state: askKeyState() }
    cached.state.then(({ state }) => state !== 'ready' && forgetKeyState(), forgetKeyState)
  }
  return cached.state
}

async function askKeyState(): Promise<KeyState> {
  const { workspace, subAccount, panelPath } = scope.value
  const keys = await listKeys().catch(() => [])
  if (!keys.some((key) => key.workspace === workspace && key.sub_account === subAccount))
    return { state: 'none', key: null, user: null }
  return judgeKeys(keys, await read<ApiUser[]>(`/console/api${panelPath}/api-users`), {
    workspace,
    subAccount,
    personId: session.value?.person?.id ?? null,
  })
}

const REASONS: Record<KeyState['state'], string> = {
  none: 'This browser holds no key for this sub-account.',
  unknown: 'This browser’s key has not been requested as an API user yet.',
  pending: 'This browser’s key waits to be enrolled by the signer nodes’ operators.',
  'read-only': 'This browser’s key is enrolled as read-only.',
  revoked: 'This browser’s key was revoked.',
  ready: '',
}

/** Returns the headers of one signed request. */
async function headersOf(
  { method, path, body }: Draft,
  apiKey: string,
  key: CryptoKey,
): Promise<Record<string, string>> {
  const signed = await requestSigner(key)({
    apiKey,
    method,
    uri: path,
    body,
    now: Math.floor(serverNow() / 1000),
  })
  return requestHeaders(signed, apiKey)
}

/**
 * Signs a write and sends it; if this browser cannot sign, displays it for signing elsewhere.
 * @param path of the public API, with its query
 * @throws Problem if the API rejects it; SignedElsewhere
 */
export async function sign<T>(
  method: 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  path: string,
  body?: unknown,
): Promise<T> {
  const draft: Draft = { method, path, body: body === undefined ? '' : encode(body) }
  const { state, key, user } = await keyState()
  const apiKey = user?.api_key ?? null
  if (state !== 'ready' || key === null || apiKey === null) {
    elsewhere.value = {
      ...draft,
      pretty: body === undefined ? '' : pretty(body),
      reason: REASONS[state],
    }
    throw new SignedElsewhere()
  }
  const init = {
    method,
    headers: await headersOf(draft, apiKey, key.private_key),
    ...(draft.body === '' ? {} : { body: draft.body }),
  }
  const response = await send(path, init).catch((error: unknown) => {
    throw error instanceof Problem && error.status === 0
      ? new Problem(0, 'UNREACHABLE', UNANSWERED[isOnce(body) ? 'once' : 'look'])
      : error
  })
  // The response belongs to an earlier request of this form with another payload; nothing was
  // created now (http/replay.ts).
  if (response.headers.has('warning'))
    throw new Problem(
      response.status,
      ANOTHER_STANDS,
      'This form was sent before with other values. Those values apply, and your later changes were not sent. Check the list first; ' +
        'to send the changed values as well, fill in the form again.',
    )
  return bodyOf<T>(response)
}

/** Code of a {@link Problem}: the form's `sequence_id` was used for another payload. */
export const ANOTHER_STANDS = 'ANOTHER_STANDS'

const UNANSWERED = {
  once: 'The platform did not respond, so the request may have been executed. Press again: the same request is not executed twice.',
  look: 'The platform did not respond, so the request may have been executed. Check the list before you press again.',
}

const isOnce = (body: unknown): boolean =>
  typeof body === 'object' && body !== null && 'sequence_id' in body
