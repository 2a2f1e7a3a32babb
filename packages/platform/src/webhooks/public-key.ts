import { z } from 'zod'
import { endpoint } from '../http/endpoint.ts'
import { jwksOf } from './platform-key.ts'

/** What `x-signature` is checked with. */
export const webhookKeyPem = endpoint({
  id: 'readWebhookKeyPem', tag: 'Webhooks',
  description: 'What `x-signature` of a delivery is verified with. Needs no key.',
  method: 'GET', path: '/.well-known/custody-webhook-key.pem', summary: 'The public key of x-signature, as PEM', access: 'public',
  query: z.strictObject({}), mediaType: 'application/x-pem-file',
  handler: async ({ services }) => ({
    headers: { 'content-type': 'application/x-pem-file' }, text: (await services.webhooks.key()).publicPem,
  }),
})

export const webhookKeyJwks = endpoint({
  id: 'readWebhookKeys', tag: 'Webhooks',
  description: 'The same key as a JWK set (RFC 7517). Needs no key.',
  method: 'GET', path: '/.well-known/custody-webhook-keys.json', summary: 'The public key of x-signature, as a JWK set', access: 'public',
  query: z.strictObject({}),
  response: z.object({
    keys: z.array(z.object({
      kty: z.string(), n: z.string(), e: z.string(), kid: z.string(), alg: z.literal('RS512'), use: z.literal('sig'),
    })),
  }),
  handler: async ({ services }) => ({ body: jwksOf((await services.webhooks.key()).publicPem) }),
})
