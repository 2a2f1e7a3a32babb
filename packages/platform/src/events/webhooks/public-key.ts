import { z } from 'zod'
import { ID_MAX, MEMO_MAX, WORD_MAX } from '../../core/bounds.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { jwksOf } from './platform-key.ts'
import type { Webhooks } from './webhooks.ts'

interface Services {
  webhooks: Webhooks
}

/** An example of the response; no such private key exists. */
const EXAMPLE = [
  '-----BEGIN PUBLIC KEY-----',
  'MIIBojANBgkqhkiG9w0BAQEFAAOCAY8AMIIBigKCAYEAmlVdynoDG/I4KexlpdGd',
  'zj8sZYwfaYNI7ISmdecFRGJaC5TJmTpZFrCy1RFgwmpFoGrvAcMYdFb1cY3gSVsC',
  'RzV1oZjTgL7Fw8exLhPq+Ge1dRWNV2dcOC3/4bg5AKf5feWr1kP4FrLDnEFjeaLC',
  'G4NGHBRKK5bbSmU8xwQpJmR/8bbZZgZc9BsvMDCsyaxRLLTSPPzVyT91qUhqdcqk',
  'bx6TwYeVMzVp7e7pBDsheohgLHeUbNPInIhVHrnAHPbD8YCxi8IQsif1hW/ZT9iS',
  'RdlTwMt4PDI5JNRnA4G4snLGHorP8SReFcgJxLsK5kwN5Dvu7MIModV+BO1iu+w/',
  'h7Uv4sctjS480smeilO2dj9V8P/Svbx1CVo+zkiZw/+bpaC1uM9WwGcJh5+Ka503',
  'vtHBuD/uozoQE82EWcfaWooNGaJeY58xrPUMoHNyiqEYrMz3uAqXB7yN9LWyPkE+',
  'hTxJ2X7eFst6i9QE4XuNcndjbsCk8FQwD+OaQH3KmRMLAgMBAAE=',
  '-----END PUBLIC KEY-----',
  '',
].join('\n')

const PEM = /^-----BEGIN PUBLIC KEY-----\n([A-Za-z0-9+/=]{1,64}\n)+-----END PUBLIC KEY-----\n$/

/** Returns the public key that verifies `x-signature`. */
export const webhookKeyPem = endpoint({
  id: 'readWebhookKeyPem',
  tag: 'Webhooks',
  description: 'Returns the key that verifies `x-signature` of a delivery. Requires no API key.',
  method: 'GET',
  path: '/.well-known/custody-webhook-key.pem',
  summary: 'Read the public key of x-signature as PEM',
  access: 'public',
  query: z.strictObject({}),
  mediaType: 'application/x-pem-file',
  response: z
    .string()
    .max(1000)
    .regex(PEM)
    .meta({ description: 'Public key (SPKI, RSA 3072 bits)', examples: [EXAMPLE] }),
  handler: async (_context, services: Services) => ({
    headers: { 'content-type': 'application/x-pem-file' },
    text: (await services.webhooks.key()).publicPem,
  }),
})

export const webhookKeyJwks = endpoint({
  id: 'readWebhookKeys',
  tag: 'Webhooks',
  description: 'Returns the same key as a JWK set (RFC 7517). Requires no API key.',
  method: 'GET',
  path: '/.well-known/custody-webhook-keys.json',
  summary: 'Read the public key of x-signature as a JWK set',
  access: 'public',
  query: z.strictObject({}),
  response: z.object({
    keys: z
      .array(
        z.object({
          kty: z.string().max(WORD_MAX),
          n: z.string().max(MEMO_MAX),
          e: z.string().max(WORD_MAX),
          kid: z.string().max(ID_MAX),
          alg: z.literal('RS512'),
          use: z.literal('sig'),
        }),
      )
      .max(1),
  }),
  handler: async (_context, services: Services) => ({
    body: jwksOf((await services.webhooks.key()).publicPem),
  }),
})
