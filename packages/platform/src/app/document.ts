import { openApiWebhooks } from '../events/openapi.ts'
import { OPEN_OPERATIONS } from '../http/open-routes.ts'
import type { JsonSchema } from '../http/openapi/components.ts'
import { openApiDocument } from '../http/openapi/document.ts'
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
