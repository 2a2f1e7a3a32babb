import { STATUS_CODES } from 'node:http'
import { asInstalled } from '@custody/chains/terminal'
import type { z } from 'zod'
import { Components } from '../../core/http/openapi/components.ts'
import { nameProblem } from '../../core/http/openapi/problems.ts'
import { panelEndpoint, type PanelEndpoint } from '../people/endpoint.ts'

/**
 * Error codes that every endpoint may return in addition to its own, by its required authorization.
 */
const REFUSALS = {
  open: [400, 401, 403, 404, 409, 410, 429, 500],
  closed: [400, 401, 403, 404, 409, 410, 429, 500, 503],
} as const

/**
 * Returns a unique name that stays the same as long as the path does: `GET …/people/{id}` is
 * `get_workspaces_people_id`.
 */
const nameOf = ({ method, path }: PanelEndpoint): string =>
  [
    method.toLowerCase(),
    ...path
      .replace('/console/api/', '')
      .replace('workspaces/{workspace}', 'workspace')
      .replace('sub-accounts/{sub_account}', 'sub_account')
      .split(/[^A-Za-z0-9]+/),
  ]
    .filter((part) => part !== '')
    .join('_')
    .replaceAll('-', '_')

function parametersOf(components: Components, { params, query }: PanelEndpoint): object[] {
  const of = (schema: z.ZodType | undefined, place: 'path' | 'query') => {
    const { properties = {}, required = [] } = (schema ? components.shown(schema) : {}) as {
      properties?: Record<string, { description?: string }>
      required?: string[]
    }
    return Object.entries(properties).map(([name, { description, ...shape }]) => ({
      name,
      in: place,
      required: place === 'path' || required.includes(name),
      ...(description === undefined ? {} : { description }),
      schema: shape,
    }))
  }
  return [...of(params, 'path'), ...of(query, 'query')]
}

function operationOf(components: Components, definition: PanelEndpoint): object {
  const { summary, needs, body, response, streams, isSensitive } = definition
  const parameters = parametersOf(components, definition)
  const schema = response ? components.shown(response) : { type: 'string' }
  const refusals = REFUSALS[needs === 'nobody' ? 'open' : 'closed']
  return {
    operationId: nameOf(definition),
    summary,
    description:
      needs === 'nobody'
        ? 'Requires no session'
        : `Requires ${needs === 'anybody' ? 'a session' : `the role ${needs}`}` +
          `${isSensitive ? ', and a factor confirmed in the last 15 minutes' : ''}`,
    security: needs === 'nobody' ? [] : [{ session: [] }],
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body
      ? {
          requestBody: {
            required: true,
            content: { 'application/json': { schema: components.taken(body) } },
          },
        }
      : {}),
    responses: {
      200: {
        description: 'Success',
        content: {
          [streams
            ? 'text/event-stream'
            : response
              ? 'application/json'
              : 'application/octet-stream']: { schema },
        },
      },
      ...Object.fromEntries(
        refusals.map((status) => [
          status,
          {
            description: STATUS_CODES[status],
            content: {
              'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } },
            },
          },
        ]),
      ),
    },
  }
}

/** Returns the control panel's own OpenAPI document. */
export function documentOf(endpoints: readonly PanelEndpoint[]): object {
  const components = new Components()
  nameProblem(components)
  const paths: Record<string, Record<string, object>> = {}
  for (const each of endpoints)
    (paths[each.path] ??= {})[each.method.toLowerCase()] = operationOf(components, each)
  return {
    openapi: '3.1.0',
    info: {
      title: 'Custody control panel',
      version: '1',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      description:
        'API of the control panel’s own pages. It reads data and manages people, sessions and API users. It cannot move coins: ' +
        'that requires signed requests to the API.',
    },
    servers: [{ url: '/' }],
    paths,
    components: {
      schemas: components.schemas,
      securitySchemes: { session: { type: 'apiKey', in: 'cookie', name: '__Host-custody' } },
    },
  }
}

/**
 * Returns the endpoint that serves the document of all endpoints, including itself.
 * @param all called once, when all endpoints are known
 */
export function openApiOf(all: () => readonly PanelEndpoint[]): PanelEndpoint<unknown> {
  let text: string | null = null
  return panelEndpoint({
    method: 'GET',
    path: '/console/api/openapi.json',
    summary: 'Read this document',
    needs: 'nobody',
    handler: async () => ({ text: (text ??= asInstalled(JSON.stringify(documentOf(all())))) }),
  })
}
