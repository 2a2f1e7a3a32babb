import { z } from 'zod'
import type { Endpoint } from '../http/endpoint.ts'
import { panelEndpoint, type PanelEndpoint } from '../people/endpoint.ts'

/** Where a sub-account's part of the panel begins. */
export const SUB_ACCOUNT = '/console/api/workspaces/{workspace}/sub-accounts/{sub_account}'
/** What a path names that begins so. */
export const subAccountParams = { workspace: z.string(), sub_account: z.string() }

/**
 * The API's reading endpoints once more, below a sub-account's part of the panel: the same handler,
 * asked by a session in place of a signature. What is written is written by signed requests alone,
 * and so is not here.
 */
export const mirrorOf = (endpoints: readonly Endpoint[]): PanelEndpoint[] =>
  endpoints
    .filter(({ access }) => access === 'read')
    .map((definition) =>
      panelEndpoint({
        ...definition,
        path: `${SUB_ACCOUNT}/api${definition.path}`,
        needs: 'viewer',
        params: ((definition.params as z.ZodObject | undefined) ?? z.strictObject({})).extend(
          subAccountParams,
        ),
      }),
    )
