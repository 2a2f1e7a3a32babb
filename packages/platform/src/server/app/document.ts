import { openApiWebhooks } from '../../events/events/openapi.ts'
import { OPEN_OPERATIONS } from '../../core/http/open-routes.ts'
import type { JsonSchema } from '../../core/http/openapi/components.ts'
import { openApiDocument } from '../../core/http/openapi/document.ts'
import { endpoints } from './endpoints.ts'

/**
 * Returns the OpenAPI document of this API, without running a server.
 * @param base for example `https://custody.example.com`
 */
export const apiDocument = (base: string): JsonSchema =>
  openApiDocument({
    base,
    endpoints,
    open: OPEN_OPERATIONS,
    webhooks: openApiWebhooks,
  })
