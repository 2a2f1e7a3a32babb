import { z } from 'zod'
import { endpoint } from '../../core/http/endpoint.ts'
import { wholeNumber } from '../../core/http/schemas.ts'
import {
  findWebhook,
  idParam,
  makeSecret,
  openSecret,
  presentWebhook,
  SHOWN_AGAIN_MS,
  webhookWithSecretShape,
  type WebhookRow,
} from './webhook.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Aml } from '../../custody/aml/aml.ts'

interface Services {
  environment: Environment
  database: Database
  aml: Aml
}

const OVERLAP_S = 86_400
const OVERLAP_MAX_S = 7 * 86_400

/**
 * Replaces the secret of a webhook. For some time both secrets sign, so that no delivery is
 * rejected while the receiver changes its configuration. If the request is repeated within a
 * minute, because the response was lost, it returns the same secret; otherwise the receiver's
 * secret would become invalid.
 */
export const rotateWebhook = endpoint({
  id: 'rotateWebhookSecret',
  tag: 'Webhooks',
  description:
    'Creates a new secret and returns it once. During the overlap, deliveries are signed with both secrets so that receivers can switch.',
  errors: ['FORBIDDEN', 'NOT_FOUND'],
  method: 'POST',
  path: '/dac/v1/webhooks/{id}/rotate',
  summary: 'Rotate the secret of a webhook',
  access: 'write',
  audit: 'entry',
  params: idParam,
  body: z.strictObject({
    overlap_s: wholeNumber(
      0,
      OVERLAP_MAX_S,
      `Seconds during which the previous secret signs as well; by default ${OVERLAP_S}; 0: it is invalid immediately`,
    ).optional(),
  }),
  response: webhookWithSecretShape,
  async handler({ caller, params, body: { overlap_s: overlapS = OVERLAP_S } }, services: Services) {
    return services.database.transaction(async (tx) => {
      const row = await findWebhook(tx, caller, params.id, true)
      const now = tx.now()
      const isAgain =
        row.previous_until !== null && now.getTime() - row.secret_made_at.getTime() < SHOWN_AGAIN_MS
      if (isAgain && overlapS > 0) {
        return {
          body: {
            ...presentWebhook(row, now.getTime()),
            secret: openSecret(services, row.id, row.sealed_secret),
          },
        }
      }
      const { secret, sealed } = makeSecret(services, row.id)
      const changed = (await tx.one<WebhookRow>(
        `update webhooks set sealed_previous_secret = case when $3::timestamptz is null then null
           else sealed_secret end,
           previous_until = $3, sealed_secret = $2, secret_made_at = $4, updated_at = $4
         where workspace_id = $5 and id = $1 returning *`,
        [
          row.id,
          sealed,
          overlapS === 0 ? null : new Date(now.getTime() + overlapS * 1000),
          now,
          caller.workspaceId,
        ],
      )) as WebhookRow
      return { body: { ...presentWebhook(changed, now.getTime()), secret } }
    })
  },
})
