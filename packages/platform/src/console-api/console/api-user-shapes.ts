import { API_ROLES } from '@custody/request-auth/roles'
import { commandName } from '@custody/chains/terminal'
import { publicKeyWord } from '@custody/request-auth'
import { z } from 'zod'
import { readRange } from '../../core/http/authentication/ip-allow-list.ts'
import { wholeNumber } from '../../core/http/schemas.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import type { ApiUserRequest } from '../people/api-user-requests.ts'
import { time } from '../people/schemas.ts'

interface Services {
  signers: SignerNodes
}

const RANGES_MAX = 100
const RATE_LIMIT_MAX = 10_000_000

export const rateLimit = wholeNumber(
  0,
  RATE_LIMIT_MAX,
  'Requests per minute; 0: the installation’s default',
)
export const label = z
  .string()
  .max(100)
  .refine((text) => !/[\p{Cc}\p{Cs}]/u.test(text), 'must consist of visible characters')
export const ipAllowList = z
  .array(
    z
      .string()
      .max(50)
      .refine(
        (text) => readRange(text) !== null,
        'must be an address or a range such as 203.0.113.0/24 or 2001:db8::/32',
      ),
  )
  .max(RANGES_MAX)
  .meta({ description: 'Networks that may use the key; empty: any address' })

export const commandShape = z.object({
  where: z.string().meta({ description: 'The person or terminal that created the API user' }),
  command: z.string().meta({ description: 'Command to paste into a shell' }),
})

export const apiUserShape = z.object({
  id: z.uuid().meta({ description: 'The API key; for a request, the id of the request' }),
  api_key: z
    .uuid()
    .nullable()
    .meta({ description: 'Null: requested, and not yet created by an operator' }),
  label: z.string().nullable(),
  sub_account: z.string(),
  role: z.enum(API_ROLES),
  rate_limit: z.int().nullable(),
  ip_allow_list: z.array(z.string()),
  created_at: time,
  last_used_at: time.nullable(),
  revoked_at: time.nullable(),
  key_fingerprint: z
    .string()
    .meta({ description: 'SHA-256 of the public key (SubjectPublicKeyInfo), in hexadecimal' }),
  public_key_pem: z
    .string()
    .meta({ description: 'The public key as PEM in canonical form, whatever form was uploaded' }),
  person: z
    .object({ id: z.uuid(), email: z.string(), name: z.string() })
    .nullable()
    .meta({ description: 'The person who owns the key' }),
  enrolment: z.enum(['pending', 'enrolled']).meta({
    description:
      'enrolled: created by the operator’s command, which enrols it at the signer nodes first; each node’s operator can list the keys of that node',
  }),
  commands: z
    .array(commandShape)
    .meta({ description: 'Commands for the operator while the request is pending' }),
})

/** Quotes the name of a workspace or sub-account, which cannot contain quotes. */
const quoted = (name: string): string => `'${name}'`

/**
 * Returns the commands with which operators create the API user of a request: with all nodes on
 * this machine, or with each node on its own host.
 * @throws AuthError if the key is invalid
 */
export function enrolmentCommands(
  { signers }: Services,
  workspace: string,
  request: ApiUserRequest,
): z.output<typeof commandShape>[] {
  // People of the workspace choose the key, so it must be a single word without characters that a
  // shell interprets.
  const key = `base64:${publicKeyWord(request.public_key_pem)}`
  const params = `--workspace ${quoted(workspace)} --sub-account ${quoted(request.sub_account)} --role ${request.role} --public-key ${key}`
  // The ID is included, because other requests may have the same key.
  const rest = `${request.rate_limit === null ? '' : ` --rate-limit ${request.rate_limit}`} --request ${request.id}`
  if (areHere(signers))
    return [
      {
        where: 'the platform’s host',
        command: `${commandName()} api-user create ${params}${rest}`,
      },
    ]
  return [
    ...signers.peers.map(({ node }, at) => ({
      where: `signer node ${node}`,
      command: `${commandName()} signer enrol --home HOME ${params}${at === 0 ? '' : ' --api-key "$API_KEY"'}`,
    })),
    {
      where: 'the platform’s host',
      command: `${commandName()} api-user create ${params} --api-key "$API_KEY" --index "$INDEX"${rest}`,
    },
  ]
}

/**
 * Returns the commands with which operators revoke an API key at the nodes. Until then the nodes
 * would sign requests that were signed with the key, including stolen ones.
 */
export function revocationCommands(
  { signers }: Services,
  apiKey: string,
): z.output<typeof commandShape>[] {
  if (areHere(signers))
    return [
      {
        where: 'the platform’s host',
        command: `${commandName()} api-user revoke --api-key ${apiKey}`,
      },
    ]
  return signers.peers.map(({ node }) => ({
    where: `signer node ${node}`,
    command: `${commandName()} signer revoke --home HOME --api-key ${apiKey}`,
  }))
}

const areHere = ({ peers }: SignerNodes): boolean =>
  peers.every(({ socket }) => socket !== undefined)
