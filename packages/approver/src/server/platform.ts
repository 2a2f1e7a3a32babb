import { CustodyError, type CustodyClient } from '@custody/client'
import type {
  DetailedApproval,
  GivenDecision,
  ListedApproval,
} from '@custody/client/approvals/parts'
import type { Assertion } from '@custody/policy'
import { ApproverError } from '../errors.ts'
import type { DetailedChange } from '../verify/change.ts'
import type { PolicyState } from '../verify/emergency.ts'

/** Who has signed a statement, and how. Times in Unix seconds. */
interface Signer {
  by: string
  key: string
  at: number
  expires: number
  passkey: Assertion
}

/** What the page needs of the platform. */
export interface Platform {
  list(after: string | undefined): Promise<{ data: ListedApproval[]; next: string | null }>
  read(id: string): Promise<DetailedApproval>
  give(
    id: string,
    decision: GivenDecision,
  ): Promise<{ state: string; needs: ListedApproval['needs'] }>
  /** Returns a policy change with its proposed document. */
  change(id: string): Promise<DetailedChange>
  /** Sends the proof that the person holds a key that a change adds. */
  prove(
    id: string,
    possession: { by: string; key: string; passkey: Assertion },
  ): Promise<{ state: string; needs: ListedApproval['needs'] }>
  /** Returns the policy in force, pending changes and stops. */
  policy(): Promise<PolicyState>
  /** Returns the signed text of a stop; null if it was not sent over the API. */
  stopText(hash: string): Promise<string | null>
  stop(
    statement: Signer & { sub_account: string | null; reason: string },
  ): Promise<{ stopped: number[] }>
  veto(statement: Signer & { hash: string }): Promise<{ vetoed: number[] }>
  resume(
    statement: Signer & { stop: string },
  ): Promise<{ state: string; needs: ListedApproval['needs'] }>
  /** Policy document in force, as JSON text or value; null if the platform returns none. */
  document(): Promise<unknown>
}

/**
 * Calls the platform.
 * @throws ApproverError with the platform's code, or `UNREACHABLE`
 */
async function called<T>(call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    if (!(error instanceof CustodyError)) throw error
    if (error.status === 0)
      throw new ApproverError('UNREACHABLE', `the platform did not respond: ${error.message}`)
    throw new ApproverError(error.code, `the platform refused it: ${error.message}`)
  }
}

/** Returns the platform behind the SDK. */
export const platformOf = (client: CustodyClient): Platform => ({
  list: (after) =>
    called(client.approvals.list({ limit: 20, after }) as unknown as ReturnType<Platform['list']>),
  read: (id) => called(client.approvals.read(id) as unknown as ReturnType<Platform['read']>),
  give: (id, decision) => called(client.approvals.give(id, decision)),
  async change(id) {
    const path = `/dac/v1/policy/changes/${encodeURIComponent(id)}`
    // As text, because the client converts numbers of JSON values to decimal texts.
    const text = await called(client.request<string>('GET', path, undefined, { as: 'text' }))
    return JSON.parse(text) as DetailedChange
  },
  async prove(id, possession) {
    const { state, needs } = await called(client.policy.prove(id, possession))
    return { state, needs }
  },
  async policy() {
    // As text, because the client converts numbers of JSON values to decimal texts.
    const path = '/dac/v1/policy'
    const text = await called(client.request<string>('GET', path, undefined, { as: 'text' }))
    return JSON.parse(text) as PolicyState
  },
  async stopText(hash) {
    try {
      return (await client.policy.readStop(hash)).signed
    } catch (error) {
      if (error instanceof CustodyError && error.status === 404) return null
      return called(Promise.reject(error as Error))
    }
  },
  stop: (statement) => called(client.policy.stop(statement)),
  veto: (statement) => called(client.policy.veto(statement)),
  resume: (statement) => called(client.policy.resume(statement)),
  async document() {
    try {
      // As text, because the client converts numbers of JSON values to decimal texts.
      const text = await client.request<string>('GET', '/dac/v1/policy', undefined, { as: 'text' })
      return (JSON.parse(text) as { document?: unknown }).document ?? null
    } catch (error) {
      // An older platform has no such endpoint, and a workspace may have no policy.
      if (error instanceof CustodyError && error.status !== 0) return null
      return called(Promise.reject(error as Error))
    }
  },
})
