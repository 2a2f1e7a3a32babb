import { z } from 'zod'
import type { Endpoint } from '../../core/http/endpoint.ts'
import { panelEndpoint, type PanelEndpoint } from '../people/endpoint.ts'

/** Path prefix of a sub-account's endpoints. */
export const SUB_ACCOUNT = '/console/api/workspaces/{workspace}/sub-accounts/{sub_account}'
/** Parameters of paths with this prefix. */
export const subAccountParams = { workspace: z.string(), sub_account: z.string() }

/**
 * Returns the API's read endpoints for the control panel, below a sub-account's path: the same
 * handlers, authenticated by a session instead of a signature. Writes require signed requests, so
 * they are not included.
 */
export const mirrorOf = <Services>(
  endpoints: readonly Endpoint<Services>[],
): PanelEndpoint<Services>[] =>
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
