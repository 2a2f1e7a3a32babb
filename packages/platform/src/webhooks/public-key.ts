import { z } from 'zod'
import { endpoint } from '../http/endpoint.ts'
import { jwksOf } from './platform-key.ts'

/** What `x-signature` is checked with. */
export const webhookKeyPem = endpoint({
  method: 'GET', path: '/.well-known/custody-webhook-key.pem', summary: 'The public key of x-signature, as PEM', access: 'public',
  query: z.strictObject({}),
  handler: async ({ services }) => ({
    headers: { 'content-type': 'application/x-pem-file' }, text: (await services.webhooks.key()).publicPem,
  }),
})

export const webhookKeyJwks = endpoint({
  method: 'GET', path: '/.well-known/custody-webhook-keys.json', summary: 'The public key of x-signature, as a JWK set', access: 'public',
  query: z.strictObject({}),
  response: z.object({
    keys: z.array(z.object({
      kty: z.string(), n: z.string(), e: z.string(), kid: z.string(), alg: z.literal('RS512'), use: z.literal('sig'),
    })),
  }),
  handler: async ({ services }) => ({ body: jwksOf((await services.webhooks.key()).publicPem) }),
})
