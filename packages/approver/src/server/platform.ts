import { CustodyError, type CustodyClient } from '@custody/client'
import { ApproverError } from '../errors.ts'
import type { DetailedApproval, GivenDecision, ListedApproval } from '../verify/approval.ts'

/** What the page needs of the platform. */
export interface Platform {
  list(after: string | undefined): Promise<{ data: ListedApproval[]; next: string | null }>
  read(id: string): Promise<DetailedApproval>
  give(
    id: string,
    decision: GivenDecision,
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
